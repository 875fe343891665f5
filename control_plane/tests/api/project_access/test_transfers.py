"""Direct transfers of projects, and transfer requests."""

import pytest

from control_plane.tests.client import Client, Reply
from control_plane.tests.keys import member_key, organization_key, project_key
from neonctl_local import ManualClock


async def create_request(
    api: Client, project_id: str, key: str | None = None, **body: object
) -> str:
    """Create a transfer request. Return its path."""
    path = f"/projects/{project_id}/transfer_requests"
    return f"{path}/{(await api.request('POST', path, body, key=key))['id']}"


async def accept(api: Client, path: str, key: str, **body: object) -> Reply:
    """Accept a transfer request with a key."""
    return await api.send("PUT", path, body, key=key)


async def owner(api: Client, project_id: str, key: str) -> str:
    """Return the account that a project belongs to."""
    found = await api.get(f"/projects/{project_id}", key=key)
    return str(found["project"]["owner_id"])


@pytest.mark.fact("transfer-1")
async def test_request_expires_after_a_day_by_default(api: Client, project_id: str) -> None:
    path = f"/projects/{project_id}/transfer_requests"
    created = await api.request("POST", path)
    assert created == {
        "id": created["id"],
        "project_id": project_id,
        "created_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-02T00:00:00Z",
    }
    short = await api.request("POST", path, {"ttl_seconds": 60})
    assert short["expires_at"] == "2026-01-01T00:01:00Z"


@pytest.mark.fact("transfer-2")
async def test_accepted_project_moves_to_the_account_of_the_key(
    api: Client, project_id: str
) -> None:
    user_key = await api.new_user_key("heir@example.com")
    reply = await accept(api, await create_request(api, project_id), user_key)
    assert (reply.status, reply.content) == (204, b"")
    new_owner = (await api.get("/users/me", key=user_key))["id"]
    assert await owner(api, project_id, user_key) == new_owner
    assert (await api.send("GET", f"/projects/{project_id}")).status == 404


@pytest.mark.control_plane(require_org_id=True)
async def test_personal_key_names_the_new_owner_if_the_server_requires_it(
    api: Client, project_id: str
) -> None:
    path = await create_request(api, project_id)
    words = "org_id is required, you can find it on your organization settings page"
    await api.expect_error(400, words, "PUT", path, {})
    assert await owner(api, project_id, api.key) == api.control_plane.org_id


async def test_accepted_project_moves_to_the_named_organization(
    api: Client, project_id: str
) -> None:
    other = await api.control_plane.create_organization("Other")
    reply = await accept(api, await create_request(api, project_id), api.key, org_id=other)
    assert reply.status == 204
    assert await owner(api, project_id, api.key) == other


async def test_organization_key_accepts_for_its_organization(api: Client) -> None:
    own = (await api.request("POST", "/projects", {"project": {}}))["project"]["id"]
    _, token = await organization_key(api)
    assert (await accept(api, await create_request(api, own), token)).status == 204
    assert await owner(api, own, token) == api.control_plane.org_id


async def test_keys_of_an_accepted_project_are_revoked(api: Client, project_id: str) -> None:
    _, token = await project_key(api, project_id)
    user_key = await api.new_user_key("heir@example.com")
    assert (await accept(api, await create_request(api, project_id), user_key)).status == 204
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 401


@pytest.mark.fact("transfer-3")
async def test_accepting_a_request_closes_all_requests_of_the_project(
    api: Client, project_id: str
) -> None:
    user_key = await api.new_user_key("heir@example.com")
    paths = [await create_request(api, project_id) for _ in range(2)]
    assert (await accept(api, paths[0], user_key)).status == 204
    for path in paths:
        await api.expect_error(409, "was moved or deleted", "PUT", path, {}, key=api.key)


async def test_direct_transfer_closes_the_requests_of_the_project(
    api: Client, project_id: str
) -> None:
    path = await create_request(api, project_id)
    await api.move_to_new_organization(project_id)
    assert (await accept(api, path, api.key)).status == 409


