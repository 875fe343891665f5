"""Projects offered to another account, and accepted."""

import pytest

from neonctl_async.local import ManualClock
from tests.local.api.test_api_keys import project_key
from tests.local.client import Client, Reply


async def offer(api: Client, project_id: str, **body: object) -> str:
    """Offer a project; answers the path to accept it at."""
    path = f"/projects/{project_id}/transfer_requests"
    return f"{path}/{(await api.done('POST', path, body))['id']}"


async def accept(api: Client, path: str, key: str, **body: object) -> Reply:
    """Accept a project with a key."""
    return await api.send("PUT", path, body, key=key)


async def owner(api: Client, project_id: str, key: str) -> str:
    """The account that a project belongs to."""
    found = await api.get(f"/projects/{project_id}", key=key)
    return str(found["project"]["owner_id"])


async def test_an_offer_lasts_a_day_unless_told(api: Client, project_id: str) -> None:
    path = f"/projects/{project_id}/transfer_requests"
    made = await api.done("POST", path)
    assert made == {
        "id": made["id"],
        "project_id": project_id,
        "created_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-02T00:00:00Z",
    }
    assert (await api.done("POST", path, {"ttl_seconds": 60}))["expires_at"] == (
        "2026-01-01T00:01:00Z"
    )


async def test_an_accepted_project_moves_to_the_account_of_the_key(
    api: Client, project_id: str
) -> None:
    theirs = await api.newcomer("heir@example.com")
    reply = await accept(api, await offer(api, project_id), theirs)
    assert (reply.status, reply.content) == (204, b"")
    heir = (await api.get("/users/me", key=theirs))["id"]
    assert await owner(api, project_id, theirs) == heir
    assert (await api.send("GET", f"/projects/{project_id}")).status == 404


async def test_an_accepted_project_moves_to_the_organization_named(
    api: Client, project_id: str
) -> None:
    other = await api.control_plane.create_organization("Other")
    reply = await accept(api, await offer(api, project_id), api.key, org_id=other)
    assert reply.status == 204
    assert await owner(api, project_id, api.key) == other


async def test_an_organizations_key_accepts_for_its_organization(api: Client) -> None:
    own = (await api.done("POST", "/projects", {"project": {}}))["project"]["id"]
    keys = f"/organizations/{api.control_plane.org_id}/api_keys"
    token = (await api.done("POST", keys, {"key_name": "k"}))["key"]
    assert (await accept(api, await offer(api, own), token)).status == 204
    assert await owner(api, own, token) == api.control_plane.org_id


async def test_an_accepted_project_ends_its_keys(api: Client, project_id: str) -> None:
    _, token = await project_key(api, project_id)
    theirs = await api.newcomer("heir@example.com")
    assert (await accept(api, await offer(api, project_id), theirs)).status == 204
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 401


async def test_an_offer_is_accepted_once_and_ends_all_others(api: Client, project_id: str) -> None:
    theirs = await api.newcomer("heir@example.com")
    paths = [await offer(api, project_id) for _ in range(2)]
    assert (await accept(api, paths[0], theirs)).status == 204
    for path in paths:
        reply = await accept(api, path, api.key)
        assert (reply.status, "was moved or deleted" in reply.message) == (409, True)


async def test_an_offer_ends_when_the_project_is_moved_otherwise(
    api: Client, project_id: str
) -> None:
    path = await offer(api, project_id)
    body = {"destination_org_id": await api.control_plane.create_organization("Other")}
    transfer = f"/organizations/{api.control_plane.org_id}/projects/transfer"
    await api.done("POST", transfer, body | {"project_ids": [project_id]})
    assert (await accept(api, path, api.key)).status == 409


