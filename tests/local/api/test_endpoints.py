"""Computes, which the API calls endpoints."""

from typing import Any

import pytest

from neonctl_async.local import BackgroundIntervals, LocalControlPlane, ManualClock
from tests.local.client import Client


# Any: as Client.get.
async def compute(api: Client, project_id: str) -> Any:
    """The compute of the first branch of a project."""
    return (await api.get(f"/projects/{project_id}/endpoints"))["endpoints"][0]


async def act(api: Client, project_id: str, action: str) -> list[str]:
    """Do something to that compute; answers the actions of the operations it took."""
    endpoint = await compute(api, project_id)
    path = f"/projects/{project_id}/endpoints/{endpoint['id']}/{action}"
    return [op["action"] for op in (await api.done("POST", path))["operations"]]


async def state(api: Client, project_id: str) -> tuple[str, str | None]:
    """The state of that compute, and the one it is about to have."""
    endpoint = await compute(api, project_id)
    return endpoint["current_state"], endpoint.get("pending_state")


async def test_a_compute_has_every_published_field(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(3)
    endpoint = await compute(api, project_id)
    assert set(endpoint) == {
        *("host", "id", "project_id", "branch_id", "autoscaling_limit_min_cu", "region_id"),
        *("autoscaling_limit_max_cu", "type", "current_state", "settings", "pooler_enabled"),
        *("pooler_mode", "disabled", "passwordless_access", "last_active", "creation_source"),
        *("created_at", "updated_at", "started_at", "proxy_host", "suspend_timeout_seconds"),
        "provisioner",
    }
    assert endpoint["host"] == f"{endpoint['id']}.{endpoint['proxy_host']}"
    assert endpoint["started_at"] == "2026-01-01T00:00:02Z"


async def test_a_compute_starts_as_its_operation_does(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    assert await state(api, project_id) == ("init", "active")
    clock.advance(1.9)
    assert await state(api, project_id) == ("init", "active")
    clock.advance(0.1)
    assert await state(api, project_id) == ("active", None)


async def test_a_compute_whose_start_fails_is_idle(api: Client, clock: ManualClock) -> None:
    await api.control_plane.fail_next("start_compute")
    project_id = (await api.project())["project"]["id"]
    clock.advance(9)
    assert await state(api, project_id) == ("idle", None)
    assert await act(api, project_id, "start") == ["start_compute"]
    clock.advance(1)
    assert await state(api, project_id) == ("active", None)


async def test_a_compute_is_suspended_started_and_restarted(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    assert await act(api, project_id, "start") == []
    assert await act(api, project_id, "suspend") == ["suspend_compute"]
    assert await state(api, project_id) == ("active", "idle")
    clock.advance(1)
    assert await state(api, project_id) == ("idle", None)
    assert (await compute(api, project_id))["suspended_at"] == "2026-01-01T00:00:10Z"
    assert await act(api, project_id, "suspend") == []
    assert await act(api, project_id, "restart") == ["start_compute"]
    clock.advance(1)
    assert await act(api, project_id, "restart") == ["suspend_compute", "start_compute"]
    clock.advance(2)
    assert await state(api, project_id) == ("active", None)


async def test_a_compute_whose_suspension_fails_is_active(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    await api.control_plane.fail_next("suspend_compute")
    await act(api, project_id, "suspend")
    clock.advance(9)
    assert await state(api, project_id) == ("active", None)


async def test_a_compute_is_created_and_started(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    spec = {"branch_id": branch_id, "type": "read_write", "name": "reports"}
    path = f"/projects/{project_id}/endpoints"
    created = await api.done("POST", path, {"endpoint": spec})
    assert [op["action"] for op in created["operations"]] == ["start_compute"]
    assert created["endpoint"].items() >= spec.items()
    clock.advance(1)
    endpoint_id = created["endpoint"]["id"]
    assert (await api.get(f"{path}/{endpoint_id}"))["endpoint"]["current_state"] == "active"
    branch_path = f"/projects/{project_id}/branches/{branch_id}/endpoints"
    assert [found["id"] for found in (await api.get(branch_path))["endpoints"]] == [endpoint_id]


async def test_a_branch_has_one_read_write_compute_and_any_number_of_others(
    api: Client, project_id: str
) -> None:
    branch_id = (await compute(api, project_id))["branch_id"]
    path = f"/projects/{project_id}/endpoints"
    for type_, status in (("read_write", 409), ("read_only", 201), ("read_only", 201)):
        body = {"endpoint": {"branch_id": branch_id, "type": type_}}
        assert (await api.send("POST", path, body)).status == status
    two = {"endpoints": [{"type": "read_write"}, {"type": "read_write"}]}
    assert (await api.send("POST", f"/projects/{project_id}/branches", two)).status == 409
    assert await api.get(f"/projects/{project_id}/branches/count") == {"count": 1}


async def test_a_disabled_compute_does_not_start(api: Client, project_id: str) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    spec = {"branch_id": branch_id, "type": "read_write", "disabled": True}
    path = f"/projects/{project_id}/endpoints"
    created = await api.done("POST", path, {"endpoint": spec})
    assert (created["operations"], created["endpoint"]["current_state"]) == ([], "idle")
    endpoint_path = f"{path}/{created['endpoint']['id']}"
    for action in ("start", "restart"):
        assert (await api.send("POST", f"{endpoint_path}/{action}")).status == 409
    await api.done("PATCH", endpoint_path, {"endpoint": {"disabled": False}})
    assert (await api.send("POST", f"{endpoint_path}/start")).status == 200


async def test_changing_a_compute_applies_its_configuration(api: Client, project_id: str) -> None:
    endpoint = await compute(api, project_id)
    path = f"/projects/{project_id}/endpoints/{endpoint['id']}"
    changes = {
        "autoscaling_limit_max_cu": 2,
        "settings": {"pg_settings": {"work_mem": "64MB"}},
        "pooler_enabled": True,
    }
    changed = await api.done("PATCH", path, {"endpoint": changes})
    assert [op["action"] for op in changed["operations"]] == ["apply_config"]
    assert changed["endpoint"].items() >= changes.items()
    assert (await api.get(path))["endpoint"] == changed["endpoint"]
    assert (await api.done("PATCH", path, {"endpoint": {}}))["operations"] == []


async def test_a_compute_is_moved_to_a_branch_that_has_none(api: Client, project_id: str) -> None:
    endpoint = await compute(api, project_id)
    path = f"/projects/{project_id}/endpoints/{endpoint['id']}"
    taken = (await api.branch(project_id, compute=True))["branch"]["id"]
    free = (await api.branch(project_id))["branch"]["id"]
    for branch_id, status in ((taken, 409), ("br-none-1", 404), (free, 200)):
        reply = await api.send("PATCH", path, {"endpoint": {"branch_id": branch_id}})
        assert reply.status == status
    assert (await api.get(path))["endpoint"]["branch_id"] == free


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"autoscaling_limit_min_cu": 8}, "autoscaling_limit_min_cu"),
        ({"suspend_timeout_seconds": -2}, "endpoint.suspend_timeout_seconds"),
        ({"name": ""}, "endpoint.name"),
    ],
)
async def test_a_change_that_does_not_fit_names_the_field_and_changes_nothing(
    api: Client, project_id: str, changes: object, field: str
) -> None:
    endpoint = await compute(api, project_id)
    path = f"/projects/{project_id}/endpoints/{endpoint['id']}"
    reply = await api.send("PATCH", path, {"endpoint": changes})
    assert (reply.status, field in reply.message) == (400, True)
    assert await compute(api, project_id) == endpoint


async def test_deleting_a_compute_suspends_it_and_again_is_204(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    endpoint = await compute(api, project_id)
    path = f"/projects/{project_id}/endpoints/{endpoint['id']}"
    deleted = await api.done("DELETE", path)
    assert [op["action"] for op in deleted["operations"]] == ["suspend_compute"]
    assert (await api.send("GET", path)).status == 404
    assert (await api.send("DELETE", path)).status == 204
    never = await api.send("DELETE", f"/projects/{project_id}/endpoints/ep-never-was-1")
    assert never.status == 404
    assert (await api.get(f"/projects/{project_id}/endpoints"))["endpoints"] == []


async def test_moving_a_compute_brings_its_new_branch_back_from_the_archive(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id = (await api.branch(project_id, archived=True))["branch"]["id"]
    clock.advance(9)
    path = f"/projects/{project_id}/endpoints/{(await compute(api, project_id))['id']}"
    moved = await api.done("PATCH", path, {"endpoint": {"branch_id": branch_id}})
    assert [op["action"] for op in moved["operations"]] == ["timeline_unarchive", "apply_config"]
    clock.advance(2)
    branch = await api.get(f"/projects/{project_id}/branches/{branch_id}")
    assert branch["branch"]["current_state"] == "ready"


async def test_a_branch_that_a_compute_leaves_is_archived_and_its_new_one_is_not(
    clock: ManualClock,
) -> None:
    intervals = BackgroundIntervals(
        suspend_after=None,
        check_availability_every=None,
        detach_after=None,
        archive_after_age=100.0,
        archive_after_idle=10.0,
    )
    async with (
        LocalControlPlane(clock=clock, intervals=intervals) as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        left = await api.branch(project_id, compute=True)
        joined = (await api.branch(project_id))["branch"]["id"]
        clock.advance(9)
        path = f"/projects/{project_id}/endpoints/{left['endpoints'][0]['id']}"
        await api.done("PATCH", path, {"endpoint": {"branch_id": joined}})
        clock.advance(200)
        archived = [
            op["branch_id"]
            for op in await api.operations(project_id)
            if op["action"] == "timeline_archive"
        ]
        assert archived == [left["branch"]["id"]]


async def test_moving_a_compute_touches_both_branches(clock: ManualClock) -> None:
    async with (
        LocalControlPlane(clock=clock, lock="branch") as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        clock.advance(9)
        branch_id = (await api.branch(project_id))["branch"]["id"]
        path = f"/projects/{project_id}/endpoints/{(await compute(api, project_id))['id']}"
        body = {"endpoint": {"branch_id": branch_id}}
        assert (await api.send("PATCH", path, body)).status == 423
        clock.advance(9)
        assert (await api.send("PATCH", path, body)).status == 200
