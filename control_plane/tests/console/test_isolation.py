"""The data of a person on the pages of others, and difficult names on every page."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from control_plane.tests.browser.world import (
    MARKUP,
    RIGHT_TO_LEFT,
    VERY_LONG,
    World,
    created_world,
    shown_pages,
)
from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Page, Visitor, visiting
from neonctl_local import LocalControlPlane
from neonctl_local.console.routes import PAGES, PageRoute

LARGEST_PAGE = 1 << 20
FIELDS = {
    **dict.fromkeys(("name", "key_name", "database", "role", "search"), "stolen"),
    **dict.fromkeys(("email",), "stranger@example.com"),
}
"""Fields that a form may have. Pages ignore others."""

OF_FIRST_USER = frozenset({"/faults"})
"""Pages that only the first user can open, because they concern the requests of all users."""

OF_ALL_USERS = frozenset({"/users"})
"""Pages that show every person the same, as the API does."""


def path_in(world: World, path: str) -> str:
    """Return the path of a page of the world, relative to the console."""
    return world.url(path).removeprefix("/console")


def with_ids(method: str) -> Iterator[PageRoute]:
    """Yield the pages of one project, organization or key."""
    for page in PAGES:
        if page.method == method and "{" in page.path:
            yield page


async def everything(control_plane: LocalControlPlane, world: World) -> str:
    """Return all that the first user sees of the world."""
    project, org = f"/projects/{world.ids['project_id']}", f"/organizations/{world.ids['org_id']}"
    branch = f"{project}/branches/{world.ids['branch_id']}"
    paths = (
        *("/projects", "/api_keys", "/users/me/organizations", project, f"{project}/branches"),
        *(f"{project}/endpoints", f"{branch}/roles", f"{branch}/databases", f"{org}/members"),
        *(f"{org}/api_keys", f"{org}/invitations", f"{project}/operations?limit=1000"),
    )
    async with Client(control_plane) as api:
        seen = {path: await api.get(path) for path in paths}
    # These fields change without a request, because an operation is running.
    return re.sub(r"'(last_used_at|total_duration_ms)': ('[^']*'|\d+)", "", repr(seen))


async def stranger_in(control_plane: LocalControlPlane) -> str:
    """Create a user who belongs to no organization of others. Return a personal key."""
    user_id = await control_plane.create_user("Stranger", "stranger@example.com")
    await control_plane.create_organization("Strangers", admin_id=user_id)
    return await control_plane.create_api_key("strange", user_id=user_id)


def csrf_of(page: Page) -> str:
    """Return the token of the forms of a page."""
    (token,) = {form.fields["csrf"] for form in page.forms if form.method == "post"}
    return token


async def test_stranger_finds_nothing_of_others_and_changes_nothing() -> None:
    async with created_world() as world, Visitor(world.control_plane) as stranger:
        control_plane = world.control_plane
        await stranger.sign_in_with_key(await stranger_in(control_plane))
        control_plane.clear_faults()
        before = await everything(control_plane, world)
        page = await stranger.get("")
        assert page.status == 200
        data = FIELDS | {"csrf": csrf_of(page)}
        for route in with_ids("GET"):
            path = path_in(world, route.path)
            page = await stranger.get(path)
            # Some pages lead to a list of the person's own objects.
            assert page.status == 404 or page.path != path, (route, page.status, page.text)
            assert not leaks(page, world), route
        for route in with_ids("POST"):
            page = await stranger.request("POST", path_in(world, route.path), data=data)
            assert page.status in {400, 404}, (route, page.status, page.text)
            assert not leaks(page, world), route
        for route in PAGES:
            if route.method == "POST" and route.path.startswith(tuple(OF_FIRST_USER)):
                page = await stranger.request("POST", route.path, data=data)
                assert page.status == 403, route
        for path in shown_pages():
            if "{" not in path and path not in OF_ALL_USERS:
                page = await stranger.get(path)
                assert page.status == (403 if path in OF_FIRST_USER else 200), path
                assert not leaks(page, world), path
        assert await everything(control_plane, world) == before


def leaks(page: Page, world: World) -> set[str]:
    """Return the ids and names of the world that a page shows. Its own path is no leak."""
    control_plane = world.control_plane
    shown = re.sub(r'(?:value|href|action|data-[\w-]+)="/console[^"]*"', "", page.html)
    ids = {control_plane.user_id, control_plane.org_id, *world.ids.values()}
    secrets = {one for one in ids if len(one) > 8} - {*re.split("[/?&=]", page.path)}
    names = {"alert(1)", "before \u202eafter", "W" * 30, "first.user", "First Organization"}
    return {secret for secret in secrets | names if secret in shown}


async def test_member_sees_what_only_administrators_may_change() -> None:
    async with created_world() as world, Visitor(world.control_plane) as member:
        control_plane = world.control_plane
        key = await control_plane.create_api_key("member", user_id=world.ids["user_id"])
        await member.sign_in_with_key(key)
        page = await member.get(path_in(world, "/projects/{project_id}"))
        assert (page.status, "alert(1)" in page.text) == (200, True)
        data = {"csrf": csrf_of(page), "name": world.ids["project_id"]}
        path = path_in(world, "/projects/{project_id}/delete")
        page = await member.request("POST", path, data=data)
        assert page.status == 403
        async with visiting(control_plane) as first:
            assert (await first.get(path_in(world, "/projects/{project_id}"))).status == 200


@pytest.mark.long
async def test_pages_contain_no_password_and_each_form_has_the_token() -> None:
    async with created_world() as world, visiting(world.control_plane) as visitor:
        ids = world.ids
        branch = f"/projects/{ids['project_id']}/branches/{ids['branch_id']}"
        role = f"{branch}/roles/{quote(ids['role'], safe='')}"
        world.control_plane.clear_faults()
        async with Client(world.control_plane) as api:
            password = (await api.get(f"{role}/reveal_password"))["password"]
        for path in shown_pages():
            page = await visitor.get(path_in(world, path))
            assert password not in page.html, path
            assert world.control_plane.api_key not in page.html, path
            for form in page.forms:
                assert ("csrf" in form.fields) == (form.method == "post"), (path, form.action)
                assert form.action.startswith("/console/") or form.method == "get", path


async def test_difficult_names_are_escaped_and_pages_stay_small() -> None:
    async with created_world() as world, visiting(world.control_plane) as visitor:
        for path in shown_pages():
            page = await visitor.get(path_in(world, path))
            assert page.status == 200, path
            assert_escaped(page, path)
        form = await visitor.get("/projects/new")
        for name in (MARKUP, RIGHT_TO_LEFT, VERY_LONG):
            page = await visitor.post(form, "/projects/new", name=name + "\n")
            assert page.status == 400
            assert page.form("/projects/new").fields["name"].strip() == name.strip()
            assert_escaped(page, name)


class Elements(HTMLParser):
    """The elements and attributes of a page, and its texts that are not isolated."""

    ISOLATED = frozenset({"bdi", "code", "option", "textarea", "title"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.bare_text = ""
        self._depth = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._depth += tag in self.ISOLATED

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag in self.ISOLATED

    def handle_data(self, data: str) -> None:
        self.bare_text += data if not self._depth else ""


def assert_escaped(page: Page, what: str) -> None:
    """Check that no name is markup, that texts from right to left are isolated, and the size."""
    elements = Elements(page.html)
    for tag, given in elements.found:
        assert not [name for name in given if name.startswith("on") or name == "style"], what
        if tag in {"script", "img", "link"}:
            address = given.get("src") or given.get("href") or ""
            assert address.startswith("/console/static/"), what
    assert len([tag for tag, _ in elements.found if tag == "script"]) == 1, what
    assert "\u202e" not in elements.bare_text, what
    assert len(page.html) < LARGEST_PAGE, (what, len(page.html))


@pytest.mark.parametrize("query", ["?%3Cscript%3E=1", "?cursor=%00", "?a=1&a=2", f"?{'x' * 4000}"])
async def test_queries_are_escaped_or_refused(control_plane: LocalControlPlane, query: str) -> None:
    async with visiting(control_plane) as visitor:
        for path in shown_pages():
            if "{" not in path:
                page = await visitor.request("GET", f"{path}{query}", encoded=True)
                assert page.status in {200, 400}, (path, page.text)
                assert "<script>" not in page.html