@pytest.mark.fact("transfer-4")
async def test_expired_request_is_409(api: Client, clock: ManualClock, project_id: str) -> None:
    user_key = await api.new_user_key("heir@example.com")
    path = await create_request(api, project_id, ttl_seconds=60)
    clock.advance(60)
    await api.expect_error(409, "create a new one", "PUT", path, {}, key=user_key)
    assert await owner(api, project_id, api.key) == api.control_plane.org_id


async def test_request_of_another_or_a_deleted_project_is_404(api: Client, project_id: str) -> None:
    path = await create_request(api, project_id)
    other = (await api.project())["project"]["id"]
    assert (await accept(api, path.replace(project_id, other), api.key)).status == 404
    await api.request("DELETE", f"/projects/{project_id}")
    assert (await accept(api, path, api.key)).status == 404


async def test_request_is_409_if_its_creator_is_no_longer_an_administrator(
    api: Client, project_id: str
) -> None:
    user_id = await api.control_plane.create_user("Admin", "admin@example.com")
    user_key = await api.control_plane.create_api_key("key", user_id=user_id)
    await api.control_plane.add_member(api.control_plane.org_id, user_id, "admin")
    request_path = await create_request(api, project_id, user_key)
    await api.control_plane.remove_member(api.control_plane.org_id, user_id)
    await api.expect_error(409, "no longer an administrator", "PUT", request_path, {}, key=user_key)
    await api.control_plane.add_member(api.control_plane.org_id, user_id, "member")
    assert (await accept(api, request_path, user_key)).status == 409
    assert await owner(api, project_id, api.key) == api.control_plane.org_id


@pytest.mark.parametrize("kind", ["organization", "personal"])
async def test_request_is_409_if_the_key_that_created_it_was_revoked(
    api: Client, project_id: str, kind: str
) -> None:
    if kind == "organization":
        id, token = await organization_key(api)
        key_path = f"/organizations/{api.control_plane.org_id}/api_keys/{id}"
    else:
        created = await api.request("POST", "/api_keys", {"key_name": "lost"})
        token, key_path = created["key"], f"/api_keys/{created['id']}"
    request_path = await create_request(api, project_id, token)
    await api.request("DELETE", key_path)
    stranger = await api.new_user_key("stranger@example.com")
    await api.expect_error(409, "was revoked", "PUT", request_path, {}, key=stranger)
    assert await owner(api, project_id, api.key) == api.control_plane.org_id


async def test_request_created_with_an_organization_key_can_be_accepted(
    api: Client, project_id: str
) -> None:
    _, token = await organization_key(api)
    request_path = await create_request(api, project_id, token)
    user_key = await api.new_user_key("heir@example.com")
    assert (await accept(api, request_path, user_key)).status == 204


async def test_deleting_a_project_closes_its_requests(api: Client, project_id: str) -> None:
    path = await create_request(api, project_id)
    await api.request("DELETE", f"/projects/{project_id}")
    await api.request("POST", f"/projects/{project_id}/recover")
    user_key = await api.new_user_key("heir@example.com")
    await api.expect_error(409, "was moved or deleted", "PUT", path, {}, key=user_key)


@pytest.mark.fact("transfer-2")
async def test_former_owner_of_a_transferred_project_has_no_access(
    api: Client, project_id: str
) -> None:
    user_key = await api.new_user_key("heir@example.com")
    for email in ("heir@example.com", "other@example.com"):
        await api.request("POST", f"/projects/{project_id}/permissions", {"email": email})
    assert (await accept(api, await create_request(api, project_id), user_key)).status == 204
    request_path = await create_request(api, project_id, user_key)
    last = await api.new_user_key("last@example.com")
    assert (await accept(api, request_path, last)).status == 204
    assert (await api.send("GET", f"/projects/{project_id}", key=user_key)).status == 404
    listed = await api.get(f"/projects/{project_id}/permissions", key=last)
    (permission,) = listed["project_permissions"]
    assert permission["granted_to_email"] == "other@example.com"


