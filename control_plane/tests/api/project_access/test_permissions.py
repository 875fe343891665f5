"""Permissions, which share a project with a user."""

from urllib.parse import quote

import pytest

from control_plane.tests.client import Client
from control_plane.tests.keys import member_key, organization_key
from neonctl_local import ManualClock

GUEST = "guest@example.com"


async def share(api: Client, project_id: str, email: str = GUEST) -> str:
    """Share a project. Return the id of the permission."""
    granted = await api.request("POST", f"/projects/{project_id}/permissions", {"email": email})
    return str(granted["id"])


async def shared(api: Client, key: str, query: str = "") -> list[str]:
    """Return the ids of the projects that are shared with a user."""
    page = await api.get(f"/projects/shared{query}", key=key)
    return [project["id"] for project in page["projects"]]


async def test_shared_project_can_be_read_and_changed(api: Client, project_id: str) -> None:
    user_key = await api.new_user_key(GUEST)
    assert (await api.send("GET", f"/projects/{project_id}", key=user_key)).status == 404
    await share(api, project_id)
    assert await shared(api, user_key) == [project_id]
    created = await api.request("POST", f"/projects/{project_id}/branches", {}, key=user_key)
    assert created["operations"]
    listed = await api.get("/projects", key=user_key)
    assert listed["projects"] == [], "the shared project is listed as an own project"


@pytest.mark.fact("projects-12")
async def test_sharing_gives_no_administrator_access(api: Client, project_id: str) -> None:
    user_key = await api.new_user_key(GUEST)
    permission_id = await share(api, project_id)
    path = f"/projects/{project_id}"
    for method, forbidden, body in (
        ("DELETE", path, None),
        ("DELETE", f"{path}/permissions/{permission_id}", None),
        ("POST", f"{path}/transfer_requests", None),
    ):
        assert (await api.send(method, forbidden, body, key=user_key)).status == 403
    assert (await api.send("GET", api.organization_path, key=user_key)).status == 404
    body = {"email": "third@example.com"}
    await api.request("POST", f"{path}/permissions", body, key=user_key)


@pytest.mark.fact("projects-11", "projects-19")
async def test_members_of_the_organization_share_its_projects_with_others(
    api: Client, project_id: str
) -> None:
    _, key = await member_key(api, name="bea")
    path = f"/projects/{project_id}/permissions"
    body = {"email": "BEA@example.com"}
    await api.expect_error(409, "member of the organization", "POST", path, body)
    granted = await api.request("POST", path, {"email": GUEST}, key=key)
    await api.request("DELETE", f"{path}/{granted['id']}", key=key)
    scoped = await api.request(
        "POST",
        f"{api.organization_path}/api_keys",
        {"key_name": "scoped", "project_id": project_id},
    )
    permission = await share(api, project_id)
    for method, refused in (("POST", path), ("DELETE", f"{path}/{permission}")):
        sent = {"email": "x@example.com"} if method == "POST" else None
        reply = await api.send(method, refused, sent, key=scoped["key"])
        assert reply.status == 403


