"""Users, and organizations with their members."""

import pytest

from neonctl_async.local import ApiError
from tests.local.client import Client


async def add(api: Client, name: str, role: str = "member") -> str:
    """A new user in the first organization."""
    user_id = await api.control_plane.create_user(name, f"{name}@example.com")
    await api.control_plane.add_member(
        api.control_plane.org_id, user_id, "admin" if role == "admin" else "member"
    )
    return user_id


async def members(api: Client, query: str = "") -> list[str]:
    """The addresses of the members of the first organization."""
    listed = await api.get(f"/organizations/{api.control_plane.org_id}/members{query}")
    return [member["user"]["email"].partition("@")[0] for member in listed["members"]]


async def member_path(api: Client, user_id: str) -> str:
    """The path of a member."""
    path = f"/organizations/{api.control_plane.org_id}/members"
    for member in (await api.get(path))["members"]:
        if member["member"]["user_id"] == user_id:
            return f"{path}/{member['member']['id']}"
    raise LookupError(user_id)


async def test_the_account_of_a_key_is_told(api: Client) -> None:
    assert await api.get("/auth") == {
        "account_id": api.control_plane.user_id,
        "auth_method": "api_key_user",
    }
    path = f"/organizations/{api.control_plane.org_id}/api_keys"
    token = (await api.done("POST", path, {"key_name": "k"}))["key"]
    assert await api.get("/auth", key=token) == {
        "account_id": api.control_plane.org_id,
        "auth_method": "api_key_org",
    }
    assert (await api.send("GET", "/users/me", key=token)).status == 403


async def test_a_user_lists_their_organizations(api: Client) -> None:
    other = await api.control_plane.create_organization("Other")
    stranger = await api.control_plane.create_user("Stranger", "stranger@example.com")
    await api.control_plane.create_organization("Not mine", admin_id=stranger)
    listed = await api.get("/users/me/organizations")
    ids = {organization["id"] for organization in listed["organizations"]}
    assert ids == {api.control_plane.org_id, other}


async def test_a_key_that_is_no_users_lists_the_organization_that_owns_it(
    api: Client, project_id: str
) -> None:
    await api.control_plane.create_organization("Other")
    path = f"/organizations/{api.control_plane.org_id}/api_keys"
    for body in ({"key_name": "k"}, {"key_name": "k", "project_id": project_id}):
        token = (await api.done("POST", path, body))["key"]
        listed = await api.get("/users/me/organizations", key=token)
        assert [found["id"] for found in listed["organizations"]] == [api.control_plane.org_id]


async def test_an_organization_is_read_by_its_members(api: Client) -> None:
    organization = await api.get(f"/organizations/{api.control_plane.org_id}")
    assert (organization["id"], organization["name"]) == (
        api.control_plane.org_id,
        "First Organization",
    )
    assert (await api.send("GET", "/organizations/org-none")).status == 404


async def test_members_are_listed_in_the_order_asked_and_in_pages(api: Client) -> None:
    for name in ("bea", "cal", "dee"):
        await add(api, name)
    assert await members(api, "?sort_by=email&sort_order=asc") == [
        "bea",
        "cal",
        "dee",
        "first.user",
    ]
    path = f"/organizations/{api.control_plane.org_id}/members?limit=3"
    first = await api.get(f"{path}&sort_by=email&sort_order=desc")
    assert first["pagination"]["sort_order"] == "desc"
    second = await api.get(f"{path}&cursor={first['pagination']['next']}")
    pages = [[member["user"]["email"] for member in page["members"]] for page in (first, second)]
    assert [len(page) for page in pages] == [3, 1]
    assert pages[1] == ["bea@example.com"]
    assert "next" not in second["pagination"]


async def test_an_admin_changes_roles_and_removes_members(api: Client) -> None:
    user_id = await add(api, "bea")
    path = await member_path(api, user_id)
    assert (await api.get(path))["role"] == "member"
    assert (await api.done("PATCH", path, {"role": "admin"}))["role"] == "admin"
    assert await api.done("DELETE", path) == {}
    assert (await api.send("GET", path)).status == 404
    assert await members(api) == ["first.user"]


async def test_a_member_changes_nothing_of_the_organization(api: Client) -> None:
    user_id = await add(api, "bea")
    theirs = await api.control_plane.create_api_key("theirs", user_id=user_id)
    path = await member_path(api, api.control_plane.user_id)
    for method, body in (("PATCH", {"role": "member"}), ("DELETE", None)):
        assert (await api.send(method, path, body, key=theirs)).status == 403


async def test_an_organization_keeps_an_administrator(api: Client) -> None:
    path = await member_path(api, api.control_plane.user_id)
    for method, body in (("PATCH", {"role": "member"}), ("DELETE", None)):
        assert (await api.send(method, path, body)).status == 422
    await add(api, "bea", "admin")
    assert (await api.done("PATCH", path, {"role": "member"}))["role"] == "member"


@pytest.mark.parametrize("query", ["sort_by=age", "sort_order=up", "limit=501", "cursor=x"])
async def test_a_query_that_does_not_fit_names_the_parameter(api: Client, query: str) -> None:
    reply = await api.send("GET", f"/organizations/{api.control_plane.org_id}/members?{query}")
    assert (reply.status, query.partition("=")[0] in reply.message) == (400, True)


async def test_the_console_refuses_what_makes_no_sense(api: Client) -> None:
    control_plane = api.control_plane
    with pytest.raises(ApiError, match="already exists"):
        await control_plane.create_user("Twin", "first.user@neon.localhost")
    with pytest.raises(ApiError, match="already a member"):
        await control_plane.add_member(control_plane.org_id, control_plane.user_id)
    with pytest.raises(ApiError, match="not found"):
        await control_plane.create_api_key("k", user_id="nobody")
    with pytest.raises(ApiError, match="not found"):
        await control_plane.remove_member(control_plane.org_id, "nobody")
    with pytest.raises(ApiError, match="not found"):
        await control_plane.add_member(control_plane.org_id, "nobody")
    with pytest.raises(ApiError, match="not found"):
        await control_plane.create_organization("Other", admin_id="nobody")
