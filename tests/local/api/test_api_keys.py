"""API keys: sections 2.1, 3.1, 4.1 and 5 of the specification."""

import logging
import re

import pytest

from neonctl_async.local import ManualClock
from neonctl_async.local.engine import api_keys
from tests.local.client import Client


async def organization_key(api: Client, name: str = "org key") -> tuple[int, str]:
    """A new key of the first organization: its id and its token."""
    path = f"/organizations/{api.control_plane.org_id}/api_keys"
    created = await api.done("POST", path, {"key_name": name})
    return created["id"], created["key"]


async def project_key(api: Client, project_id: str) -> tuple[int, str]:
    """A new key scoped to a project of the first organization."""
    path = f"/organizations/{api.control_plane.org_id}/api_keys"
    created = await api.done("POST", path, {"key_name": "scoped", "project_id": project_id})
    return created["id"], created["key"]


async def member(api: Client, role: str = "member") -> tuple[str, str]:
    """A new user in the first organization: their id and a personal key of theirs."""
    control_plane = api.control_plane
    user_id = await control_plane.create_user("Second User", "second@example.com")
    await control_plane.add_member(
        control_plane.org_id, user_id, "admin" if role == "admin" else "member"
    )
    return user_id, await control_plane.create_api_key("theirs", user_id=user_id)


async def stranger(api: Client) -> str:
    """A personal key of a user who is in no organization."""
    user_id = await api.control_plane.create_user("Stranger", "stranger@example.com")
    return await api.control_plane.create_api_key("theirs", user_id=user_id)


BAD_CREDENTIALS = [
    "",
    "Bearer",
    "Bearer ",
    "Basic abc",
    "neon_api_key_1234567890abcdef1234567890abcdef",
    "Bearer neon_api_key_1234567890abcdef1234567890abcdef",
    "Bearer  ",
]


@pytest.mark.parametrize("authorization", BAD_CREDENTIALS)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/projects"), ("GET", "/no/such/path"), ("PUT", "/projects"), ("POST", "/projects")],
)
async def test_without_a_valid_key_all_is_401_before_anything_else_is_looked_at(
    api: Client, authorization: str, method: str, path: str
) -> None:
    headers = {"Authorization": authorization} if authorization else None
    reply = await api.send(method, path, key="", content=b"{" * (2 << 20), headers=headers)
    assert reply.status == 401
    assert "API key" in reply.message or "Authorization" in reply.message


async def test_the_first_key_comes_without_a_key(api: Client) -> None:
    assert re.fullmatch(r"neon_api_key_[0-9a-f]{32}", api.control_plane.api_key)
    assert (await api.get("/users/me"))["id"] == api.control_plane.user_id


async def test_a_key_is_made_as_in_the_console(api: Client) -> None:
    token = await api.control_plane.create_api_key("from the console")
    assert "from the console" in [key["name"] for key in await api.get("/api_keys", key=token)]


async def test_a_personal_key_is_created_by_its_user_and_shown_once(
    api: Client, clock: ManualClock
) -> None:
    created = await api.done("POST", "/api_keys", {"key_name": "mine"})
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
    assert listed[-1] == {
        "id": created["id"],
        "name": "mine",
        "created_at": "2026-01-01T00:00:00Z",
        "created_by": {"id": api.control_plane.user_id, "name": "First User", "image": ""},
        "last_used_at": "2026-01-01T00:01:01Z",
        "last_used_from_addr": "127.0.0.1",
    }


async def test_tokens_are_random_in_the_form_of_the_samples(api: Client, project_id: str) -> None:
    _, of_organization = await organization_key(api)
    _, of_project = await project_key(api, project_id)
    assert re.fullmatch(r"neon_org_key_[0-9a-f]{32}", of_organization)
    assert re.fullmatch(r"neon_project_key_[0-9a-f]{32}", of_project)
    assert of_organization[-32:] != of_project[-32:]


async def test_a_project_scoped_key_has_the_record_of_the_specification(
    api: Client, project_id: str
) -> None:
    path = f"/organizations/{api.control_plane.org_id}/api_keys"
    body = {"key_name": "test-project-scope", "project_id": project_id}
    created = await api.done("POST", path, body)
    assert set(created) == {"id", "key", "name", "created_at", "created_by", "project_id"}
    assert (created["name"], created["project_id"]) == ("test-project-scope", project_id)
    assert created["created_by"] == api.control_plane.user_id


async def test_a_member_creates_project_scoped_keys_but_no_organization_key(
    api: Client, project_id: str
) -> None:
    _, theirs = await member(api)
    path = f"/organizations/{api.control_plane.org_id}/api_keys"
    body = {"key_name": "scoped", "project_id": project_id}
    assert (await api.send("POST", path, body, key=theirs)).status == 200
    refused = await api.send("POST", path, {"key_name": "wide"}, key=theirs)
    assert (refused.status, "administrator" in refused.message) == (403, True)