@pytest.mark.fact("transfer-5")
async def test_request_cannot_be_accepted_for_a_forbidden_or_the_same_owner(
    api: Client, project_id: str
) -> None:
    path = await create_request(api, project_id)
    user_key = await api.new_user_key("heir@example.com")
    _, scoped = await project_key(api, project_id)
    assert (await accept(api, path, user_key, org_id=api.control_plane.org_id)).status == 404
    assert (await accept(api, path, scoped)).status == 403
    assert (await accept(api, path, api.key, org_id=api.control_plane.org_id)).status == 400


async def test_creating_a_request_requires_an_administrator(api: Client, project_id: str) -> None:
    _, scoped = await project_key(api, project_id)
    path = f"/projects/{project_id}/transfer_requests"
    assert (await api.send("POST", path, key=scoped)).status == 403


@pytest.mark.parametrize("seconds", [0, -1, 31_536_001, 2**63, 1.5, "60"])
async def test_invalid_ttl_seconds_is_400(api: Client, project_id: str, seconds: object) -> None:
    path = f"/projects/{project_id}/transfer_requests"
    await api.expect_error(400, "ttl_seconds", "POST", path, {"ttl_seconds": seconds})


async def test_user_transfers_own_projects_to_an_organization(api: Client) -> None:
    own = (await api.request("POST", "/projects", {"project": {}}))["project"]["id"]
    body = {"destination_org_id": api.control_plane.org_id, "project_ids": [own]}
    assert await api.request("POST", "/users/me/projects/transfer", body) == {}
    assert await owner(api, own, api.key) == api.control_plane.org_id
    assert (await api.send("POST", "/users/me/projects/transfer", body)).status == 404


async def test_direct_transfer_with_an_unknown_project_moves_no_project(
    api: Client, project_id: str
) -> None:
    other = await api.control_plane.create_organization("Other")
    body = {"destination_org_id": other, "project_ids": [project_id, "none"]}
    path = f"{api.organization_path}/projects/transfer"
    assert (await api.send("POST", path, body)).status == 404
    assert await owner(api, project_id, api.key) == api.control_plane.org_id


@pytest.mark.fact("orgs-10")
async def test_direct_transfer_requires_an_administrator(api: Client, project_id: str) -> None:
    _, member = await member_key(api)
    other = await api.control_plane.create_organization("Other")
    body = {"destination_org_id": other, "project_ids": [project_id]}
    path = f"{api.organization_path}/projects/transfer"
    assert (await api.send("POST", path, body, key=member)).status == 403
    assert await owner(api, project_id, api.key) == api.control_plane.org_id


async def test_direct_transfer_to_the_same_organization_is_400(
    api: Client, project_id: str
) -> None:
    body = {"destination_org_id": api.control_plane.org_id, "project_ids": [project_id]}
    path = f"{api.organization_path}/projects/transfer"
    await api.expect_error(400, "already belong to this organization", "POST", path, body)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"project_ids": ["x"]}, 400, "destination_org_id (field required)"),
        ({"project_ids": [], "destination_org_id": "x"}, 400, "project_ids"),
        ({"project_ids": ["x"], "destination_org_id": "org-none"}, 404, "org-none"),
    ],
)
async def test_invalid_direct_transfer_is_rejected(
    api: Client, body: object, status: int, words: str
) -> None:
    path = f"{api.organization_path}/projects/transfer"
    await api.expect_error(status, words, "POST", path, body)


@pytest.mark.fact("orgs-4", "orgs-11")
async def test_direct_transfer_needs_a_personal_key_and_at_most_400_projects(
    api: Client, project_id: str
) -> None:
    other = await api.control_plane.create_organization("Other")
    path = f"{api.organization_path}/projects/transfer"
    body = {"destination_org_id": other, "project_ids": [project_id]}
    _, token = await organization_key(api)
    assert (await api.send("POST", path, body, key=token)).status in {403, 404}
    many = body | {"project_ids": [f"p-{number}" for number in range(401)]}
    await api.expect_error(400, "project_ids", "POST", path, many)