async def test_revoked_permission_gives_no_access(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    user_key = await api.new_user_key(GUEST)
    path = f"/projects/{project_id}/permissions/{await share(api, project_id)}"
    clock.advance(60)
    revoked = await api.request("DELETE", path)
    assert revoked["granted_at"] == "2026-01-01T00:00:00Z"
    assert revoked["revoked_at"] == "2026-01-01T00:01:00Z"
    assert await shared(api, user_key) == []
    assert (await api.send("GET", f"/projects/{project_id}", key=user_key)).status == 404
    assert (await api.send("DELETE", path)).status == 404
    listed = await api.get(f"/projects/{project_id}/permissions")
    assert listed == {"project_permissions": []}


async def test_permission_of_another_project_is_404(api: Client, project_id: str) -> None:
    permission_id = await share(api, project_id)
    other = (await api.project())["project"]["id"]
    path = f"/projects/{other}/permissions/{permission_id}"
    await api.expect_error(404, permission_id, "DELETE", path)
    assert await shared(api, await api.new_user_key(GUEST)) == [project_id]


async def test_project_is_shared_with_an_address_before_its_owner_signs_up(
    api: Client, project_id: str
) -> None:
    await share(api, project_id, "Guest@Example.com")
    assert await shared(api, await api.new_user_key(GUEST)) == [project_id]


async def test_permissions_are_listed_with_their_addresses(api: Client, project_id: str) -> None:
    first = await share(api, project_id)
    await share(api, project_id, "other@example.com")
    listed = (await api.get(f"/projects/{project_id}/permissions"))["project_permissions"]
    assert [found["granted_to_email"] for found in listed] == [GUEST, "other@example.com"]
    assert listed[0] == {
        "id": first,
        "granted_to_email": GUEST,
        "granted_at": "2026-01-01T00:00:00Z",
    }


@pytest.mark.parametrize(
    "email", ["", "guest", "@example.com", "a b@c", "a@b\n", 1, "a@" + "b" * 255]
)
async def test_invalid_address_is_400(api: Client, project_id: str, email: object) -> None:
    reply = await api.send("POST", f"/projects/{project_id}/permissions", {"email": email})
    assert (reply.status, "email" in reply.message) == (400, True)
    assert "regex" not in reply.message


async def test_sharing_a_project_twice_with_an_address_is_409(api: Client, project_id: str) -> None:
    await share(api, project_id)
    body = {"email": "GUEST@example.com"}
    await api.expect_error(409, "already", "POST", f"/projects/{project_id}/permissions", body)


async def test_pages_skip_and_repeat_no_shared_project(api: Client) -> None:
    user_key = await api.new_user_key(GUEST)
    created = [(await api.project())["project"]["id"] for _ in range(3)]
    await api.project(name="not shared")
    for project_id in created:
        await share(api, project_id)
    first = await api.get("/projects/shared?limit=2", key=user_key)
    cursor = quote(first["pagination"]["cursor"], safe="")
    rest = await shared(api, user_key, f"?limit=2&cursor={cursor}")
    assert [project["id"] for project in first["projects"]] + rest == created[::-1]
    assert await shared(api, user_key, f"?search={created[0]}") == [created[0]]
    for limit in (0, 401):
        assert (await api.send("GET", f"/projects/shared?limit={limit}")).status == 400


async def test_deleted_shared_project_is_not_listed(api: Client, project_id: str) -> None:
    user_key = await api.new_user_key(GUEST)
    await share(api, project_id)
    await api.request("DELETE", f"/projects/{project_id}")
    assert await shared(api, user_key) == []


async def test_transferred_project_stays_shared(api: Client, project_id: str) -> None:
    user_key = await api.new_user_key(GUEST)
    await share(api, project_id)
    await api.move_to_new_organization(project_id)
    assert await shared(api, user_key) == [project_id]


async def test_organization_key_lists_no_shared_projects(api: Client, project_id: str) -> None:
    await share(api, project_id)
    _, token = await organization_key(api)
    assert await shared(api, token) == []


@pytest.mark.fact("projects-20", "projects-22")
async def test_collaborator_renames_the_project_and_uses_its_snapshots(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    key = await api.new_user_key(GUEST)
    await share(api, project_id)
    path = f"/projects/{project_id}"
    await api.request("PATCH", path, {"project": {"name": "renamed"}}, key=key)
    assert (await api.send("DELETE", path, key=key)).status == 403
    assert (await api.send("POST", f"{path}/transfer_requests", key=key)).status == 403
    main = (await api.main_branch(project_id))["id"]
    taken = await api.request("POST", f"{path}/branches/{main}/snapshot", key=key)
    clock.advance(9)
    snapshot = f"{path}/snapshots/{taken['snapshot']['id']}"
    await api.request("POST", f"{snapshot}/restore", key=key)
    clock.advance(9)
    await api.request("DELETE", snapshot, key=key)


@pytest.mark.fact("projects-21", "protected-9")
async def test_member_creates_renames_and_protects_and_deletes_no_project(api: Client) -> None:
    _, key = await member_key(api, name="bea")
    body: dict[str, object] = {"project": {"org_id": api.control_plane.org_id}}
    created = await api.request("POST", "/projects", body, key=key)
    path = f"/projects/{created['project']['id']}"
    await api.request("PATCH", path, {"project": {"name": "renamed"}}, key=key)
    branch = f"{path}/branches/{created['branch']['id']}"
    for protected in (True, False):
        changes = {"branch": {"protected": protected}}
        changed = await api.request("PATCH", branch, changes, key=key)
        assert changed["branch"]["protected"] == protected
    assert (await api.send("DELETE", path, key=key)).status == 403
