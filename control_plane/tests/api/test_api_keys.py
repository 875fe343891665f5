"""Creating, listing and revoking API keys: sections 2.1, 3.1 and 4.1 of the specification."""

import re

import pytest

from control_plane.tests.client import Client
from control_plane.tests.keys import member_key, organization_key, project_key
from neonctl_local import ManualClock


@pytest.mark.fact("records-1", "keys-3")
async def test_personal_key_is_returned_only_when_it_is_created(
    api: Client, clock: ManualClock
) -> None:
    created = await api.request("POST", "/api_keys", {"key_name": "mine"})
    assert created == {
        "id": created["id"],
        "key": created["key"],
        "name": "mine",
        "created_at": "2026-01-01T00:00:00Z",
        "created_by": api.control_plane.user_id,
    }
    clock.advance(61)
    await api.get("/users/me", key=created["key"])
    listed = await api.get("/api_keys")
    assert created["key"] not in str(listed)
    assert listed[0] == {
        "id": created["id"],
        "name": "mine",
        "created_at": "2026-01-01T00:00:00Z",
        "created_by": {"id": api.control_plane.user_id, "name": "First User", "image": ""},
        "last_used_at": "2026-01-01T00:01:01Z",
        "last_used_from_addr": "127.0.0.1",
    }


@pytest.mark.fact("keys-4")
async def test_tokens_are_random_and_have_a_prefix_per_type(api: Client, project_id: str) -> None:
    _, of_organization = await organization_key(api)
    _, of_project = await project_key(api, project_id)
    assert re.fullmatch(r"neon_org_key_[0-9a-f]{32}", of_organization)
    assert re.fullmatch(r"neon_project_key_[0-9a-f]{32}", of_project)
    assert of_organization[-32:] != of_project[-32:]


async def test_project_scoped_key_has_the_specified_fields(api: Client, project_id: str) -> None:
    path = f"{api.organization_path}/api_keys"
    body = {"key_name": "test-project-scope", "project_id": project_id}
    created = await api.request("POST", path, body)
    assert set(created) == {"id", "key", "name", "created_at", "created_by", "project_id"}
    assert (created["name"], created["project_id"]) == ("test-project-scope", project_id)
    assert created["created_by"] == api.control_plane.user_id


async def test_member_creates_project_scoped_keys_but_no_organization_keys(
    api: Client, project_id: str
) -> None:
    _, user_key = await member_key(api)
    path = f"{api.organization_path}/api_keys"
    body = {"key_name": "scoped", "project_id": project_id}
    assert (await api.send("POST", path, body, key=user_key)).status == 200
    await api.expect_error(403, "administrator", "POST", path, {"key_name": "wide"}, key=user_key)


@pytest.mark.fact("orgs-2")
async def test_creating_keys_of_an_organization_requires_a_personal_key(
    api: Client, project_id: str
) -> None:
    _, of_organization = await organization_key(api)
    path = f"{api.organization_path}/api_keys"
    for body in ({"key_name": "k"}, {"key_name": "k", "project_id": project_id}):
        assert (await api.send("POST", path, body, key=of_organization)).status == 403


async def test_project_scoped_key_needs_a_project_of_the_organization(api: Client) -> None:
    own = (await api.request("POST", "/projects", {"project": {}}))["project"]["id"]
    path = f"{api.organization_path}/api_keys"
    await api.expect_error(404, own, "POST", path, {"key_name": "k", "project_id": own})


