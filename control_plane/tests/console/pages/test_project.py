"""The dashboard of a project."""

import re

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Page, Visitor
from neonctl_local import ManualClock


def branches(page: Page) -> list[str]:
    """Return the ids of the branches of a page."""
    return re.findall(r'<tr id="branch-([^"]*)"', page.html)


def announced(page: Page, row: str) -> str:
    """Return what screen readers hear about a row."""
    (text,) = re.findall(rf'<tr id="{row}" data-announce="([^"]*)"', page.html)
    return str(text)


async def test_dashboard_shows_the_properties_of_the_project(visitor: Visitor, api: Client) -> None:
    created = await api.project(name="shop", history_retention_seconds=7 * 86400)
    project_id = created["project"]["id"]
    page = await visitor.get(f"/projects/{project_id}")
    for text in (project_id, "AWS US East 2 (Ohio)", "7 days", "Organization"):
        assert text in page.text
    assert f'data-changes="/console/projects/{project_id}/changes"' in page.html
    assert f"/console/projects/{project_id}/operations" in page.links
    assert not [link for link in page.links if "/sql" in link]


async def test_dashboard_shows_states_as_they_change(
    visitor: Visitor, api: Client, clock: ManualClock
) -> None:
    created = await api.project()
    project_id, branch_id = created["project"]["id"], created["branch"]["id"]
    endpoint_id = created["endpoints"][0]["id"]
    page = await visitor.get(f"/projects/{project_id}")
    assert announced(page, f"branch-{branch_id}") == "Branch main: Creating, compute Starting"
    clock.advance(9)
    page = await visitor.get(f"/projects/{project_id}")
    assert announced(page, f"branch-{branch_id}") == "Branch main: Ready, compute Active"
    assert announced(page, f"compute-{endpoint_id}") == f"Compute {endpoint_id}: Active"
    assert "1 of 1 active" in page.text
    actions = {form.action.rpartition("/")[2] for form in page.forms if "/computes/" in form.action}
    assert actions == {"suspend", "restart"}
    await api.request("POST", f"/projects/{project_id}/endpoints/{endpoint_id}/suspend")
    page = await visitor.get(f"/projects/{project_id}")
    assert announced(page, f"compute-{endpoint_id}") == f"Compute {endpoint_id}: Suspending"
    clock.advance(9)
    page = await visitor.get(f"/projects/{project_id}")
    assert announced(page, f"compute-{endpoint_id}") == f"Compute {endpoint_id}: Idle"
    actions = {form.action.rpartition("/")[2] for form in page.forms if "/computes/" in form.action}
    assert actions == {"start"}


async def test_branches_are_a_tree(visitor: Visitor, api: Client, project_id: str) -> None:
    main = (await api.main_branch(project_id))["id"]
    old = (await api.branch(project_id, name="old"))["branch"]["id"]
    new = (await api.branch(project_id, name="new", protected=True))["branch"]["id"]
    leaf = (await api.branch(project_id, name="leaf", parent_id=old))["branch"]["id"]
    page = await visitor.get(f"/projects/{project_id}")
    assert branches(page) == [main, new, old, leaf]
    levels = re.findall(r'data-label="Branch" class="tree-(\d)"', page.html)
    assert levels == ["0", "1", "1", "2"]
    assert page.text.count("protected") == 1
    assert "default" in page.text


async def test_branches_have_pages_and_a_search(
    visitor: Visitor, api: Client, project_id: str
) -> None:
    for number in range(60):
        await api.branch(project_id, name=f"pr-{number}")
    page = await visitor.get(f"/projects/{project_id}")
    assert len(branches(page)) == 10
    assert "All 61 branches" in page.text
    path = f"/projects/{project_id}/branches"
    assert f"/console{path}" in page.links
    page = await visitor.get(path)
    assert len(branches(page)) == 50
    assert "1 to 50 of 61" in page.text
    (link,) = [link for link in page.links if "page=2" in link]
    page = await visitor.get(link.removeprefix("/console"))
    assert len(branches(page)) == 11
    assert "51 to 61 of 61" in page.text
    page = await visitor.get(f"{path}?search=PR-1")
    assert len(branches(page)) == 11
    assert "No branch matches" in (await visitor.get(f"{path}?search=x")).text


@pytest.mark.parametrize("number", ["0", "99", "-1", "x", "9" * 5000])
async def test_wrong_page_number_shows_the_nearest_page(
    visitor: Visitor, project_id: str, number: str
) -> None:
    page = await visitor.get(f"/projects/{project_id}/branches?page={number}")
    assert (page.status, len(branches(page))) == (200, 1)


async def test_another_branch_is_chosen_by_name_or_id(
    visitor: Visitor, api: Client, project_id: str
) -> None:
    created = await api.branch(project_id, name="a & b", compute=True)
    host = created["endpoints"][0]["host"]
    for choice in ("a+%26+b", created["branch"]["id"]):
        page = await visitor.get(f"/projects/{project_id}?branch={choice}")
        assert f"@{host}/neondb" in page.text
        assert "Computes of a & b" in page.text
    page = await visitor.get(f"/projects/{project_id}?branch=other")
    assert (page.status, "'other' not found" in page.text) == (404, True)


async def test_default_branch_is_the_first_choice(
    visitor: Visitor, api: Client, project_id: str
) -> None:
    for name in ("old", "new"):
        await api.branch(project_id, name=name)
    page = await visitor.get(f"/projects/{project_id}")
    options = re.findall(r'<option value="(main|old|new)"', page.html)
    assert options == ["main", "new", "old"]


async def test_project_with_many_branches_suggests_some_of_them(
    visitor: Visitor, api: Client, project_id: str
) -> None:
    for number in range(100):
        await api.branch(project_id, name=f"pr-{number}")
    page = await visitor.get(f"/projects/{project_id}?branch=pr-7")
    assert page.html.count("<option value=") - page.html.count(" selected>") == 100
    assert 'id="branch" name="branch" type="text" value="pr-7"' in page.html
    assert "Computes of pr-7" in page.text


async def test_branch_without_compute_has_no_connection_string(
    visitor: Visitor, api: Client, project_id: str
) -> None:
    await api.branch(project_id, name="bare")
    page = await visitor.get(f"/projects/{project_id}?branch=bare")
    assert page.status == 200
    assert "There is no connection string" in page.text
    assert "This branch has no compute" in page.text
    assert "The branch has no compute. Add one to connect." in page.text


async def test_reading_the_dashboard_counts_as_no_request(
    visitor: Visitor, api: Client, project_id: str
) -> None:
    before = len(api.control_plane.requests)
    await visitor.get(f"/projects/{project_id}")
    assert len(api.control_plane.requests) == before


async def test_missing_project_is_not_found(visitor: Visitor) -> None:
    page = await visitor.get("/projects/no-such-project")
    assert (page.status, "not found" in page.text) == (404, True)
