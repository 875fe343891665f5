"""Roles of the members of an organization on one of its projects."""

from typing import Any

import pytest

from control_plane.tests.client import Client
from control_plane.tests.keys import member_key, organization_key, project_key
from neonctl_local import ManualClock


async def members(api: Client, project_id: str, query: str = "", key: str | None = None) -> Any:
    page = await api.get(f"/projects/{project_id}/members{query}", key=key)
    return page["project_members"]


async def role_path(api: Client, project_id: str, user_id: str) -> str:
    """Return the path of the role of a user on a project."""
    found = await members(api, project_id)
    [member] = [member for member in found if member["user_id"] == user_id]
    return f"/projects/{project_id}/members/{member['member_id']}/role"


async def set_role(api: Client, project_id: str, user_id: str, role: str) -> Any:
    return await api.request("PUT", await role_path(api, project_id, user_id), {"role": role})


async def test_members_are_listed_with_the_defaults_of_their_roles(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    clock.advance(1)
    user_id, key = await member_key(api)
    member, admin = await members(api, project_id, key=key)
    assert member.pop("member_id") != admin.pop("member_id")
    assert member == {
        "user_id": user_id,
        "email": "second@example.com",
        "name": "second",
        "org_role": "member",
        "project_role": "editor",
        "org_default_project_permission": "EDITOR",
        "effective_project_permission": "EDITOR",
        "grant_source": "org_role_default",
    }
    assert admin == {
        "user_id": api.control_plane.user_id,
        "email": "first.user@neon.invalid",
        "name": "First User",
        "org_role": "admin",
        "project_role": "admin",
        "org_default_project_permission": "ADMIN",
        "effective_project_permission": "ADMIN",
        "grant_source": "org_admin_override",
    }


async def test_role_of_an_administrator_gives_access_to_one_project(
    api: Client, project_id: str
) -> None:
    user_id, key = await member_key(api)
    other = (await api.project())["project"]["id"]
    changed = await set_role(api, project_id, user_id, "admin")
    [member] = [m for m in await members(api, project_id) if m["user_id"] == user_id]
    assert member.pop("grant_source") == "explicit"
    assert changed == member | {
        "project_id": project_id,
        "explicit_project_permission": "ADMIN",
        "credential_rotation_recommended": False,
        "org_api_key_rotation_recommended": False,
    }
    for path, status in ((other, 403), (project_id, 200)):
        assert (await api.send("DELETE", f"/projects/{path}", key=key)).status == status


async def test_project_shows_the_permission_of_the_caller(api: Client, project_id: str) -> None:
    user_id, member = await member_key(api)
    _, organization = await organization_key(api)

    async def permission(key: str | None, project: str = project_id) -> str | None:
        shown = (await api.get(f"/projects/{project}", key=key))["project"]
        permission: str | None = shown.get("effective_project_permission")
        return permission

    assert await permission(None) == "ADMIN"
    assert await permission(member) == "EDITOR"
    await set_role(api, project_id, user_id, "admin")
    assert await permission(member) == "ADMIN"
    assert await permission(organization) is None
    own = (await api.request("POST", "/projects", {"project": {}}))["project"]["id"]
    assert await permission(None, own) is None


async def test_role_on_a_project_only_raises_the_default(api: Client, project_id: str) -> None:
    user_id, key = await member_key(api)
    changed = await set_role(api, project_id, user_id, "viewer")
    assert changed["explicit_project_permission"] == "VIEWER"
    assert (changed["effective_project_permission"], changed["project_role"]) == (
        "EDITOR",
        "editor",
    )
    created = await api.request("POST", f"/projects/{project_id}/branches", {}, key=key)
    assert created["operations"]


async def test_removed_role_leaves_the_default(api: Client, project_id: str) -> None:
    user_id, key = await member_key(api)
    _, scoped = await project_key(api, project_id)
    await set_role(api, project_id, user_id, "admin")
    path = await role_path(api, project_id, user_id)
    for recommended in (True, False):
        removed = await api.request("DELETE", path)
        assert "explicit_project_permission" not in removed
        assert removed["effective_project_permission"] == "EDITOR"
        assert removed["credential_rotation_recommended"] is recommended
        assert removed["org_api_key_rotation_recommended"] is False
    assert (await api.send("DELETE", f"/projects/{project_id}", key=key)).status == 403
    assert (await api.send("GET", f"/projects/{project_id}", key=scoped)).status == 200


async def test_roles_of_other_members_and_projects_remain(api: Client, project_id: str) -> None:
    other_project = (await api.project())["project"]["id"]
    (ada, _), (bob, _) = [await member_key(api, name=name) for name in ("ada", "bob")]
    for user_id in (ada, bob):
        for project in (project_id, other_project):
            await set_role(api, project, user_id, "admin")
    await api.request("DELETE", await role_path(api, project_id, ada))
    administrators = [
        (project, member["user_id"])
        for project in (project_id, other_project)
        for member in await members(api, project)
        if member["grant_source"] == "explicit"
    ]
    assert set(administrators) == {(project_id, bob), (other_project, ada), (other_project, bob)}


async def test_lower_role_recommends_new_keys_to_the_creator_of_keys(
    api: Client, project_id: str
) -> None:
    user_id, key = await member_key(api)
    await set_role(api, project_id, user_id, "admin")
    body = {"key_name": "scoped", "project_id": project_id}
    await api.request("POST", f"{api.organization_path}/api_keys", body, key=key)
    changed = await set_role(api, project_id, user_id, "editor")
    assert changed["credential_rotation_recommended"] is True
    assert changed["org_api_key_rotation_recommended"] is True


@pytest.mark.parametrize(
    ("method", "body", "confirmation"),
    [
        ("PUT", {"role": "viewer"}, "confirm_self_demotion"),
        ("DELETE", None, "confirm_self_lockout"),
    ],
)
async def test_administrators_confirm_the_loss_of_their_own_role(
    api: Client, project_id: str, method: str, body: object, confirmation: str
) -> None:
    user_id, key = await member_key(api)
    await set_role(api, project_id, user_id, "admin")
    path = await role_path(api, project_id, user_id)
    await api.expect_error(409, f"send {confirmation}=true", method, path, body, key=key)
    assert (await api.send(method, f"{path}?{confirmation}=false", body, key=key)).status == 409
    changed = await api.request(method, f"{path}?{confirmation}=true", body, key=key)
    assert changed["effective_project_permission"] == "EDITOR"
    await api.expect_error(403, "member-level", method, path, body, key=key)


async def test_administrator_of_the_organization_keeps_access_without_confirmation(
    api: Client, project_id: str
) -> None:
    changed = await set_role(api, project_id, api.control_plane.user_id, "viewer")
    assert changed["explicit_project_permission"] == "VIEWER"
    assert changed["effective_project_permission"] == "ADMIN"
    assert changed["credential_rotation_recommended"] is False


async def test_members_and_project_scoped_keys_set_no_roles(api: Client, project_id: str) -> None:
    user_id, member = await member_key(api)
    _, scoped = await project_key(api, project_id)
    path = await role_path(api, project_id, user_id)
    for key in (member, scoped):
        for method, body in (("PUT", {"role": "admin"}), ("DELETE", None)):
            await api.expect_error(403, "member-level access", method, path, body, key=key)
    _, organization = await organization_key(api)
    changed = await api.request("PUT", path, {"role": "admin"}, key=organization)
    assert changed["project_role"] == "admin"


async def test_administrator_of_a_project_does_not_transfer_it(
    api: Client, project_id: str
) -> None:
    user_id, key = await member_key(api)
    await set_role(api, project_id, user_id, "admin")
    path = f"/projects/{project_id}/transfer_requests"
    await api.expect_error(403, "administrator of the organization", "POST", path, {}, key=key)


async def test_project_of_a_user_has_no_members(api: Client) -> None:
    created = await api.request("POST", "/projects", {"project": {}})
    project_id = created["project"]["id"]
    path = f"/projects/{project_id}/members"
    await api.expect_error(404, "belongs to a user", "GET", path)
    await api.expect_error(404, "belongs to a user", "DELETE", f"{path}/m/role")


async def test_unknown_member_or_role_is_refused(api: Client, project_id: str) -> None:
    path = f"/projects/{project_id}/members"
    await api.expect_error(404, "member 'm' not found", "PUT", f"{path}/m/role", {"role": "admin"})
    own = await role_path(api, project_id, api.control_plane.user_id)
    await api.expect_error(400, "role", "PUT", own, {"role": "owner"})
    await api.expect_error(400, "role (field required)", "PUT", own, {})
    stranger = await api.new_user_key("stranger@example.com")
    await api.expect_error(404, project_id, "GET", path, key=stranger)


async def test_role_ends_when_the_member_leaves_the_organization(
    api: Client, project_id: str
) -> None:
    plane = api.control_plane
    user_id, key = await member_key(api)
    await set_role(api, project_id, user_id, "admin")
    await plane.remove_member(plane.org_id, user_id)
    assert (await api.send("GET", f"/projects/{project_id}", key=key)).status == 404
    await plane.add_member(plane.org_id, user_id, "member")
    assert (await api.send("DELETE", f"/projects/{project_id}", key=key)).status == 403


async def test_roles_end_when_the_project_leaves_the_organization(
    api: Client, project_id: str
) -> None:
    user_id = api.control_plane.user_id
    await set_role(api, project_id, user_id, "viewer")
    other = await api.move_to_new_organization(project_id)
    body = {"destination_org_id": api.control_plane.org_id, "project_ids": [project_id]}
    await api.request("POST", f"/organizations/{other}/projects/transfer", body)
    [member] = await members(api, project_id)
    assert "explicit_project_permission" not in member


async def test_pages_skip_and_repeat_no_member(
    api: Client, clock: ManualClock, project_id: str
) -> None:
    for number in range(4):
        clock.advance(number % 2)
        await member_key(api, name=f"m{number}")
    everyone = await members(api, project_id)
    assert len(everyone) == 5
    path = f"/projects/{project_id}/members"
    listed: list[Any] = []
    query = "?limit=2"
    while query:
        page = await api.get(f"{path}{query}")
        listed += page["project_members"]
        cursor = page["pagination"].get("next")
        query = f"?limit=2&cursor={cursor}" if cursor else ""
    assert listed == everyone
    await api.expect_error(400, "use 1 to 500", "GET", f"{path}?limit=501")