async def test_an_offer_that_has_expired_is_refused(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    theirs = await api.newcomer("heir@example.com")
    path = await offer(api, project_id, ttl_seconds=60)
    clock.advance(60)
    reply = await accept(api, path, theirs)
    assert (reply.status, "create a new one" in reply.message) == (409, True)
    assert await owner(api, project_id, api.key) == api.control_plane.org_id


async def test_an_offer_of_another_project_or_of_a_deleted_one_is_not_found(
    api: Client, project_id: str
) -> None:
    path = await offer(api, project_id)
    other = (await api.project())["project"]["id"]
    assert (await accept(api, path.replace(project_id, other), api.key)).status == 404
    await api.done("DELETE", f"/projects/{project_id}")
    assert (await accept(api, path, api.key)).status == 404


async def test_an_offer_is_void_once_its_maker_no_longer_administers_the_project(
    api: Client, project_id: str
) -> None:
    user_id = await api.control_plane.create_user("Admin", "admin@example.com")
    theirs = await api.control_plane.create_api_key("theirs", user_id=user_id)
    await api.control_plane.add_member(api.control_plane.org_id, user_id, "admin")
    path = f"/projects/{project_id}/transfer_requests"
    offered = f"{path}/{(await api.done('POST', path, key=theirs))['id']}"
    await api.control_plane.remove_member(api.control_plane.org_id, user_id)
    reply = await accept(api, offered, theirs)
    assert (reply.status, "no longer an administrator" in reply.message) == (409, True)
    await api.control_plane.add_member(api.control_plane.org_id, user_id, "member")
    assert (await accept(api, offered, theirs)).status == 409
    assert await owner(api, project_id, api.key) == api.control_plane.org_id


async def test_an_offer_made_with_an_organizations_key_is_its_organizations(
    api: Client, project_id: str
) -> None:
    keys = f"/organizations/{api.control_plane.org_id}/api_keys"
    token = (await api.done("POST", keys, {"key_name": "k"}))["key"]
    path = f"/projects/{project_id}/transfer_requests"
    offered = f"{path}/{(await api.done('POST', path, key=token))['id']}"
    theirs = await api.newcomer("heir@example.com")
    assert (await accept(api, offered, theirs)).status == 204


async def test_an_offer_ends_when_the_project_is_deleted(api: Client, project_id: str) -> None:
    path = await offer(api, project_id)
    await api.done("DELETE", f"/projects/{project_id}")
    await api.done("POST", f"/projects/{project_id}/recover")
    reply = await accept(api, path, await api.newcomer("heir@example.com"))
    assert (reply.status, "was moved or deleted" in reply.message) == (409, True)


async def test_who_passes_on_a_project_that_was_shared_with_them_keeps_no_share(
    api: Client, project_id: str
) -> None:
    theirs = await api.newcomer("heir@example.com")
    for email in ("heir@example.com", "other@example.com"):
        await api.done("POST", f"/projects/{project_id}/permissions", {"email": email})
    assert (await accept(api, await offer(api, project_id), theirs)).status == 204
    path = f"/projects/{project_id}/transfer_requests"
    onward = f"{path}/{(await api.done('POST', path, key=theirs))['id']}"
    last = await api.newcomer("last@example.com")
    assert (await accept(api, onward, last)).status == 204
    assert (await api.send("GET", f"/projects/{project_id}", key=theirs)).status == 404
    listed = await api.get(f"/projects/{project_id}/permissions", key=last)
    (kept,) = listed["project_permissions"]
    assert kept["granted_to_email"] == "other@example.com"


async def test_who_may_not_own_the_project_does_not_accept_it(api: Client, project_id: str) -> None:
    path = await offer(api, project_id)
    theirs = await api.newcomer("heir@example.com")
    _, scoped = await project_key(api, project_id)
    assert (await accept(api, path, theirs, org_id=api.control_plane.org_id)).status == 404
    assert (await accept(api, path, scoped)).status == 403
    assert (await accept(api, path, api.key, org_id=api.control_plane.org_id)).status == 400


async def test_an_administrator_offers_a_project(api: Client, project_id: str) -> None:
    _, scoped = await project_key(api, project_id)
    path = f"/projects/{project_id}/transfer_requests"
    assert (await api.send("POST", path, key=scoped)).status == 403


@pytest.mark.parametrize("seconds", [0, -1, 31_536_001, 2**63, 1.5, "60"])
async def test_a_lifetime_that_does_not_fit_is_refused(
    api: Client, project_id: str, seconds: object
) -> None:
    path = f"/projects/{project_id}/transfer_requests"
    reply = await api.send("POST", path, {"ttl_seconds": seconds})
    assert (reply.status, "ttl_seconds" in reply.message) == (400, True)
