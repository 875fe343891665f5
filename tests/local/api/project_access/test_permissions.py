"""Projects shared with single users."""

from urllib.parse import quote

import pytest

from neonctl_async.local import ManualClock
from tests.local.client import Client

GUEST = "guest@example.com"


async def share(api: Client, project_id: str, email: str = GUEST) -> str:
    """Share a project; answers the id of the permission."""
    granted = await api.done("POST", f"/projects/{project_id}/permissions", {"email": email})
    return str(granted["id"])


async def shared(api: Client, key: str, query: str = "") -> list[str]:
    """The ids of the projects that are shared with a user."""
    page = await api.get(f"/projects/shared{query}", key=key)
    return [project["id"] for project in page["projects"]]


async def test_a_shared_project_is_seen_and_worked_with(api: Client, project_id: str) -> None:
    theirs = await api.newcomer(GUEST)
    assert (await api.send("GET", f"/projects/{project_id}", key=theirs)).status == 404
    await share(api, project_id)
    assert await shared(api, theirs) == [project_id]
    made = await api.done("POST", f"/projects/{project_id}/branches", {}, key=theirs)
    assert made["operations"]
    listed = await api.get("/projects", key=theirs)
    assert listed["projects"] == [], "it is shared, not theirs"


async def test_sharing_gives_no_administrators_power(api: Client, project_id: str) -> None:
    theirs = await api.newcomer(GUEST)
    permission_id = await share(api, project_id)
    path = f"/projects/{project_id}"
    for method, forbidden in (
        ("DELETE", path),
        ("POST", f"{path}/permissions"),
        ("DELETE", f"{path}/permissions/{permission_id}"),
        ("POST", f"{path}/transfer_requests"),
    ):
        assert (await api.send(method, forbidden, key=theirs)).status == 403
    organization = f"/organizations/{api.control_plane.org_id}"
    assert (await api.send("GET", organization, key=theirs)).status == 404


async def test_what_is_revoked_is_out_of_reach_at_once(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    theirs = await api.newcomer(GUEST)
    path = f"/projects/{project_id}/permissions/{await share(api, project_id)}"
    clock.advance(60)
    revoked = await api.done("DELETE", path)
    assert (revoked["granted_at"], revoked["revoked_at"]) == (
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:01:00Z",
    )
    assert await shared(api, theirs) == []
    assert (await api.send("GET", f"/projects/{project_id}", key=theirs)).status == 404
    assert (await api.send("DELETE", path)).status == 404
    listed = await api.get(f"/projects/{project_id}/permissions")
    assert listed == {"project_permissions": []}


async def test_a_permission_is_revoked_by_its_own_project_only(
    api: Client, project_id: str
) -> None:
    permission_id = await share(api, project_id)
    other = (await api.project())["project"]["id"]
    reply = await api.send("DELETE", f"/projects/{other}/permissions/{permission_id}")
    assert (reply.status, permission_id in reply.message) == (404, True)
    assert await shared(api, await api.newcomer(GUEST)) == [project_id]


async def test_an_address_is_granted_before_its_owner_signs_up(
    api: Client, project_id: str
) -> None:
    await share(api, project_id, "Guest@Example.com")
    assert await shared(api, await api.newcomer(GUEST)) == [project_id]


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
async def test_what_is_no_address_is_refused(api: Client, project_id: str, email: object) -> None:
    reply = await api.send("POST", f"/projects/{project_id}/permissions", {"email": email})
    assert (reply.status, "email" in reply.message) == (400, True)
    assert "regex" not in reply.message


async def test_an_address_is_granted_a_project_once(api: Client, project_id: str) -> None:
    await share(api, project_id)
    body = {"email": "GUEST@example.com"}
    reply = await api.send("POST", f"/projects/{project_id}/permissions", body)
    assert (reply.status, "already" in reply.message) == (409, True)


async def test_pages_of_shared_projects_skip_and_repeat_nothing(api: Client) -> None:
    theirs = await api.newcomer(GUEST)
    made = [(await api.project())["project"]["id"] for _ in range(3)]
    await api.project(name="kept to ourselves")
    for project_id in made:
        await share(api, project_id)
    first = await api.get("/projects/shared?limit=2", key=theirs)
    cursor = quote(first["pagination"]["cursor"], safe="")
    rest = await shared(api, theirs, f"?limit=2&cursor={cursor}")
    assert [project["id"] for project in first["projects"]] + rest == made[::-1]
    assert await shared(api, theirs, f"?search={made[0]}") == [made[0]]
    for limit in (0, 401):
        assert (await api.send("GET", f"/projects/shared?limit={limit}")).status == 400


async def test_a_shared_project_that_is_deleted_is_not_listed(api: Client, project_id: str) -> None:
    theirs = await api.newcomer(GUEST)
    await share(api, project_id)
    await api.done("DELETE", f"/projects/{project_id}")
    assert await shared(api, theirs) == []


async def test_a_project_that_changes_hands_stays_shared(api: Client, project_id: str) -> None:
    theirs = await api.newcomer(GUEST)
    await share(api, project_id)
    other = await api.control_plane.create_organization("Other")
    body = {"destination_org_id": other, "project_ids": [project_id]}
    await api.done("POST", f"/organizations/{api.control_plane.org_id}/projects/transfer", body)
    assert await shared(api, theirs) == [project_id]


async def test_nothing_is_shared_with_an_organization(api: Client, project_id: str) -> None:
    await share(api, project_id, "first.user@neon.localhost")
    path = f"/organizations/{api.control_plane.org_id}/api_keys"
    token = (await api.done("POST", path, {"key_name": "k"}))["key"]
    assert await shared(api, token) == []
