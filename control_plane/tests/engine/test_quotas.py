"""Quotas of a project: computes beyond them are suspended, and start when they are raised."""

from typing import Any

import pytest

from control_plane.tests.client import Client, actions_of
from control_plane.tests.computes import compute, compute_state
from neonctl_local import BackgroundIntervals, ManualClock
from neonctl_local.engine.quotas import EXCEEDED

pytestmark = pytest.mark.control_plane(
    intervals=BackgroundIntervals(suspend_after=None, check_availability_every=None)
)


async def limited_project(api: Client, clock: ManualClock, **quota: int) -> str:
    """Create a project whose compute of half a unit runs from now on. Return the id."""
    created = await api.project(autoscaling_limit_min_cu=0.5, settings={"quota": quota})
    clock.advance(2)
    return str(created["project"]["id"])


async def start(api: Client, project_id: str) -> Any:  # Any: as Reply
    endpoint = await compute(api, project_id)
    return await api.send("POST", f"/projects/{project_id}/endpoints/{endpoint['id']}/start")


@pytest.mark.fact("quota-1")
@pytest.mark.parametrize(
    ("name", "seconds"), [("active_time_seconds", 600), ("compute_time_seconds", 1200)]
)
async def test_compute_is_suspended_at_the_quota_and_starts_when_it_is_raised(
    api: Client, clock: ManualClock, name: str, seconds: int
) -> None:
    project_id = await limited_project(api, clock, **{name: 600})
    clock.advance(seconds - 2)
    assert await compute_state(api, project_id) == ("active", None)
    clock.advance(2)
    assert await compute_state(api, project_id) == ("active", "idle")
    clock.advance(1)
    assert (await api.actions(project_id))[-1] == "suspend_compute"
    refused = await start(api, project_id)
    assert (refused.status, refused.message) == (412, EXCEEDED)

    body = {"project": {"settings": {"quota": {name: 700}}}}
    await api.request("PATCH", f"/projects/{project_id}", body)
    assert actions_of((await start(api, project_id)).json) == ["start_compute"]


async def test_quota_is_for_a_month(api: Client, clock: ManualClock) -> None:
    project_id = await limited_project(api, clock, active_time_seconds=600)
    clock.advance(601)
    assert (await start(api, project_id)).status == 412
    clock.advance(31 * 86400)
    assert (await start(api, project_id)).status == 200


async def test_project_beyond_its_quota_gets_branches_without_computes(
    api: Client, clock: ManualClock
) -> None:
    project_id = await limited_project(api, clock, active_time_seconds=600)
    clock.advance(601)
    path = f"/projects/{project_id}/branches"
    with_compute = {"endpoints": [{"type": "read_write"}]}
    await api.expect_error(412, EXCEEDED, "POST", path, with_compute)
    assert await api.branch_names(project_id) == ["main"]
    assert actions_of(await api.branch(project_id)) == ["create_branch"]


@pytest.mark.fact("quota-1")
@pytest.mark.parametrize("quota", [{}, {"active_time_seconds": 0}, {"logical_size_bytes": 1}])
async def test_no_quota_and_a_quota_of_0_limit_nothing(
    api: Client, clock: ManualClock, quota: dict[str, int]
) -> None:
    project_id = await limited_project(api, clock, **quota)
    clock.advance(86400)
    assert await compute_state(api, project_id) == ("active", None)
