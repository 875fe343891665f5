"""Deleted branches: recovered with their computes for seven days, unless deleted for good."""

import pytest

from neonctl_async.local import LocalControlPlane, ManualClock
from tests.local.client import Client

DAY = 86400


async def deleted_branch(api: Client, project_id: str, *, hard: bool = False) -> tuple[str, str]:
    """A branch that was deleted, and its compute."""
    created = await api.branch(project_id, name="preview", compute=True)
    branch_id = created["branch"]["id"]
    query = "?hard_delete=true" if hard else ""
    await api.done("DELETE", f"/projects/{project_id}/branches/{branch_id}{query}")
    return branch_id, created["endpoints"][0]["id"]


async def test_a_deleted_branch_is_listed_where_asked_for(api: Client, project_id: str) -> None:
    branch_id, _ = await deleted_branch(api, project_id)
    path = f"/projects/{project_id}/branches"
    listed = {one["name"]: one for one in (await api.get(path))["branches"]}
    assert set(listed) == {"main"}
    listed = {one["id"]: one for one in (await api.get(f"{path}?include_deleted=true"))["branches"]}
    assert listed.pop(branch_id)["recovery"] == {
        "deleted_at": "2026-01-01T00:00:00Z",
        "recoverable_until": "2026-01-08T00:00:00Z",
        "deletion_method": "user",
    }
    (main,) = listed.values()
    assert "recovery" not in main


async def test_a_recovered_branch_has_its_computes_back_idle(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id, endpoint_id = await deleted_branch(api, project_id)
    clock.advance(7 * DAY)
    path = f"/projects/{project_id}/branches/{branch_id}"
    before = await api.actions(project_id)
    recovered = await api.done("POST", f"{path}/recover")
    assert (recovered["branch"]["id"], "recovery" in recovered["branch"]) == (branch_id, False)
    (endpoint,) = recovered["endpoints"]
    assert (endpoint["id"], endpoint["current_state"]) == (endpoint_id, "idle")
    assert (await api.get(path))["branch"]["name"] == "preview"
    assert [one["name"] for one in (await api.get(f"{path}/roles"))["roles"]] == ["neondb_owner"]
    assert (await api.actions(project_id))[: len(before)] == before
    assert (await api.send("POST", f"{path}/recover")).status == 404


async def test_a_compute_that_was_deleted_before_its_branch_stays_deleted(
    api: Client, project_id: str
) -> None:
    created = await api.branch(project_id, compute=True)
    await api.done("DELETE", f"/projects/{project_id}/endpoints/{created['endpoints'][0]['id']}")
    path = f"/projects/{project_id}/branches/{created['branch']['id']}"
    await api.done("DELETE", path)
    assert (await api.done("POST", f"{path}/recover"))["endpoints"] == []


async def test_a_compute_that_came_back_once_is_deleted_by_itself(
    api: Client, project_id: str
) -> None:
    branch_id, endpoint_id = await deleted_branch(api, project_id)
    path = f"/projects/{project_id}/branches/{branch_id}"
    await api.done("POST", f"{path}/recover")
    await api.done("DELETE", f"/projects/{project_id}/endpoints/{endpoint_id}")
    await api.done("DELETE", path)
    assert (await api.done("POST", f"{path}/recover"))["endpoints"] == []


async def test_a_branch_is_recovered_for_seven_days(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    branch_id, _ = await deleted_branch(api, project_id)
    clock.advance(7 * DAY + 1)
    path = f"/projects/{project_id}/branches"
    assert (await api.send("POST", f"{path}/{branch_id}/recover")).status == 404
    listed = (await api.get(f"{path}?include_deleted=true"))["branches"]
    assert [one["name"] for one in listed] == ["main"]


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_branch_deleted_for_good_is_not_recovered(
    api: Client, project_id: str, *, at_once: bool
) -> None:
    branch_id, _ = await deleted_branch(api, project_id, hard=at_once)
    path = f"/projects/{project_id}/branches"
    again = await api.send("DELETE", f"{path}/{branch_id}?hard_delete=true")
    assert again.status == 204
    assert (await api.send("POST", f"{path}/{branch_id}/recover")).status == 404
    listed = (await api.get(f"{path}?include_deleted=true"))["branches"]
    assert [one["name"] for one in listed] == ["main"]


@pytest.mark.parametrize("method", ["ttl", "user"])
async def test_a_branch_with_an_expiry_comes_back_to_stay(
    api: Client, clock: ManualClock, project_id: str, method: str
) -> None:
    created = await api.branch(project_id, name="preview", expires_at="2026-01-01T00:01:00Z")
    path = f"/projects/{project_id}/branches"
    if method == "user":
        await api.done("DELETE", f"{path}/{created['branch']['id']}")
    clock.advance(61)
    listed = (await api.get(f"{path}?include_deleted=true&search=preview"))["branches"]
    assert listed[0]["recovery"]["deletion_method"] == method
    recovered = await api.done("POST", f"{path}/{created['branch']['id']}/recover")
    assert "expires_at" not in recovered["branch"]
    clock.advance(3600)
    assert (await api.get(f"{path}/{created['branch']['id']}"))["branch"]["name"] == "preview"


async def test_a_branch_does_not_come_back_where_it_has_no_place(
    api: Client, project_id: str
) -> None:
    path = f"/projects/{project_id}/branches"
    parent = (await api.branch(project_id, name="parent"))["branch"]["id"]
    child = (await api.branch(project_id, name="child", parent_id=parent))["branch"]["id"]
    for branch_id in (child, parent):
        await api.done("DELETE", f"{path}/{branch_id}")
    orphan = await api.send("POST", f"{path}/{child}/recover")
    assert (orphan.status, parent in orphan.message) == (409, True)
    assert "recover it first" in orphan.message
    await api.branch(project_id, name="parent")
    taken = await api.send("POST", f"{path}/{parent}/recover")
    assert (taken.status, "'parent'" in taken.message) == (409, True)
    await api.send("DELETE", f"{path}/{parent}?hard_delete=true")
    orphan = await api.send("POST", f"{path}/{child}/recover")
    assert (orphan.status, "permanently deleted" in orphan.message) == (409, True)


async def test_a_branch_that_is_there_is_not_recovered(api: Client, project_id: str) -> None:
    branch_id = (await api.branch(project_id))["branch"]["id"]
    path = f"/projects/{project_id}/branches/{branch_id}/recover"
    reply = await api.send("POST", path)
    assert (reply.status, branch_id in reply.message) == (404, True)


async def test_recovering_starts_no_work_and_is_never_locked(clock: ManualClock) -> None:
    async with (
        LocalControlPlane(clock=clock, lock="project") as control_plane,
        Client(control_plane) as api,
    ):
        project_id = (await api.project())["project"]["id"]
        clock.advance(9)
        branch_id = (await api.branch(project_id))["branch"]["id"]
        clock.advance(9)
        path = f"/projects/{project_id}/branches/{branch_id}"
        await api.done("DELETE", path)
        assert (await api.send("POST", f"{path}/recover")).status == 200
