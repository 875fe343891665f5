"""Background work of the control plane: section 2.3 of the specification."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from control_plane.tests.client import Client, branch_path_of, serve
from neonctl_local import BackgroundIntervals, ManualClock
from neonctl_local.engine import background
from neonctl_local.storage.data_files import connect

HOUR = 3600.0
DAY = 24 * HOUR
NEVER = BackgroundIntervals(
    suspend_after=None, check_availability_every=None, detach_after=None, archive_after_age=None
)


# Any: as Client.get.
async def since_creation(api: Client, project_id: str) -> list[Any]:
    """Return the operations after the two that created the project."""
    return (await api.operations(project_id))[2:]


async def actions_and_times(api: Client, project_id: str) -> list[tuple[str, str]]:
    """Return the actions and the creation times of these operations."""
    found = await since_creation(api, project_id)
    return [(op["action"], op["created_at"]) for op in found]


async def actions(api: Client, project_id: str) -> list[str]:
    """Return the actions of these operations."""
    return [op["action"] for op in await since_creation(api, project_id)]


def only(**intervals: float) -> BackgroundIntervals:
    """Return settings that allow only one kind of background work."""
    return replace(NEVER, **intervals)


@pytest.mark.fact("computes-11")
async def test_idle_compute_is_suspended_after_its_timeout(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(2 + 300 - 0.001)
    assert await actions_and_times(api, project_id) == []
    clock.advance(1000)
    assert await actions_and_times(api, project_id) == [("suspend_compute", "2026-01-01T00:05:02Z")]
    (operation,) = await since_creation(api, project_id)
    assert (operation["status"], operation["updated_at"]) == ("finished", "2026-01-01T00:05:03Z")
    (endpoint,) = (await api.get(f"/projects/{project_id}/endpoints"))["endpoints"]
    assert (endpoint["current_state"], endpoint["suspended_at"]) == ("idle", "2026-01-01T00:05:03Z")


@pytest.mark.fact("computes-17")
@pytest.mark.parametrize(("timeout", "expected"), [(60, 1), (-1, 0)])
async def test_compute_can_have_its_own_suspend_timeout(
    api: Client, clock: ManualClock, timeout: int, expected: int
) -> None:
    defaults = {"suspend_timeout_seconds": timeout}
    created = await api.project(default_endpoint_settings=defaults)
    clock.advance(63)
    assert len(await since_creation(api, created["project"]["id"])) == expected


async def test_use_of_a_compute_postpones_its_suspension(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    (branch,) = (await api.get(f"/projects/{project_id}/branches"))["branches"]
    clock.advance(200)
    path = f"/projects/{project_id}/branches/{branch['id']}/roles"
    await api.request("POST", path, {"role": {"name": "alex"}})
    clock.advance(200)
    assert await actions(api, project_id) == ["apply_config"]
    clock.advance(101)
    assert await actions(api, project_id) == ["apply_config", "suspend_compute"]


async def test_failed_suspension_is_retried(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.control_plane.fail_next("suspend_compute")
    clock.advance(2 + 300 + 1 + 300 + 1)
    found = await since_creation(api, project_id)
    assert [op["status"] for op in found] == ["failed", "finished"]


@pytest.mark.control_plane(intervals=only(check_availability_every=4 * HOUR))
async def test_only_branches_with_a_compute_are_checked(api: Client, clock: ManualClock) -> None:
    project = await api.project()
    project_id = project["project"]["id"]
    created = await api.branch(project_id)
    clock.advance(9 * HOUR)
    checks = (await since_creation(api, project_id))[1:]
    assert created["endpoints"] == []
    assert [(op["action"], op["created_at"]) for op in checks] == [
        ("check_availability", "2026-01-01T04:00:00Z"),
        ("check_availability", "2026-01-01T08:00:00Z"),
    ]
    assert {op["branch_id"] for op in checks} == {project["branch"]["id"]}
    assert {op["endpoint_id"] for op in checks} == {project["endpoints"][0]["id"]}


@pytest.mark.control_plane(intervals=only(check_availability_every=HOUR))
async def test_checks_stop_when_the_compute_is_deleted(api: Client, clock: ManualClock) -> None:
    created = await api.project()
    project_id = created["project"]["id"]
    clock.advance(HOUR)
    await api.request("DELETE", f"/projects/{project_id}/endpoints/{created['endpoints'][0]['id']}")
    clock.advance(9 * HOUR)
    assert await actions(api, project_id) == ["check_availability", "suspend_compute"]


@pytest.mark.control_plane(
    intervals=BackgroundIntervals(check_availability_every=None, detach_after=7 * DAY)
)
async def test_idle_project_is_detached_and_reattached_at_the_next_request(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(6 * DAY)
    await api.get(f"/projects/{project_id}")
    clock.advance(7 * DAY - 1)
    assert await actions(api, project_id) == ["suspend_compute"]
    clock.advance(30 * DAY)
    assert (await actions_and_times(api, project_id))[1:] == [
        ("tenant_detach", "2026-01-20T23:59:59Z"),
        ("tenant_reattach", "2026-02-12T23:59:59Z"),
    ]
    clock.advance(1)
    assert len(await since_creation(api, project_id)) == 3


@pytest.mark.parametrize("days", [0.0, 7.0])
async def test_project_with_a_running_compute_is_not_detached(
    clock: ManualClock, days: float
) -> None:
    async with serve(clock=clock, intervals=only(detach_after=days * DAY)) as api:
        project_id = (await api.project())["project"]["id"]
        clock.advance(60)
        assert await actions_and_times(api, project_id) == []
        clock.advance(days * 30 * DAY)
        assert await actions_and_times(api, project_id) == []


@pytest.mark.control_plane(
    intervals=BackgroundIntervals(check_availability_every=DAY, detach_after=2.5 * DAY)
)
async def test_detached_project_is_not_checked(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(10.25 * DAY)
    assert await actions(api, project_id) == [
        *("suspend_compute", "check_availability", "check_availability"),
        *("tenant_detach", "tenant_reattach"),
    ]
    clock.advance(DAY)
    last = (await actions_and_times(api, project_id))[-1]
    assert last == ("check_availability", "2026-01-12T06:00:00Z")


async def test_branch_is_deleted_when_it_expires(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await api.branch(project_id, compute=True, expires_at="2026-01-01T00:01:00Z")
    clock.advance(59)
    path = f"/projects/{project_id}/branches/{created['branch']['id']}"
    assert (await api.send("GET", path)).status == 200
    clock.advance(9)
    assert (await api.send("GET", path)).status == 404
    assert (await actions_and_times(api, project_id))[2:] == [
        ("suspend_compute", "2026-01-01T00:01:00Z"),
        ("delete_timeline", "2026-01-01T00:01:00Z"),
    ]


async def test_branch_that_cannot_be_deleted_loses_its_expiry(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    path = f"/projects/{project_id}/branches/{(await api.main_branch(project_id))['id']}"
    other = branch_path_of(await api.branch(project_id, init_source="schema-only"))
    await api.request("POST", f"{other}/set_as_default")
    await api.request("PATCH", path, {"branch": {"expires_at": "2026-01-01T00:01:00Z"}})
    clock.advance(61)
    assert not (await api.get(path))["branch"].keys() & {"expires_at", "ttl_interval_seconds"}


@pytest.mark.control_plane(intervals=NEVER)
async def test_background_work_can_be_disabled(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(365 * DAY)
    assert await actions_and_times(api, project_id) == []


async def test_due_events_are_dropped_if_a_later_start_disables_them(
    clock: ManualClock, tmp_path: Path
) -> None:
    data = tmp_path / "plane.db"
    async with serve(data=data, clock=clock) as api:
        key = api.key
        project_id = (await api.project())["project"]["id"]
        await api.branch(project_id)
        before = await api.actions(project_id)
    clock.advance(365 * DAY)
    async with serve(key, data=data, clock=clock, intervals=NEVER) as api:
        assert await api.actions(project_id) == before


async def test_deleted_project_has_no_background_work(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.request("DELETE", f"/projects/{project_id}")
    clock.advance(60 * DAY)
    assert await actions(api, project_id) == ["delete_tenant"]


async def test_due_events_run_in_the_order_of_their_times(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(10 * DAY)
    found = await since_creation(api, project_id)
    times = [op["created_at"] for op in found]
    assert times == sorted(times)
    assert {op["action"] for op in found} == {
        *("suspend_compute", "check_availability", "tenant_detach", "tenant_reattach")
    }


@pytest.mark.parametrize(
    "intervals",
    [{"check_availability_every": 0}, {"suspend_after": -1}, {"archive_after_idle": -1}],
)
async def test_invalid_intervals_are_rejected(intervals: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"at least|0 or more"):
        BackgroundIntervals(**intervals)


@pytest.mark.control_plane(intervals=only(check_availability_every=1.0))
async def test_only_the_last_100_missed_checks_run(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(6 * HOUR)
    checks = [at for _, at in await actions_and_times(api, project_id)]
    assert (len(checks), checks[-1]) == (100, "2026-01-01T06:00:00Z")
    clock.advance(1)
    assert len(await actions_and_times(api, project_id)) == 101


def test_next_due_event_is_found_without_sorting() -> None:
    query = f"EXPLAIN QUERY PLAN SELECT * FROM due_events {background.EARLIEST}"
    with closing(connect(None)) as connection:
        plan = [step for *_, step in connection.execute(query, ("project", 0))]
    assert [step for step in plan if step.startswith("SCAN") or "TEMP B-TREE" in step] == []
