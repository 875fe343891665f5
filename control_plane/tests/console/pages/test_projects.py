"""The list of projects, and the form that creates one."""

import re

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Page, Visitor


async def create(visitor: Visitor, **values: str) -> Page:
    return await visitor.post(await visitor.get("/projects/new"), "/projects/new", **values)


def listed(page: Page) -> list[str]:
    """Return the ids of the projects of a page."""
    return re.findall(r'<tr id="project-([^"]*)"', page.html)


async def test_empty_list_shows_how_to_create_a_project(visitor: Visitor, api: Client) -> None:
    page = await visitor.get("")
    assert "There are no projects yet" in page.text
    assert f"curl -X POST {api.base_url}/projects" in page.text
    assert "/console/projects/new" in page.links
    assert not listed(page)


async def test_project_is_created_and_opened(visitor: Visitor, api: Client) -> None:
    org_id = api.control_plane.org_id
    page = await create(
        visitor, name="<b>shop", pg_version="16", region_id="azure-gwc", owner=org_id
    )
    assert page.status == 200
    assert "Project <b>shop created. Started: Create timeline, Start compute." in page.text
    assert "<b>shop" not in page.html
    assert "created" not in (await visitor.get("")).text
    (project,) = (await api.get("/projects"))["projects"]
    assert page.path == f"/projects/{project['id']}"
    shown = [project[name] for name in ("name", "pg_version", "region_id", "org_id")]
    assert shown == ["<b>shop", 16, "azure-gwc", org_id]


async def test_project_belongs_to_the_account_by_default(visitor: Visitor, api: Client) -> None:
    await create(visitor)
    (project,) = (await api.get("/projects"))["projects"]
    assert "org_id" not in project
    assert (project["name"], project["pg_version"]) == (project["id"], 18)
    assert "Your account" in (await visitor.get("")).text


@pytest.mark.control_plane(require_org_id=True)
async def test_project_has_an_organization_if_the_server_requires_it(visitor: Visitor) -> None:
    page = await create(visitor)
    assert (page.status, "org_id is required" in page.text) == (400, True)
    assert "There are no projects yet" in (await visitor.get("")).text


async def test_error_is_shown_with_what_was_typed(visitor: Visitor) -> None:
    page = await create(visitor, name="a\nb", pg_version="15", region_id="azure-gwc")
    assert page.status == 400
    assert "project.name" in page.text
    fields = page.form("/projects/new").fields
    assert (fields["name"], fields["pg_version"], fields["region_id"]) == (
        "a\nb",
        "15",
        "azure-gwc",
    )


async def test_unknown_version_is_refused(visitor: Visitor) -> None:
    for version in ("13", "x", "\u0661\u0667", "9" * 5000):
        page = await create(visitor, pg_version=version)
        assert (page.status, "project.pg_version" in page.text) == (400, True)


async def test_list_shows_projects_of_account_and_organization(
    visitor: Visitor, api: Client
) -> None:
    mine = await api.request("POST", "/projects", {"project": {"name": "mine"}})
    ours = await api.project(name="ours")
    page = await visitor.get("")
    assert listed(page) == [ours["project"]["id"], mine["project"]["id"]]
    only_ours = await visitor.get(f"?org_id={api.control_plane.org_id}")
    assert listed(only_ours) == [ours["project"]["id"]]


async def test_list_is_searched_by_name(visitor: Visitor, api: Client) -> None:
    await api.project(name="web shop")
    found = await api.project(name="blog & news")
    page = await visitor.get("?search=g+%26+n")
    assert listed(page) == [found["project"]["id"]]
    assert page.form("").fields["search"] == "g & n"
    assert "No project matches" in (await visitor.get("?search=other")).text


async def test_list_has_pages(visitor: Visitor, api: Client) -> None:
    created = [(await api.project(name=f"p {n}"))["project"]["id"] for n in range(41)]
    path = "?search=p"
    found: list[str] = []
    links: list[str] = []
    for _ in range(3):
        page = await visitor.get(path)
        found += listed(page)
        links = page.links
        path = next((link for link in links if "cursor" in link), "").removeprefix("/console")
    assert not path
    assert found == created[::-1]
    assert "/console?search=p" in links


async def test_full_last_page_leads_to_an_empty_page(visitor: Visitor, api: Client) -> None:
    for n in range(20):
        await api.project(name=f"p {n}")
    page = await visitor.get("")
    (older,) = [link for link in page.links if "cursor" in link]
    last = await visitor.get(older.removeprefix("/console"))
    assert "There are no older projects" in last.text


async def test_projects_of_others_are_hidden_until_they_are_shared(
    visitor: Visitor, api: Client
) -> None:
    key = await api.new_user_key("ann@example.com")
    created = await api.request("POST", "/projects", {"project": {"name": "secret"}}, key=key)
    project_id = created["project"]["id"]
    assert not listed(await visitor.get(""))
    assert (await visitor.get(f"/projects/{project_id}")).status == 404
    email = (await api.get("/users/me"))["email"]
    await api.request("POST", f"/projects/{project_id}/permissions", {"email": email}, key=key)
    page = await visitor.get("")
    assert "Shared with you" in page.text
    assert "Another account" in page.text
    assert "Another account" in (await visitor.get(f"/projects/{project_id}")).text
    assert listed(page) == [project_id]