async def test_creating_keys_of_an_organization_takes_a_personal_key(
    api: Client, project_id: str
) -> None:
    _, of_organization = await organization_key(api)
    path = f"/organizations/{api.control_plane.org_id}/api_keys"
    for body in ({"key_name": "k"}, {"key_name": "k", "project_id": project_id}):
        assert (await api.send("POST", path, body, key=of_organization)).status == 403


async def test_a_key_is_scoped_to_projects_of_the_organization_only(api: Client) -> None:
    own = (await api.done("POST", "/projects", {"project": {}}))["project"]["id"]
    path = f"/organizations/{api.control_plane.org_id}/api_keys"
    reply = await api.send("POST", path, {"key_name": "k", "project_id": own})
    assert (reply.status, own in reply.message) == (404, True)


async def test_a_stranger_finds_no_organization(api: Client) -> None:
    theirs = await stranger(api)
    for method in ("GET", "POST"):
        path = f"/organizations/{api.control_plane.org_id}/api_keys"
        assert (await api.send(method, path, {"key_name": "k"}, key=theirs)).status == 404


async def test_a_personal_key_reaches_own_projects_and_those_of_its_organizations(
    api: Client, project_id: str
) -> None:
    own = (await api.done("POST", "/projects", {"project": {}}))["project"]["id"]
    _, theirs = await member(api)
    lists = [await api.get("/projects", key=key) for key in (api.key, theirs)]
    ids = [{project["id"] for project in listed["projects"]} for listed in lists]
    assert ids == [{own, project_id}, {project_id}]
    assert (await api.send("GET", f"/projects/{own}", key=theirs)).status == 404
    assert (await api.send("GET", f"/projects/{project_id}", key=await stranger(api))).status == 404


async def test_an_organization_key_has_admin_access_to_all_of_the_organization(
    api: Client, project_id: str
) -> None:
    _, token = await organization_key(api)
    own = (await api.done("POST", "/projects", {"project": {}}))["project"]["id"]
    listed = await api.get("/projects", key=token)
    assert [project["id"] for project in listed["projects"]] == [project_id]
    assert (await api.send("GET", f"/projects/{own}", key=token)).status == 404
    created = await api.done("POST", "/projects", {"project": {}}, key=token)
    assert created["project"]["org_id"] == api.control_plane.org_id
    assert (await api.send("DELETE", f"/projects/{project_id}", key=token)).status == 200


async def test_a_project_scoped_key_manages_its_project_and_sees_no_other(
    api: Client, project_id: str
) -> None:
    other = (await api.project())["project"]["id"]
    _, token = await project_key(api, project_id)
    listed = await api.get("/projects", key=token)
    assert [project["id"] for project in listed["projects"]] == [project_id]
    branch = await api.send("POST", f"/projects/{project_id}/branches", {}, key=token)
    assert branch.status == 201
    for path in (f"/projects/{other}", f"/projects/{other}/operations"):
        assert (await api.send("GET", path, key=token)).status == 404


async def test_a_project_scoped_key_cannot_delete_its_project_nor_create_another(
    api: Client, project_id: str
) -> None:
    _, token = await project_key(api, project_id)
    deletion = await api.send("DELETE", f"/projects/{project_id}", key=token)
    creation = await api.send("POST", "/projects", {"project": {}}, key=token)
    assert (deletion.status, creation.status) == (403, 403)
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/organizations/{org}"),
        ("GET", "/organizations/{org}/members"),
        ("GET", "/organizations/{org}/api_keys"),
        ("POST", "/organizations/{org}/api_keys"),
        ("DELETE", "/organizations/{org}/api_keys/1"),
        ("POST", "/organizations/{org}/projects/transfer"),
        ("GET", "/users/me"),
        ("GET", "/api_keys"),
    ],
)
async def test_a_project_scoped_key_acts_on_no_organization_and_no_account(
    api: Client, project_id: str, method: str, path: str
) -> None:
    _, token = await project_key(api, project_id)
    body = {"key_name": "k"} if method == "POST" else None
    reply = await api.send(method, path.replace("{org}", api.control_plane.org_id), body, key=token)
    assert reply.status == 403


async def test_a_revoked_personal_key_fails_at_once_and_for_good(api: Client) -> None:
    created = await api.done("POST", "/api_keys", {"key_name": "short-lived"})
    await api.get("/users/me", key=created["key"])
    revoked = await api.done("DELETE", f"/api_keys/{created['id']}")
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


