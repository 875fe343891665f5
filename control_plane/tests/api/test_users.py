"""The account of a key, and the organizations of a user."""

from control_plane.tests.client import Client
from control_plane.tests.keys import organization_key, project_key


async def test_auth_returns_the_account_of_the_key(api: Client) -> None:
    user_id, org_id = api.control_plane.user_id, api.control_plane.org_id
    assert await api.get("/auth") == {"account_id": user_id, "auth_method": "api_key_user"}
    _, token = await organization_key(api)
    shown = await api.get("/auth", key=token)
    assert shown == {"account_id": org_id, "auth_method": "api_key_org"}
    assert (await api.send("GET", "/users/me", key=token)).status == 403


async def test_user_lists_own_organizations(api: Client) -> None:
    other = await api.control_plane.create_organization("Other")
    stranger = await api.control_plane.create_user("Stranger", "stranger@example.com")
    await api.control_plane.create_organization("Not mine", admin_id=stranger)
    listed = await api.get("/users/me/organizations")
    ids = {organization["id"] for organization in listed["organizations"]}
    assert ids == {api.control_plane.org_id, other}


async def test_organization_key_lists_the_organization_that_owns_it(api: Client) -> None:
    await api.control_plane.create_organization("Other")
    _, token = await organization_key(api)
    listed = await api.get("/users/me/organizations", key=token)
    assert [found["id"] for found in listed["organizations"]] == [api.control_plane.org_id]


async def test_project_scoped_key_lists_no_organization(api: Client, project_id: str) -> None:
    _, token = await project_key(api, project_id)
    assert await api.get("/users/me/organizations", key=token) == {"organizations": []}
