"""Each page, in a world with difficult names. A new page is tested here without further work."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from control_plane.tests.browser.accessibility import check_accessibility
from control_plane.tests.browser.people import OpenPage, sign_in
from control_plane.tests.browser.world import World, created_world, shown_pages
from neonctl_local.console.routes import PAGES

WIDTHS = (360, 768, 1024, 1280, 1920)
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; "

EACH_PAGE = pytest.mark.parametrize("path", shown_pages())

CONTROLS = """() => [...document.querySelectorAll("a, button, input, select, textarea, summary")]
    .filter((one) => one.checkVisibility({visibilityProperty: true}))
    .filter((one) => !one.disabled && one.type !== "hidden")
    .map((one) => `${one.localName} ${one.name || one.href || one.textContent.trim()}`)"""
"""Returns what a person can use on a page."""

FOCUSED = """() => {
    const one = document.activeElement;
    if (one === document.body) return null;
    const {outlineStyle, outlineWidth, boxShadow} = getComputedStyle(one);
    const outlined = outlineStyle !== "none" && outlineWidth !== "0px";
    const name = `${one.localName} ${one.name || one.href || one.textContent.trim()}`;
    return {name, visible: outlined || boxShadow !== "none"};
}"""
"""Returns the control that has the focus, and whether a person can see the focus."""

ACTIONS = """() => [...document.forms].filter((form) => form.method === "post")
    .map((form) => new URL(form.getAttribute("action") ?? "", location.href).pathname)"""

OVERLAPS = """() => {
    const texts = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const parent = node.parentElement;
        const shown = {visibilityProperty: true, opacityProperty: true};
        if (!node.data.trim() || !parent.checkVisibility(shown)) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const {left, right, top, bottom} of range.getClientRects()) {
            const box = {left, right, top, bottom, node};
            for (let one = parent; one; one = one.parentElement) {
                const {overflowX, overflowY, clipPath} = getComputedStyle(one);
                if (clipPath !== "none") box.right = box.left;
                if (overflowX === "visible" && overflowY === "visible") continue;
                const edge = one.getBoundingClientRect();
                box.left = Math.max(box.left, edge.left);
                box.right = Math.min(box.right, edge.right);
                box.top = Math.max(box.top, edge.top);
                box.bottom = Math.min(box.bottom, edge.bottom);
            }
            if (box.right - box.left > 2 && box.bottom - box.top > 2) texts.push(box);
        }
    }
    texts.sort((one, other) => one.top - other.top);
    const found = [];
    texts.forEach((one, place) => {
        for (const other of texts.slice(place + 1)) {
            if (other.top > one.bottom - 4) break;
            const width = Math.min(one.right, other.right) - Math.max(one.left, other.left);
            if (one.node !== other.node && width > 2)
                found.push(`${one.node.data.trim()} | ${other.node.data.trim()}`);
        }
    });
    return found;
}"""
"""Returns the texts that are painted over each other."""

SIDEWAYS = """() => [...document.querySelectorAll(".scroll")]
    .filter((one) => one.scrollWidth > one.clientWidth)
    .map((one) => one.getAttribute("aria-labelledby"))"""
"""Returns the lists that hide their last columns until a person scrolls sideways."""

CUT = """() => [...document.querySelectorAll("tbody th, tbody td, dd")].flatMap((cell) => {
    const found = [];
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        if (!node.data.trim() || !node.parentElement.checkVisibility()) continue;
        if (node.parentElement.closest(".hidden-text")) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const text = range.getBoundingClientRect();
        for (let one = node.parentElement; cell.contains(one); one = one.parentElement) {
            if (one !== cell && getComputedStyle(one).overflow === "visible") continue;
            const box = one.getBoundingClientRect();
            const beside = Math.max(box.left - text.left, text.right - box.right);
            const below = Math.max(box.top - text.top, text.bottom - box.bottom);
            if (Math.max(beside, below) > 1)
                found.push(`${node.data.trim()}: ${Math.round(text.width)} px in ${box.width}`);
        }
    }
    return found;
})"""
"""Returns the texts of cells that do not fit into their cell, or that an element of it cuts."""

POSTED = [
    re.compile(f"/console{re.sub(r'{.+?}', '[^/]+', page.path)}")
    for page in PAGES
    if page.method == "POST"
] + [re.compile("/console/sign-out")]
"""The paths of the functions that forms call."""

BY_SCRIPTS = "button Copy"
"""The start of controls that work only with scripts. Without scripts, pages do not show them."""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def world() -> AsyncIterator[World]:
    """The world that all these pages show. Opening a page changes nothing in it."""
    async with created_world() as world:
        yield world


@pytest.fixture
def origin(world: World) -> str:
    """The origin of the pages."""
    return world.origin


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def session(browser: Browser, world: World) -> Any:  # Any: the state of a context
    """The cookies of the first user of the world."""
    context = await browser.new_context()
    await sign_in(await context.new_page(), world.control_plane.console_url)
    state = await context.storage_state()
    await context.close()
    return state


class Shown:
    """Opens the pages of the world."""

    def __init__(self, world: World, session: Any, open_page: OpenPage) -> None:  # Any: as above
        self._world = world
        self._session = session
        self._open_page = open_page

    async def show(self, path: str, **options: Any) -> Page:  # Any: as for OpenPage
        """Open a page, and check its headers."""
        page = await self._open_page(storage_state=self._session, **options)
        response = await page.goto(self._world.url(path))
        assert response is not None
        assert response.status == 200
        headers = await response.all_headers()
        assert headers["content-security-policy"].startswith(POLICY)
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        return page


@pytest.fixture
def pages(world: World, session: Any, open_page: OpenPage) -> Shown:  # Any: as above
    """Opens the pages of the world."""
    return Shown(world, session, open_page)


@EACH_PAGE
async def test_page_is_accessible_and_fits_every_window(pages: Shown, path: str) -> None:
    page = await pages.show(path, reduced_motion="reduce")
    assert await page.locator("h1").count() == 1
    assert await page.evaluate("document.getAnimations().length") == 0
    assert await page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
    assert await page.evaluate("document.cookie") == ""
    assert not re.search(r"\bNone\b", await page.inner_text("body"))
    await check_accessibility(page)
    for width in WIDTHS:
        await page.set_viewport_size({"width": width, "height": 800})
        assert await page.evaluate("document.documentElement.scrollWidth") <= width
        assert await page.evaluate(OVERLAPS) == [], f"at {width} pixels"
        assert await page.evaluate(SIDEWAYS) == [], f"at {width} pixels"
        assert await page.evaluate(CUT) == [], f"at {width} pixels"


@EACH_PAGE
async def test_page_is_complete_without_scripts_and_without_a_mouse(
    pages: Shown, path: str
) -> None:
    plain = await pages.show(path, java_script_enabled=False)
    page = await pages.show(path)
    controls = await page.evaluate(CONTROLS)
    assert await plain.evaluate(CONTROLS) == [
        one for one in controls if not one.startswith(BY_SCRIPTS)
    ]
    reached: list[str] = []
    # A field of the page may have the focus already. After the last control comes the first one.
    for _ in range(2 * len(controls)):
        await page.keyboard.press("Tab")
        if focused := await page.evaluate(FOCUSED):
            assert focused["visible"], f"the focus is not visible: {focused['name']}"
            reached.append(focused["name"])
        if set(controls) <= set(reached):
            break
    assert set(controls) <= set(reached)


async def test_every_link_leads_to_a_page_and_every_form_to_its_function(
    pages: Shown, world: World
) -> None:
    page = await pages.show("")
    links: set[str] = set()
    actions: set[str] = set()
    for path in shown_pages():
        await page.goto(world.url(path))
        links |= set(await page.evaluate("[...document.links].map(({href}) => href)"))
        actions |= set(await page.evaluate(ACTIONS))
    for link in sorted(link.partition("#")[0] for link in links):
        assert link.startswith(f"{world.origin}/console")
        assert (await page.request.get(link)).status == 200, link
    for action in actions:
        assert any(pattern.fullmatch(action) for pattern in POSTED), action