async def test_a_key_can_revoke_itself(api: Client) -> None:
    created = await api.done("POST", "/api_keys", {"key_name": "self"})
    await api.done("DELETE", f"/api_keys/{created['id']}", key=created["key"])
    assert (await api.send("GET", "/users/me", key=created["key"])).status == 401


async def test_only_the_owner_revokes_a_personal_key(api: Client) -> None:
    created = await api.done("POST", "/api_keys", {"key_name": "mine"})
    _, admin = await member(api, "admin")
    assert (await api.send("DELETE", f"/api_keys/{created['id']}", key=admin)).status == 404
    assert (await api.send("GET", "/users/me", key=created["key"])).status == 200


@pytest.mark.parametrize("scoped", [False, True])
async def test_organization_admins_revoke_its_keys_and_members_do_not(
    api: Client, project_id: str, scoped: bool
) -> None:
    key_id, token = await (project_key(api, project_id) if scoped else organization_key(api))
    _, theirs = await member(api)
    path = f"/organizations/{api.control_plane.org_id}/api_keys/{key_id}"
    assert (await api.send("DELETE", path, key=theirs)).status == 403
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 200
    revoked = await api.done("DELETE", path)
    assert (revoked["revoked"], revoked.get("project_id")) == (True, project_id if scoped else None)
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 401


async def test_an_organization_key_revokes_as_an_admin_does(api: Client) -> None:
    key_id, token = await organization_key(api)
    path = f"/organizations/{api.control_plane.org_id}/api_keys/{key_id}"
    await api.done("DELETE", path, key=token)
    assert (await api.send("GET", "/projects", key=token)).status == 401


async def test_keys_of_an_organization_are_listed_with_their_project(
    api: Client, project_id: str
) -> None:
    await organization_key(api, "wide")
    await project_key(api, project_id)
    listed = await api.get(f"/organizations/{api.control_plane.org_id}/api_keys")
    assert [(key["name"], key.get("project_id")) for key in listed] == [
        ("wide", None),
        ("scoped", project_id),
    ]
    assert listed[0]["last_used_at"] is None
    assert listed[0]["last_used_from_addr"] == ""


async def test_a_user_who_leaves_loses_the_projects_of_the_organization(
    api: Client, project_id: str
) -> None:
    user_id, theirs = await member(api)
    await api.control_plane.remove_member(api.control_plane.org_id, user_id)
    assert (await api.send("GET", f"/projects/{project_id}", key=theirs)).status == 404
    assert (await api.get("/users/me", key=theirs))["id"] == user_id


async def test_a_project_that_leaves_its_organization_ends_its_keys_for_good(
    api: Client, project_id: str
) -> None:
    _, token = await project_key(api, project_id)
    here, there = api.control_plane.org_id, await api.control_plane.create_organization("Other")
    for source, destination in ((here, there), (there, here)):
        await api.done(
            "POST",
            f"/organizations/{source}/projects/transfer",
            {"destination_org_id": destination, "project_ids": [project_id]},
        )
        assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 401


async def test_a_project_that_is_deleted_ends_its_keys(api: Client, project_id: str) -> None:
    _, token = await project_key(api, project_id)
    await api.done("DELETE", f"/projects/{project_id}")
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 401


async def test_keys_whose_hashes_begin_alike_are_told_apart(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_keys, "_LOCATOR", 0)
    first, second = [(await api.control_plane.create_api_key(name)) for name in ("one", "two")]
    revoked = (await api.get("/api_keys", key=first))[-2]["id"]
    await api.done("DELETE", f"/api_keys/{revoked}", key=second)
    assert (await api.send("GET", "/users/me", key=first)).status == 401
    assert (await api.send("GET", "/users/me", key=second)).status == 200
    assert (await api.send("GET", "/users/me", key="unknown")).status == 401


async def test_past_10000_keys_a_warning_is_logged_and_the_key_made(
    api: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(api_keys, "RECOMMENDED_KEYS", 2)
    with caplog.at_level(logging.WARNING, api_keys.__name__):
        for name in ("second", "third"):
            await api.done("POST", "/api_keys", {"key_name": name})
    assert [record.message for record in caplog.records] == [
        f"account {api.control_plane.user_id} has 3 API keys; the recommended maximum is 2"
    ]


@pytest.mark.parametrize("name", ["", "x" * 65, None, 3])
async def test_a_key_name_is_1_to_64_characters(api: Client, name: object) -> None:
    reply = await api.send("POST", "/api_keys", {"key_name": name})
    assert (reply.status, "key_name" in reply.message) == (400, True)


@pytest.mark.parametrize("key_id", ["0", "x", "-1", "99999999999999999999999", "%C2%B2"])
async def test_an_unknown_key_id_is_404(api: Client, key_id: str) -> None:
    assert (await api.send("DELETE", f"/api_keys/{key_id}")).status == 404
