"""Requests that manage computes, which the API calls endpoints."""

import pytest

from control_plane.tests.client import Client, actions_of
from control_plane.tests.computes import compute, compute_state, run_action
from neonctl_local import ManualClock


async def test_compute_has_the_published_fields(
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


@pytest.mark.fact("computes-12")
async def test_compute_is_suspended_started_and_restarted(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    assert await run_action(api, project_id, "start") == []
    assert await run_action(api, project_id, "suspend") == ["suspend_compute"]
    assert await compute_state(api, project_id) == ("active", "idle")
    clock.advance(1)
    assert await compute_state(api, project_id) == ("idle", None)
    assert (await compute(api, project_id))["suspended_at"] == "2026-01-01T00:00:10Z"
    assert await run_action(api, project_id, "suspend") == []
    path = f"/projects/{project_id}/endpoints/{(await compute(api, project_id))['id']}/restart"
    await api.expect_error(422, "start it", "POST", path)
    assert await run_action(api, project_id, "start") == ["start_compute"]
    clock.advance(1)
    assert await run_action(api, project_id, "restart") == ["suspend_compute", "start_compute"]
    clock.advance(2)
    assert await compute_state(api, project_id) == ("active", None)


async def test_compute_is_created_and_started(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    spec = {"branch_id": branch_id, "type": "read_write", "name": "reports"}
    path = f"/projects/{project_id}/endpoints"
    created = await api.request("POST", path, {"endpoint": spec})
    assert actions_of(created) == ["start_compute"]
    assert created["endpoint"].items() >= spec.items()
    clock.advance(1)
    endpoint_id = created["endpoint"]["id"]
    assert (await api.get(f"{path}/{endpoint_id}"))["endpoint"]["current_state"] == "active"
    branch_path = f"/projects/{project_id}/branches/{branch_id}/endpoints"
    assert [found["id"] for found in (await api.get(branch_path))["endpoints"]] == [endpoint_id]


async def test_disabled_compute_does_not_start(api: Client, project_id: str) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    spec = {"branch_id": branch_id, "type": "read_write", "disabled": True}
    path = f"/projects/{project_id}/endpoints"
    created = await api.request("POST", path, {"endpoint": spec})
    assert (created["operations"], created["endpoint"]["current_state"]) == ([], "idle")
    endpoint_path = f"{path}/{created['endpoint']['id']}"
    for action in ("start", "restart"):
        assert (await api.send("POST", f"{endpoint_path}/{action}")).status == 409
    await api.request("PATCH", endpoint_path, {"endpoint": {"disabled": False}})
    assert (await api.send("POST", f"{endpoint_path}/start")).status == 200


async def test_compute_that_is_disabled_is_suspended_and_no_change_starts_it(
    api: Client, clock: ManualClock, project_id: str, branch_path: str
) -> None:
    path = f"/projects/{project_id}/endpoints/{(await compute(api, project_id))['id']}"
    disabled = await api.request("PATCH", path, {"endpoint": {"disabled": True}})
    assert actions_of(disabled) == ["apply_config", "suspend_compute"]
    clock.advance(9)
    created = await api.request("POST", f"{branch_path}/roles", {"role": {"name": "ada"}})
    assert actions_of(created) == ["apply_config"]
    assert await compute_state(api, project_id) == ("idle", None)


async def test_changing_a_compute_starts_apply_config(api: Client, project_id: str) -> None:
    endpoint = await compute(api, project_id)
    path = f"/projects/{project_id}/endpoints/{endpoint['id']}"
    changes = {
        "autoscaling_limit_max_cu": 2,
        "settings": {"pg_settings": {"work_mem": "64MB"}},
        "pooler_enabled": True,
    }
    changed = await api.request("PATCH", path, {"endpoint": changes})
    assert actions_of(changed) == ["apply_config"]
    assert changed["endpoint"].items() >= changes.items()
    assert (await api.get(path))["endpoint"] == changed["endpoint"]
    assert (await api.request("PATCH", path, {"endpoint": {}}))["operations"] == []


async def test_compute_moves_only_to_a_branch_without_a_read_write_compute(
    api: Client, project_id: str
) -> None:
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
async def test_error_for_an_invalid_change_names_the_field_and_changes_nothing(
    api: Client, project_id: str, changes: object, field: str
) -> None:
    endpoint = await compute(api, project_id)
    path = f"/projects/{project_id}/endpoints/{endpoint['id']}"
    await api.expect_error(400, field, "PATCH", path, {"endpoint": changes})
    assert await compute(api, project_id) == endpoint


async def test_deleting_a_compute_suspends_it_and_deleting_it_again_is_204(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    endpoint = await compute(api, project_id)
    path = f"/projects/{project_id}/endpoints/{endpoint['id']}"
    deleted = await api.request("DELETE", path)
    assert actions_of(deleted) == ["suspend_compute"]
    assert (await api.send("GET", path)).status == 404
    assert (await api.send("DELETE", path)).status == 204
    unknown = await api.send("DELETE", f"/projects/{project_id}/endpoints/ep-never-was-1")
    assert unknown.status == 404
    assert (await api.get(f"/projects/{project_id}/endpoints"))["endpoints"] == []


async def test_moving_a_compute_to_an_archived_branch_unarchives_the_branch(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id = (await api.branch(project_id, archived=True))["branch"]["id"]
    clock.advance(9)
    path = f"/projects/{project_id}/endpoints/{(await compute(api, project_id))['id']}"
    moved = await api.request("PATCH", path, {"endpoint": {"branch_id": branch_id}})
    assert actions_of(moved) == ["timeline_unarchive", "apply_config"]
    clock.advance(2)
    branch = await api.get(f"/projects/{project_id}/branches/{branch_id}")
    assert branch["branch"]["current_state"] == "ready"


@pytest.mark.control_plane(lock="branch")
async def test_moving_a_compute_is_423_while_its_new_branch_is_locked(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    branch_id = (await api.branch(project_id))["branch"]["id"]
    path = f"/projects/{project_id}/endpoints/{(await compute(api, project_id))['id']}"
    body = {"endpoint": {"branch_id": branch_id}}
    assert (await api.send("PATCH", path, body)).status == 423
    clock.advance(9)
    assert (await api.send("PATCH", path, body)).status == 200


@pytest.mark.fact("computes-2", "computes-13", "computes-14")
async def test_branch_has_many_read_only_computes_each_with_an_id_of_its_own(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id = (await api.main_branch(project_id))["id"]
    path = f"/projects/{project_id}/endpoints"
    spec = {"endpoint": {"branch_id": branch_id, "type": "read_only"}}
    computes = [(await api.request("POST", path, spec))["endpoint"] for _ in range(3)]
    assert len({endpoint["host"] for endpoint in computes}) == 3
    clock.advance(9)
    gone = f"{path}/{computes[0]['id']}"
    await api.request("POST", f"{gone}/suspend")
    clock.advance(9)
    assert (await api.request("DELETE", gone))["operations"] == []
    again = (await api.request("POST", path, spec))["endpoint"]
    assert again["id"] not in {endpoint["id"] for endpoint in computes}
    assert again["host"] not in {endpoint["host"] for endpoint in computes}


@pytest.mark.fact("computes-10", "computes-17")
async def test_large_compute_and_one_without_a_timeout_are_never_suspended(
    api: Client, clock: ManualClock
) -> None:
    sizes = {"autoscaling_limit_min_cu": 18, "autoscaling_limit_max_cu": 18}
    large = (await api.project(**sizes))["endpoints"][0]
    never = (await api.project(default_endpoint_settings={"suspend_timeout_seconds": -1}))[
        "endpoints"
    ][0]
    clock.advance(86400)
    for endpoint in (large, never):
        path = f"/projects/{endpoint['project_id']}/endpoints/{endpoint['id']}"
        assert (await api.get(path))["endpoint"]["current_state"] == "active"
        body = {"endpoint": {"suspend_timeout_seconds": 604801}}
        await api.expect_error(400, "suspend_timeout_seconds", "PATCH", path, body)


@pytest.mark.fact("computes-20")
async def test_new_default_settings_change_no_existing_compute(
    api: Client, project_id: str
) -> None:
    before = await compute(api, project_id)
    defaults = {"default_endpoint_settings": {"autoscaling_limit_min_cu": 2}}
    await api.request("PATCH", f"/projects/{project_id}", {"project": defaults})
    assert await compute(api, project_id) == before
    created = (await api.branch(project_id, compute=True))["endpoints"][0]
    assert created["autoscaling_limit_min_cu"] == 2
