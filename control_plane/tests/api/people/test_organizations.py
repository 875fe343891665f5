"""Organizations and their members."""

import re

import pytest

from control_plane.tests.client import Client
from control_plane.tests.keys import member_key, organization_key


async def member_names(api: Client, query: str = "") -> list[str]:
    """Return the local parts of the members' email addresses."""
    page = await api.get(f"{api.organization_path}/members{query}")
    return [member["user"]["email"].partition("@")[0] for member in page["members"]]


async def member_path(api: Client, user_id: str) -> str:
    """Return the path of a member of the first organization."""
    path = f"{api.organization_path}/members"
    for member in (await api.get(path))["members"]:
        if member["member"]["user_id"] == user_id:
            return f"{path}/{member['member']['id']}"
    raise LookupError(user_id)


async def test_organization_can_be_read_by_its_members(api: Client) -> None:
    organization = await api.get(api.organization_path)
    assert organization["id"] == api.control_plane.org_id
    assert organization["name"] == "First Organization"
    assert (await api.send("GET", "/organizations/org-none")).status == 404


async def test_members_are_listed_in_the_requested_order_and_in_pages(api: Client) -> None:
    for name in ("bea", "cal", "dee"):
        await member_key(api, name=name)
    names = await member_names(api, "?sort_by=email&sort_order=asc")
    assert names == ["bea", "cal", "dee", "first.user"]
    path = f"{api.organization_path}/members?limit=3"
    first = await api.get(f"{path}&sort_by=email&sort_order=desc")
    assert first["pagination"]["sort_order"] == "DESC"
    second = await api.get(f"{path}&cursor={first['pagination']['next']}")
    pages = [[member["user"]["email"] for member in page["members"]] for page in (first, second)]
    assert [len(page) for page in pages] == [3, 1]
    assert pages[1] == ["bea@example.com"]
    assert "next" not in second["pagination"]


async def test_administrator_changes_roles_and_removes_members(api: Client) -> None:
    user_id, _ = await member_key(api, name="bea")
    path = await member_path(api, user_id)
    assert (await api.get(path))["role"] == "member"
    assert (await api.request("PATCH", path, {"role": "admin"}))["role"] == "admin"
    assert await api.request("DELETE", path) == {}
    assert (await api.send("GET", path)).status == 404
    assert await member_names(api) == ["first.user"]


@pytest.mark.fact("orgs-5", "orgs-9")
async def test_organization_key_sets_roles_and_removes_no_member(api: Client) -> None:
    user_id, _ = await member_key(api, name="bea")
    path = await member_path(api, user_id)
    _, token = await organization_key(api)
    await api.request("PATCH", path, {"role": "admin"}, key=token)
    await api.expect_error(403, "personal", "DELETE", path, key=token)


async def test_keys_that_a_removed_member_created_for_projects_keep_working(api: Client) -> None:
    project = (await api.project())["project"]["id"]
    user_id, personal = await member_key(api, name="bea")
    body = {"key_name": "scoped", "project_id": project}
    created = await api.request("POST", f"{api.organization_path}/api_keys", body, key=personal)
    await api.request("DELETE", await member_path(api, user_id))
    assert (await api.send("GET", f"/projects/{project}", key=personal)).status == 404
    assert (await api.send("GET", f"/projects/{project}", key=created["key"])).status == 200
    await api.request("DELETE", f"{api.organization_path}/api_keys/{created['id']}")
    assert (await api.send("GET", f"/projects/{project}", key=created["key"])).status == 401


async def test_member_cannot_change_or_remove_members(api: Client) -> None:
    _, user_key = await member_key(api, name="bea")
    path = await member_path(api, api.control_plane.user_id)
    for method, body in (("PATCH", {"role": "member"}), ("DELETE", None)):
        assert (await api.send(method, path, body, key=user_key)).status == 403


async def test_administrator_cannot_reach_members_of_another_organization(api: Client) -> None:
    user_id, _ = await member_key(api, name="bea")
    member_id = (await member_path(api, user_id)).rpartition("/")[2]
    other = await api.control_plane.create_organization("Other")
    path = f"/organizations/{other}/members/{member_id}"
    for method, body in (("GET", None), ("PATCH", {"role": "admin"}), ("DELETE", None)):
        assert (await api.send(method, path, body)).status == 404
    assert (await api.get(await member_path(api, user_id)))["role"] == "member"


@pytest.mark.fact("orgs-6")
async def test_last_administrator_cannot_be_removed(api: Client) -> None:
    path = await member_path(api, api.control_plane.user_id)
    for method, body in (("PATCH", {"role": "member"}), ("DELETE", None)):
        assert (await api.send(method, path, body)).status == 422
    await member_key(api, "admin", name="bea")
    assert (await api.request("PATCH", path, {"role": "member"}))["role"] == "member"


@pytest.mark.parametrize("query", ["sort_by=age", "sort_order=up", "limit=501", "cursor=x"])
async def test_error_for_an_invalid_query_parameter_names_it(api: Client, query: str) -> None:
    path = f"{api.organization_path}/members?{query}"
    await api.expect_error(400, query.partition("=")[0], "GET", path)


@pytest.mark.fact("orgs-12")
async def test_id_of_an_organization_has_words_and_digits(api: Client) -> None:
    assert re.fullmatch(r"org-[a-z]+-[a-z]+-[0-9]{8}", api.control_plane.org_id)
