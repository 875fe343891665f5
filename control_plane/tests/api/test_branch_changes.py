"""Updating, restoring and recovering branches."""

import pytest

from control_plane.tests.client import Client, actions_of, branch_path_of
from neonctl_local import ManualClock

DAY = 86400


async def deleted_branch(api: Client, project_id: str, *, hard: bool = False) -> tuple[str, str]:
    """Create and delete a branch. Return its id and the id of its compute."""
    created = await api.branch(project_id, name="preview", compute=True)
    branch_id = created["branch"]["id"]
    query = "?hard_delete=true" if hard else ""
    await api.request("DELETE", f"/projects/{project_id}/branches/{branch_id}{query}")
    return branch_id, created["endpoints"][0]["id"]


async def test_updating_a_branch_starts_no_operations(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    path = branch_path_of(await api.branch(project_id))
    clock.advance(5)
    changes = {"name": "new", "protected": True}
    changed = await api.request("PATCH", path, {"branch": changes})
    assert changed["operations"] == []
    assert changed["branch"].items() >= changes.items()
    assert changed["branch"]["updated_at"] == "2026-01-01T00:00:05Z"


@pytest.mark.fact("branches-11", "branches-12")
async def test_project_has_one_default_branch(api: Client, project_id: str) -> None:
    branch_id = (await api.branch(project_id, name="new"))["branch"]["id"]
    path = f"/projects/{project_id}/branches/{branch_id}"
    for action in ("set_as_default", "set_as_primary"):
        changed = await api.request("POST", f"{path}/{action}")
        assert (changed["branch"]["default"], changed["operations"]) == (True, [])
    branches = (await api.get(f"/projects/{project_id}/branches"))["branches"]
    is_default = {branch["name"]: branch["default"] for branch in branches}
    assert is_default == {"main": False, "new": True}
    created = await api.branch(project_id)
    assert created["branch"]["parent_id"] == branch_id


async def test_branch_is_restored_from_another_branch(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    created = await api.branch(project_id, name="preview", compute=True)
    source = (await api.main_branch(project_id))["id"]
    branch_id = created["branch"]["id"]
    path = f"/projects/{project_id}/branches/{branch_id}"
    await api.request("POST", f"{path}/roles", {"role": {"name": "alex"}})
    clock.advance(9)
    restored = await api.request("POST", f"{path}/restore", {"source_branch_id": source})
    assert actions_of(restored) == ["suspend_compute", "create_branch", "start_compute"]
    assert restored["branch"]["restored_from"] == restored["branch"]["parent_id"] == source
    assert restored["branch"]["last_reset_at"] == "2026-01-01T00:00:09Z"
    roles = (await api.get(f"{path}/roles"))["roles"]
    assert [role["name"] for role in roles] == ["neondb_owner"]
    clock.advance(9)
    (endpoint,) = (await api.get(f"{path}/endpoints"))["endpoints"]
    assert endpoint["current_state"] == "active"


@pytest.mark.fact("restore-1", "restore-5", "restore-8")
async def test_restore_can_preserve_the_old_state_as_a_new_branch(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id = (await api.main_branch(project_id))["id"]
    child = (await api.branch(project_id, name="preview"))["branch"]["id"]
    clock.advance(9)
    path = f"/projects/{project_id}/branches"
    body = {"source_branch_id": branch_id, "source_timestamp": "2026-01-01T00:00:05Z"}
    await api.expect_error(400, "preserve_under_name", "POST", f"{path}/{branch_id}/restore", body)
    body["preserve_under_name"] = "before"
    restored = (await api.request("POST", f"{path}/{branch_id}/restore", body))["branch"]
    (preserved,) = (await api.get(f"{path}?search=before"))["branches"]
    assert preserved["restored_as"] == branch_id
    assert restored["parent_timestamp"] == "2026-01-01T00:00:05Z"
    assert (await api.get(f"{path}/{child}"))["branch"]["parent_id"] == preserved["id"]
    assert await api.get(f"{path}/{preserved['id']}/endpoints") == {"endpoints": []}


@pytest.mark.fact("restore-1", "restore-11")
@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({}, 400, "source_branch_id"),
        ({"source_branch_id": "br-none-1"}, 404, "branch not found"),
        ({"source_branch_id": "self"}, 400, "preserve_under_name"),
        ({"source_branch_id": "self", "source_lsn": "now"}, 400, "source_lsn"),
        ({"source_branch_id": "self", "preserve_under_name": "x"}, 400, "source_timestamp"),
        ({"source_branch_id": "root", "preserve_under_name": "main"}, 409, "main"),
    ],
)
async def test_invalid_restore_is_rejected(
    api: Client, project_id: str, body: dict[str, str], status: int, word: str
) -> None:
    main = (await api.main_branch(project_id))["id"]
    branch_id = (await api.branch(project_id))["branch"]["id"]
    ids = {"self": branch_id, "root": main}
    request = {name: ids.get(value, value) for name, value in body.items()}
    path = f"/projects/{project_id}/branches/{branch_id}/restore"
    await api.expect_error(status, word, "POST", path, request)


async def test_deleted_branch_is_listed_with_include_deleted(api: Client, project_id: str) -> None:
    branch_id, _ = await deleted_branch(api, project_id)
    assert await api.branch_names(project_id) == ["main"]
    page = await api.get(f"/projects/{project_id}/branches?include_deleted=true")
    branches = {branch["id"]: branch for branch in page["branches"]}
    assert branches.pop(branch_id)["recovery"] == {
        "deleted_at": "2026-01-01T00:00:00Z",
        "recoverable_until": "2026-01-08T00:00:00Z",
        "deletion_method": "user",
    }
    (main,) = branches.values()
    assert "recovery" not in main


@pytest.mark.fact("branches-22")
async def test_computes_of_a_recovered_branch_are_idle(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id, endpoint_id = await deleted_branch(api, project_id)
    clock.advance(7 * DAY)
    path = f"/projects/{project_id}/branches/{branch_id}"
    before = await api.actions(project_id)
    recovered = await api.request("POST", f"{path}/recover")
    assert (recovered["branch"]["id"], "recovery" in recovered["branch"]) == (branch_id, False)
    (endpoint,) = recovered["endpoints"]
    assert (endpoint["id"], endpoint["current_state"]) == (endpoint_id, "idle")
    assert (await api.get(path))["branch"]["name"] == "preview"
    assert [role["name"] for role in (await api.get(f"{path}/roles"))["roles"]] == ["neondb_owner"]
    assert (await api.actions(project_id))[: len(before)] == before
    assert (await api.send("POST", f"{path}/recover")).status == 404


async def test_compute_deleted_before_its_branch_is_not_recovered(
    api: Client, project_id: str
) -> None:
    created = await api.branch(project_id, compute=True)
    await api.request("DELETE", f"/projects/{project_id}/endpoints/{created['endpoints'][0]['id']}")
    path = f"/projects/{project_id}/branches/{created['branch']['id']}"
    await api.request("DELETE", path)
    assert (await api.request("POST", f"{path}/recover"))["endpoints"] == []


async def test_recovered_compute_that_is_deleted_again_is_not_recovered(
    api: Client, project_id: str
) -> None:
    branch_id, endpoint_id = await deleted_branch(api, project_id)
    path = f"/projects/{project_id}/branches/{branch_id}"
    await api.request("POST", f"{path}/recover")
    await api.request("DELETE", f"/projects/{project_id}/endpoints/{endpoint_id}")
    await api.request("DELETE", path)
    assert (await api.request("POST", f"{path}/recover"))["endpoints"] == []


@pytest.mark.fact("branches-22", "expiration-16")
async def test_branch_cannot_be_recovered_after_seven_days(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id, _ = await deleted_branch(api, project_id)
    clock.advance(7 * DAY + 1)
    path = f"/projects/{project_id}/branches"
    assert (await api.send("POST", f"{path}/{branch_id}/recover")).status == 404
    assert await api.branch_names(project_id, "?include_deleted=true") == ["main"]


@pytest.mark.parametrize("at_once", [True, False])
async def test_branch_deleted_with_hard_delete_cannot_be_recovered(
    api: Client, project_id: str, *, at_once: bool
) -> None:
    branch_id, _ = await deleted_branch(api, project_id, hard=at_once)
    path = f"/projects/{project_id}/branches"
    again = await api.send("DELETE", f"{path}/{branch_id}?hard_delete=true")
    assert again.status == 204
    assert (await api.send("POST", f"{path}/{branch_id}/recover")).status == 404
    assert await api.branch_names(project_id, "?include_deleted=true") == ["main"]


@pytest.mark.fact("expiration-16")
@pytest.mark.parametrize("method", ["ttl", "user"])
async def test_recovered_branch_does_not_expire(
    api: Client, clock: ManualClock, project_id: str, method: str
) -> None:
    created = await api.branch(project_id, name="preview", expires_at="2026-01-01T00:01:00Z")
    path = branch_path_of(created)
    if method == "user":
        await api.request("DELETE", path)
    clock.advance(61)
    query = "include_deleted=true&search=preview"
    listed = (await api.get(f"/projects/{project_id}/branches?{query}"))["branches"]
    assert listed[0]["recovery"]["deletion_method"] == method
    recovered = await api.request("POST", f"{path}/recover")
    assert "expires_at" not in recovered["branch"]
    clock.advance(3600)
    assert (await api.get(path))["branch"]["name"] == "preview"


async def test_branch_cannot_be_recovered_without_its_parent_or_its_name(
    api: Client, project_id: str
) -> None:
    path = f"/projects/{project_id}/branches"
    parent = (await api.branch(project_id, name="parent"))["branch"]["id"]
    child = (await api.branch(project_id, name="child", parent_id=parent))["branch"]["id"]
    for branch_id in (child, parent):
        await api.request("DELETE", f"{path}/{branch_id}")
    orphan = await api.send("POST", f"{path}/{child}/recover")
    assert (orphan.status, parent in orphan.message) == (409, True)
    assert "recover it first" in orphan.message
    await api.branch(project_id, name="parent")
    await api.expect_error(409, "'parent'", "POST", f"{path}/{parent}/recover")
    await api.send("DELETE", f"{path}/{parent}?hard_delete=true")
    await api.expect_error(409, "permanently deleted", "POST", f"{path}/{child}/recover")


async def test_branch_that_is_not_deleted_cannot_be_recovered(api: Client, project_id: str) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    path = f"/projects/{project_id}/branches/{branch_id}/recover"
    await api.expect_error(404, branch_id, "POST", path)


@pytest.mark.control_plane(lock="project")
async def test_recovering_a_branch_starts_no_operations_and_is_never_locked(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(9)
    path = branch_path_of(await api.branch(project_id))
    clock.advance(9)
    await api.request("DELETE", path)
    assert (await api.send("POST", f"{path}/recover")).status == 200
