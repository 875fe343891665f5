"""The users of Neon Auth."""

import pytest

from control_plane.tests.client import Client
from neonctl_local.ids import uuid_text

ADA = {"email": "ada@example.com", "name": "Ada"}


async def test_user_is_created_gets_roles_and_is_deleted(api: Client, auth_path: str) -> None:
    created = await api.send("POST", f"{auth_path}/users", ADA)
    assert (created.status, list(created.json)) == (201, ["id"])
    path = f"{auth_path}/users/{created.json['id']}"
    body = {"roles": ["admin", "editor"]}
    assert await api.request("PUT", f"{path}/role", body) == created.json
    assert (await api.send("DELETE", path)).status == 204
    for method, missing, sent in (("DELETE", path, None), ("PUT", f"{path}/role", body)):
        words = f"user {created.json['id']!r} not found"
        await api.expect_error(404, words, method, missing, sent)


async def test_email_address_is_unique_in_the_branch(api: Client, auth_path: str) -> None:
    user = await api.request("POST", f"{auth_path}/users", ADA)
    same = {"email": "ADA@example.com"}
    await api.expect_error(409, "already exists in the branch", "POST", f"{auth_path}/users", same)
    assert (await api.send("DELETE", f"{auth_path}/users/{user['id']}")).status == 204
    await api.request("POST", f"{auth_path}/users", same)


async def test_deleting_a_user_keeps_the_others(api: Client, auth_path: str) -> None:
    await api.request("POST", f"{auth_path}/users", ADA)
    bob = await api.request("POST", f"{auth_path}/users", {"email": "bob@example.com"})
    assert (await api.send("DELETE", f"{auth_path}/users/{bob['id']}")).status == 204
    assert (await api.send("DELETE", f"{auth_path}/users/{bob['id']}")).status == 404
    await api.expect_error(409, "already exists", "POST", f"{auth_path}/users", ADA)


@pytest.mark.parametrize("body", [{}, {"email": "ada"}, ADA | {"name": ""}])
async def test_invalid_user_is_400(api: Client, auth_path: str, body: object) -> None:
    await api.expect_error(400, "invalid request", "POST", f"{auth_path}/users", body)


async def test_user_needs_a_role(api: Client, auth_path: str) -> None:
    path = f"{auth_path}/users/{uuid_text()}/role"
    await api.expect_error(400, "roles", "PUT", path, {"roles": []})
