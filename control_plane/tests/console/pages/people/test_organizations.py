"""The organizations of a person."""

from control_plane.tests.client import Client
from control_plane.tests.console.people import member, signed_in
from control_plane.tests.console.visitor import Visitor

NEW = "/organizations/new"


async def test_list_shows_the_own_organizations_with_the_role(
    api: Client, visitor: Visitor
) -> None:
    await api.control_plane.create_organization("Other")
    page = await visitor.get("/organizations")
    assert "First Organization" in page.text
    assert "Other" in page.text
    assert page.text.count(" admin ") == 2
    assert f"/console{api.organization_path}/keys" in page.links
    async with member(api) as bea:
        page = await bea.get("/organizations")
        assert "Other" not in page.text
        assert " member " in page.text


async def test_person_without_an_organization_sees_how_to_create_one(api: Client) -> None:
    async with signed_in(api, await api.new_user_key("bea@example.com")) as bea:
        page = await bea.get("/organizations")
    assert "You are in no organization" in page.text
    assert page.links.count(f"/console{NEW}") == 2


async def test_creator_of_an_organization_becomes_its_administrator(
    api: Client, visitor: Visitor
) -> None:
    page = await visitor.post(await visitor.get(NEW), NEW, name="<i>Team")
    assert page.status == 200
    assert "You are its administrator" in page.text
    assert "Invite a person" in page.text
    assert "&lt;i&gt;Team" in page.html
    found = (await api.get("/users/me/organizations"))["organizations"]
    assert found[-1]["name"] == "<i>Team"


async def test_refused_name_is_kept(visitor: Visitor) -> None:
    page = await visitor.post(await visitor.get(NEW), NEW, name="a\tb")
    assert page.status == 400
    assert page.form(NEW).fields["name"] == "a\tb"


async def test_member_leaves_and_loses_access(api: Client, project_id: str) -> None:
    path = f"{api.organization_path}/leave"
    async with member(api) as bea:
        assert "shop" not in (await bea.get("")).text
        confirmation = await bea.get(path)
        assert "You lose access to all projects" in confirmation.text
        page = await bea.post(confirmation, path)
        assert page.path == "/organizations"
        assert "You have left the organization" in page.text
        assert (await bea.get(f"{api.organization_path}/members")).status == 404
        assert (await bea.get(path)).status == 404
        assert project_id not in (await bea.get("")).html


async def test_last_administrator_cannot_leave(api: Client, visitor: Visitor) -> None:
    path = f"{api.organization_path}/leave"
    page = await visitor.post(await visitor.get(path), path)
    assert page.status == 422
    assert "an organization needs at least one administrator" in page.text
    assert page.form(path).method == "post"
    assert (await visitor.get(f"{api.organization_path}/members")).status == 200