@pytest.mark.fact("keys-2")
@pytest.mark.fact("keys-1")
async def test_revoked_personal_key_is_401_at_once_and_permanently(api: Client) -> None:
    created = await api.request("POST", "/api_keys", {"key_name": "short-lived"})
    await api.get("/users/me", key=created["key"])
    revoked = await api.request("DELETE", f"/api_keys/{created['id']}")
    assert revoked == {
        "id": created["id"],
        "name": "short-lived",
        "revoked": True,
        "created_at": "2026-01-01T00:00:00Z",
        "created_by": api.control_plane.user_id,
        "last_used_at": "2026-01-01T00:00:00Z",
        "last_used_from_addr": "127.0.0.1",
    }
    for path in ("/projects", "/nowhere"):
        assert (await api.send("GET", path, key=created["key"])).status == 401
    assert (await api.send("DELETE", f"/api_keys/{created['id']}")).status == 404
    assert created["id"] not in [key["id"] for key in await api.get("/api_keys")]


async def test_key_can_revoke_itself(api: Client) -> None:
    created = await api.request("POST", "/api_keys", {"key_name": "self"})
    await api.request("DELETE", f"/api_keys/{created['id']}", key=created["key"])
    assert (await api.send("GET", "/users/me", key=created["key"])).status == 401


async def test_only_the_owner_revokes_a_personal_key(api: Client) -> None:
    created = await api.request("POST", "/api_keys", {"key_name": "mine"})
    _, admin = await member_key(api, "admin")
    assert (await api.send("DELETE", f"/api_keys/{created['id']}", key=admin)).status == 404
    assert (await api.send("GET", "/users/me", key=created["key"])).status == 200


@pytest.mark.parametrize("scoped", [False, True])
async def test_administrators_revoke_keys_of_an_organization_and_members_cannot(
    api: Client, project_id: str, scoped: bool
) -> None:
    key_id, token = await (project_key(api, project_id) if scoped else organization_key(api))
    _, user_key = await member_key(api)
    path = f"{api.organization_path}/api_keys/{key_id}"
    assert (await api.send("DELETE", path, key=user_key)).status == 403
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 200
    revoked = await api.request("DELETE", path)
    assert (revoked["revoked"], revoked.get("project_id")) == (True, project_id if scoped else None)
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 401


async def test_organization_key_can_revoke_keys_of_its_organization(api: Client) -> None:
    key_id, token = await organization_key(api)
    path = f"{api.organization_path}/api_keys/{key_id}"
    await api.request("DELETE", path, key=token)
    assert (await api.send("GET", "/projects", key=token)).status == 401


@pytest.mark.fact("records-1", "keys-3")
async def test_keys_of_an_organization_are_listed_with_their_project(
    api: Client, project_id: str
) -> None:
    await organization_key(api, "wide")
    await project_key(api, project_id)
    listed = await api.get(f"{api.organization_path}/api_keys")
    found = [(key["name"], key.get("project_id")) for key in listed]
    assert found == [("scoped", project_id), ("wide", None)]
    assert listed[1]["last_used_at"] is None
    assert listed[1]["last_used_from_addr"] == ""


@pytest.mark.fact("keys-7")
async def test_keys_of_a_project_are_revoked_when_it_leaves_its_organization(
    api: Client, project_id: str
) -> None:
    _, token = await project_key(api, project_id)
    other = await api.move_to_new_organization(project_id)
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 401
    body = {"destination_org_id": api.control_plane.org_id, "project_ids": [project_id]}
    await api.request("POST", f"/organizations/{other}/projects/transfer", body)
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 401


async def test_keys_of_a_deleted_project_are_revoked(api: Client, project_id: str) -> None:
    _, token = await project_key(api, project_id)
    await api.request("DELETE", f"/projects/{project_id}")
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 401


@pytest.mark.parametrize("name", ["", "x" * 65, None, 3])
async def test_key_name_has_1_to_64_characters(api: Client, name: object) -> None:
    await api.expect_error(400, "key_name", "POST", "/api_keys", {"key_name": name})


@pytest.mark.parametrize("key_id", ["0", "x", "-1", "99999999999999999999999", "%C2%B2"])
async def test_unknown_key_id_is_404(api: Client, key_id: str) -> None:
    assert (await api.send("DELETE", f"/api_keys/{key_id}")).status == 404
