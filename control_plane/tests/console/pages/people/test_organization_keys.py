"""Organization settings > API keys: the rules of sections 2.1, 3.1 and 5 for each role."""

from typing import Any

import pytest

from control_plane.tests.client import Client
from control_plane.tests.console.people import member, token_of
from control_plane.tests.console.visitor import Page, Visitor
from control_plane.tests.keys import organization_key, project_key


@pytest.fixture
def keys(api: Client) -> str:
    """The path of the list of keys."""
    return f"{api.organization_path}/keys"


async def create(visitor: Visitor, keys: str, **values: str) -> Page:
    """Create a key. Return the page that shows it."""
    page = await visitor.get(f"{keys}/new")
    return await visitor.post(page, f"{keys}/new", **({"name": "CI"} | values))


async def test_administrator_creates_an_organization_key(
    api: Client, visitor: Visitor, keys: str, project_id: str
) -> None:
    page = await create(visitor, keys, type="organization")
    assert "It has the rights of an administrator on the whole organization." in page.text
    assert f"{api.base_url}/projects" in page.text
    token = token_of(page)
    assert token.startswith("neon_org_key_")
    assert (await api.get("/projects", key=token))["projects"][0]["id"] == project_id
    await api.request("DELETE", f"/projects/{project_id}", key=token)
    assert "CI 2 (all projects)" in (await visitor.get(keys)).text


async def test_project_scoped_key_has_the_rights_of_a_member_on_one_project(
    api: Client, visitor: Visitor, keys: str, project_id: str
) -> None:
    other: Any = await api.project(name="other")
    page = await create(visitor, keys, type="project", project_id=project_id)
    token = token_of(page)
    assert token.startswith("neon_project_key_")
    assert (
        f'curl -H "Authorization: Bearer $NEON_API_KEY" {api.base_url}/projects/{project_id}'
        in (page.text)
    )

    async def status(method: str, path: str, body: object = None) -> int:
        return (await api.send(method, path, body, key=token)).status

    assert await status("GET", f"/projects/{project_id}") == 200
    assert await status("GET", f"/projects/{other['project']['id']}") == 404
    assert await status("DELETE", f"/projects/{project_id}") == 403
    assert await status("POST", "/projects", {"project": {}}) == 403
    assert await status("GET", f"{api.organization_path}/members") == 403


async def test_member_creates_project_scoped_keys_only(
    api: Client, keys: str, project_id: str
) -> None:
    async with member(api) as bea:
        form = (await bea.get(f"{keys}/new")).form(f"{keys}/new")
        assert form.fields["type"] == "project"
        page = await create(bea, keys, project_id=project_id)
        assert (await api.send("GET", f"/projects/{project_id}", key=token_of(page))).status == 200
        refused = await create(bea, keys, type="organization", project_id="")
        assert refused.status == 403
        assert "only an administrator" in refused.text


async def test_members_see_all_keys_and_only_administrators_can_revoke_them(
    api: Client, visitor: Visitor, keys: str, project_id: str
) -> None:
    key_id, token = await organization_key(api, "wide")
    _, scoped = await project_key(api, project_id)
    await api.get(f"/projects/{project_id}", key=scoped)
    path = f"{keys}/{key_id}/revoke"
    async with member(api) as bea:
        page = await bea.get(keys)
        assert "wide" in page.text
        assert "from 127.0.0.1" in page.text
        assert "Revoke" not in page.text
        assert (await bea.get(path)).status == 403
        data = (await bea.get(f"{keys}/new")).form(f"{keys}/new").fields
        refused = await bea.request("POST", path, data=data)
        assert (refused.status, "only an administrator" in refused.text) == (403, True)
    assert (await api.send("GET", "/projects", key=token)).status == 200
    assert f"/console{path}" in (await visitor.get(keys)).links


async def test_revoked_keys_of_both_types_stop_working_at_once(
    api: Client, visitor: Visitor, keys: str, project_id: str
) -> None:
    for key_id, token in (await organization_key(api), await project_key(api, project_id)):
        path = f"{keys}/{key_id}/revoke"
        confirmation = await visitor.get(path)
        assert "takes effect at once and is permanent" in confirmation.text
        page = await visitor.post(confirmation, path)
        assert (page.path, "API key revoked" in page.text) == (keys, True)
        assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 401
    assert "The organization has no API keys" in (await visitor.get(keys)).text


async def test_project_scoped_key_leaves_the_list_when_its_project_leaves_the_organization(
    api: Client, visitor: Visitor, keys: str, project_id: str
) -> None:
    token = token_of(await create(visitor, keys, type="project", project_id=project_id))
    assert f"/console/projects/{project_id}" in (await visitor.get(keys)).links
    await api.move_to_new_organization(project_id)
    assert (await api.send("GET", f"/projects/{project_id}", key=token)).status == 401
    assert "The organization has no API keys" in (await visitor.get(keys)).text


async def test_pages_are_hidden_from_people_outside_of_the_organization(
    api: Client, visitor: Visitor, project_id: str
) -> None:
    other = f"/organizations/{await api.control_plane.create_organization('Other')}/keys"
    assert (await visitor.get(other)).status == 200
    async with member(api) as bea:
        for path in (other, f"{other}/new", f"{other}/1/revoke"):
            assert (await bea.get(path)).status == 404
        data = (await bea.get("/account/keys/new")).form("/account/keys/new").fields
        data |= {"type": "project", "project_id": project_id}
        assert (await bea.request("POST", f"{other}/new", data=data)).status == 404


@pytest.mark.parametrize(
    ("kind", "has_project", "words"),
    [
        ("project", False, "no project is chosen"),
        ("organization", True, "an organization key has access to all projects"),
        ("", False, "choose organization or project-scoped"),
    ],
)
async def test_type_that_does_not_fit_the_project_is_refused(
    visitor: Visitor, keys: str, project_id: str, kind: str, has_project: bool, words: str
) -> None:
    chosen = project_id if has_project else ""
    page = await create(visitor, keys, type=kind, project_id=chosen)
    assert page.status == 400
    assert words in page.text
    fields = page.form(f"{keys}/new").fields
    assert (fields["name"], fields["project_id"]) == ("CI", chosen)
    assert "The organization has no API keys" in (await visitor.get(keys)).text


async def test_project_of_another_organization_is_refused(
    api: Client, visitor: Visitor, keys: str
) -> None:
    own = (await api.request("POST", "/projects", {"project": {}}))["project"]["id"]
    page = await create(visitor, keys, type="project", project_id=own)
    assert (page.status, own in page.text) == (404, True)


async def test_member_without_a_project_sees_how_to_create_one(api: Client, keys: str) -> None:
    async with member(api) as bea:
        page = await bea.get(f"{keys}/new")
    assert "The organization has no projects" in page.text
    assert "/console/projects/new" in page.links


async def test_project_of_many_is_chosen_by_its_id(
    visitor: Visitor, keys: str, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neonctl_local.console.pages.people.organization_keys.CHOICES", 1)
    page = await visitor.get(f"{keys}/new")
    assert "<select" not in page.html
    assert f'<option value="{project_id}">' in page.html
    created = await create(visitor, keys, type="project", project_id=f" {project_id} ")
    assert "with the rights of a member" in created.text


async def test_search_finds_keys_by_project(
    api: Client, visitor: Visitor, keys: str, project_id: str
) -> None:
    await organization_key(api, "wide")
    await project_key(api, project_id)
    page = await visitor.get(f"{keys}?search={project_id}")
    assert "1 of 2 match" in page.text
    assert "scoped" in page.text
    assert "wide" not in page.text
