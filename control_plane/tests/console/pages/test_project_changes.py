"""The forms that rename, delete and recover a project."""

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Visitor
from neonctl_local import ManualClock

NAME = "<b>shop</b> \u202e "


async def test_project_is_renamed(visitor: Visitor, api: Client, project_id: str) -> None:
    path = f"/projects/{project_id}/rename"
    page = await visitor.post(await visitor.get(path), path, name="new <i>name")
    assert (page.status, page.path) == (200, f"/projects/{project_id}")
    assert "Project renamed to new <i>name" in page.text
    assert await api.project_names() == ["new <i>name"]


async def test_refused_name_stays_in_the_form(visitor: Visitor, project_id: str) -> None:
    path = f"/projects/{project_id}/rename"
    page = await visitor.post(await visitor.get(path), path, name="x" * 300)
    assert page.status == 400
    assert page.form(path).fields["name"] == "x" * 300


async def test_confirmation_lists_losses(visitor: Visitor, api: Client, project_id: str) -> None:
    await api.branch(project_id, name="feature")
    body = {"key_name": "ci", "project_id": project_id}
    await api.request("POST", f"{api.organization_path}/api_keys", body)
    page = await visitor.get(f"/projects/{project_id}/delete")
    for text in ("2 branches", "feature", "main", "2 databases", "1 compute", "1 project-scoped"):
        assert text in page.text
    assert await api.project_names() != []


async def test_confirmation_names_at_most_20_branches(
    visitor: Visitor, api: Client, project_id: str
) -> None:
    for number in range(21):
        await api.branch(project_id, name=f"pr-{number}")
    page = await visitor.get(f"/projects/{project_id}/delete")
    assert "and 2 more" in page.text
    assert "pr-20" in page.text
    assert "main" not in page.text


async def test_protected_branches_are_named_before_a_name_is_typed(
    visitor: Visitor, api: Client, project_id: str
) -> None:
    path = f"/projects/{project_id}"
    form = await visitor.get(f"{path}/delete")
    ids = [(await api.branch(project_id, name=one, protected=True))["branch"]["id"] for one in "ab"]
    page = await visitor.get(f"{path}/delete")
    assert "Unprotect these branches" in page.text
    assert {f"/console{path}/branches/{id}" for id in ids} <= set(page.links)
    assert not any(one.action.endswith("/delete") for one in page.forms)
    page = await visitor.post(form, f"{path}/delete", name=project_id)
    assert page.status == 422
    assert "Unprotect these branches" in page.text


@pytest.mark.parametrize("typed", ["{name}", "{id}"])
async def test_project_is_deleted_if_its_name_or_id_is_typed(
    visitor: Visitor, api: Client, typed: str
) -> None:
    project = (await api.project(name=NAME))["project"]
    path = f"/projects/{project['id']}/delete"
    form = await visitor.get(path)
    for wrong in ("", NAME.upper()):
        page = await visitor.post(form, path, name=wrong)
        assert (page.status, "type its name or its ID" in page.text) == (400, True)
    assert await api.project_names() == [NAME]
    page = await visitor.post(page, path, name=typed.format_map(project))
    assert (page.status, page.path) == (200, "")
    assert "deleted" in page.text
    assert await api.project_names() == []
    assert (await visitor.get(path)).status == 404


async def test_deleted_project_is_recovered(visitor: Visitor, api: Client, project_id: str) -> None:
    assert "There are no deleted projects" in (await visitor.get("/projects/deleted")).text
    await api.request("DELETE", f"/projects/{project_id}")
    page = await visitor.get("/projects/deleted")
    page = await visitor.post(page, f"/projects/{project_id}/recover")
    assert (page.status, page.path) == (200, f"/projects/{project_id}")
    assert "recovered" in page.text
    assert "There are no deleted projects" in (await visitor.get("/projects/deleted")).text


async def test_project_cannot_be_recovered_after_a_week(
    visitor: Visitor, api: Client, clock: ManualClock, project_id: str
) -> None:
    await api.request("DELETE", f"/projects/{project_id}")
    clock.advance(7 * 86400)
    form = await visitor.get("/projects/deleted")
    clock.advance(1)
    page = await visitor.post(form, f"/projects/{project_id}/recover")
    assert (page.status, "not found" in page.text) == (404, True)
    assert "There are no deleted projects" in page.text
    assert (await visitor.get(f"/projects/{project_id}/recover")).path == "/projects/deleted"


async def test_member_cannot_delete_a_project(
    visitor: Visitor, api: Client, project_id: str
) -> None:
    page = await visitor.get(f"/projects/{project_id}")
    assert f"/console/projects/{project_id}/delete" in page.links
    form = await visitor.get(f"/projects/{project_id}/delete")
    key = await api.new_user_key("ann@example.com")
    user_id = (await api.get("/users/me", key=key))["id"]
    control_plane = api.control_plane
    await control_plane.add_member(control_plane.org_id, user_id, role="admin")
    members = (await api.get(f"{api.organization_path}/members"))["members"]
    (member_id,) = (
        found["member"]["id"]
        for found in members
        if found["member"]["user_id"] == control_plane.user_id
    )
    await api.request(
        "PATCH", f"{api.organization_path}/members/{member_id}", {"role": "member"}, key=key
    )
    page = await visitor.get(f"/projects/{project_id}")
    assert f"/console/projects/{project_id}/delete" not in page.links
    page = await visitor.get(f"/projects/{project_id}/delete")
    assert (page.status, "administrator" in page.text) == (403, True)
    page = await visitor.post(form, f"/projects/{project_id}/delete", name=project_id)
    assert page.status == 403
    assert await api.project_names() != []
