"""live.js keeps a page up to date, and leaves alone what a person is doing."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest_asyncio
from playwright.async_api import Page, expect

from control_plane.tests.browser.live_page import PATH, LivePage
from control_plane.tests.browser.people import OpenPage
from control_plane.tests.browser.problems import Problems

AWAY = "Not connected to the local control plane. Trying again…"


@pytest_asyncio.fixture(loop_scope="session")
async def server() -> AsyncIterator[LivePage]:
    """The server of the live page."""
    server = await LivePage.new()
    async with server.serving():
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def origin(server: LivePage) -> str:
    """The origin of the live page."""
    return server.origin


@pytest_asyncio.fixture(loop_scope="session")
async def live(server: LivePage, open_page: OpenPage) -> Page:
    """The live page, connected."""
    page = await open_page()
    await page.goto(PATH)
    await server.followed.wait()
    return page


async def closed(server: LivePage) -> None:
    """Wait until the page has closed its stream. The server notices when it writes."""
    while server.streams:
        server.change()
        await asyncio.sleep(0.05)


async def test_changed_row_is_replaced_without_a_reload(server: LivePage, live: Page) -> None:
    await live.evaluate("window.loaded = 1")
    server.change({"b": "OK"})
    await expect(live.locator("#b .status")).to_have_text("OK")
    await expect(live.locator("#announcements")).to_have_text("b: OK")
    assert await live.evaluate("window.loaded") == 1
    assert await live.locator("#a[data-changed]").count() == 0


async def test_style_that_an_extension_sets_is_kept_and_is_no_change(
    server: LivePage, live: Page
) -> None:
    note = live.locator("#a input")
    await note.evaluate("note => { note.style.color = 'red'; }")
    server.change({"b": "OK"})
    await expect(live.locator("#b[data-changed]")).to_be_visible()
    assert await note.get_attribute("style") == "color: red;"
    assert await live.locator("#a[data-changed]").count() == 0


async def test_new_and_removed_rows_appear_and_go(server: LivePage, live: Page) -> None:
    server.rows = {"new": "Scheduling", "b": "In progress"}
    server.change()
    await expect(live.locator("tbody tr")).to_have_count(2)
    await expect(live.locator("tbody tr").first).to_have_id("new")
    await expect(live.locator("#announcements")).to_have_text("new: Scheduling")
    await expect(live.locator("#still")).to_have_text("2 at first")


async def test_typed_text_and_the_focus_are_kept(server: LivePage, live: Page) -> None:
    await live.get_by_label("Note of a").fill("half a sent")
    await live.get_by_label("Outside").fill("outside")
    server.rows = {"z": "OK", "a": "Error", "b": "OK"}
    server.change()
    await expect(live.locator("#a .status")).to_have_text("Error")
    await expect(live.get_by_label("Note of a")).to_have_value("half a sent")
    await expect(live.get_by_label("Outside")).to_be_focused()
    await expect(live.get_by_label("Outside")).to_have_value("outside")


async def test_row_with_typed_text_stays_when_its_object_is_gone(
    server: LivePage, live: Page
) -> None:
    await live.get_by_label("Note of a").fill("half a sent")
    server.rows = {"b": "OK", "c": "OK"}
    server.change()
    await expect(live.locator("#c")).to_be_visible()
    await expect(live.get_by_label("Note of a")).to_have_value("half a sent")
    await live.get_by_label("Note of a").fill("")
    await live.get_by_label("Outside").focus()
    await expect(live.locator("#a")).to_have_count(0)


async def test_focus_moves_to_the_list_when_its_row_is_removed(
    server: LivePage, live: Page
) -> None:
    await live.locator("#a a").focus()
    server.rows = {"b": "OK"}
    server.change()
    await expect(live.locator("#a")).to_have_count(0)
    await expect(live.locator("#rows")).to_be_focused()


async def test_focus_on_a_link_of_a_changed_row_is_kept(server: LivePage, live: Page) -> None:
    await live.locator("#b a").focus()
    server.change({"b": "Error"})
    await expect(live.locator("#b .status")).to_have_text("Error")
    await expect(live.locator("#b a")).to_be_focused()


async def test_many_changes_cause_two_fetches_a_second(server: LivePage, live: Page) -> None:
    server.fetches.clear()
    started_at = asyncio.get_running_loop().time()
    for number in range(100):
        server.change({"b": f"Step {number}"})
        await asyncio.sleep(0.01)
    await expect(live.locator("#b .status")).to_have_text("Step 99")
    seconds = asyncio.get_running_loop().time() - started_at
    assert len(server.fetches) <= 2 * seconds + 1


async def test_restarted_server_is_found_again(
    open_page: OpenPage, problems: Problems, server: LivePage
) -> None:
    problems.expect("failed request: GET /console/rows")
    problems.expect("net::ERR_CONNECTION_REFUSED")
    page = await open_page()
    async with server.serving() as port:
        problems.origin = server.origin
        await page.goto(f"{server.origin}{PATH}")
        await server.followed.wait()
        await page.get_by_label("Note of a").fill("half a sent")
    banner = page.locator(".connection")
    await expect(banner).to_have_text(AWAY)
    server.rows["b"] = "Error"
    async with server.serving(port):
        await expect(page.locator("#b .status")).to_have_text("Error")
        await expect(banner).to_be_hidden()
        await expect(page.get_by_label("Note of a")).to_have_value("half a sent")
        server.change({"b": "OK"})
        await expect(page.locator("#b .status")).to_have_text("OK")
        await page.close()


async def test_failing_server_is_tried_again(
    server: LivePage, live: Page, problems: Problems
) -> None:
    problems.expect("status 503: GET /console/rows")
    server.status = 503
    server.change({"b": "OK"})
    await expect(live.locator(".connection")).to_have_text(AWAY)
    server.status = 200
    await expect(live.locator("#b .status")).to_have_text("OK")
    await expect(live.locator(".connection")).to_be_hidden()


async def test_slow_server_gets_one_fetch_at_a_time(server: LivePage, live: Page) -> None:
    server.fetches.clear()
    server.delay = 1.2
    for number in range(10):
        server.change({"b": f"Step {number}"})
        await asyncio.sleep(0.1)
    await expect(live.locator("#b .status")).to_have_text("Step 9")
    assert all(later - earlier > 1.1 for earlier, later in pairwise(server.fetches))


async def test_lost_session_keeps_the_page_and_offers_to_sign_in(
    server: LivePage, live: Page, problems: Problems
) -> None:
    problems.expect("status 401: GET /console/rows")
    await live.get_by_label("Outside").fill("half a sent")
    server.status = 401
    server.change({"b": "OK"})
    await expect(live.locator(".connection")).to_have_text("You are signed out. Sign in again")
    await expect(live.get_by_role("link", name="Sign in again")).to_have_attribute(
        "href", f"{server.origin}{PATH}"
    )
    await expect(live.get_by_label("Outside")).to_have_value("half a sent")
    await closed(server)


async def test_deleted_object_ends_the_updates(
    server: LivePage, live: Page, problems: Problems
) -> None:
    problems.expect("status 404: GET /console/rows")
    server.status = 404
    server.change({"b": "OK"})
    await expect(live.locator(".connection")).to_have_text(
        "This page is not available any more. Reload"
    )


async def test_hidden_page_closes_its_stream(server: LivePage, live: Page) -> None:
    await hide(live, hidden=True)
    await closed(server)
    server.change({"b": "OK"})
    await hide(live, hidden=False)
    await expect(live.locator("#b .status")).to_have_text("OK")


async def hide(page: Page, *, hidden: bool) -> None:
    """Put the page into the background, or bring it back. Headless pages are always visible."""
    await page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", {get: () => hidden, configurable: true});
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


async def test_page_works_again_after_going_back(server: LivePage, live: Page) -> None:
    await live.goto("/console/static/icon.svg")
    server.rows["b"] = "OK"
    await live.go_back()
    await expect(live.locator("#b .status")).to_have_text("OK")
    server.change({"b": "Error"})
    await expect(live.locator("#b .status")).to_have_text("Error")


async def test_update_moves_nothing_else(server: LivePage, live: Page) -> None:
    await live.evaluate(
        """async () => {
            // On a busy machine, the first frame of the page may still have to come.
            await document.fonts.ready;
            await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
            window.shifts = [];
            const shown = ({x, y, width, height}) => `${x}, ${y}, ${width} x ${height}`;
            const moved = ({node, previousRect, currentRect}) =>
                [node?.parentElement?.outerHTML, shown(previousRect), shown(currentRect)];
            new PerformanceObserver(list => {
                for (const {value, sources} of list.getEntries())
                    window.shifts.push([value, ...sources.map(moved)]);
            }).observe({type: "layout-shift"});
        }"""
    )
    server.change({"b": "OK"})
    await expect(live.locator("#b .status")).to_have_text("OK")
    server.change({"a": "In progress", "b": "Error"})
    await expect(live.locator("#b .status")).to_have_text("Error")
    assert await live.evaluate("window.shifts") == []
