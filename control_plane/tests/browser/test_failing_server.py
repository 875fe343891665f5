"""The server is slow, or fails. Scripts that follow changes are tested in test_live.py."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from control_plane.tests.browser.accessibility import check_accessibility
from control_plane.tests.browser.problems import Problems
from neonctl_local.console.visits import Visit


async def test_failing_page_is_complete_and_shows_no_detail(
    page: Page, problems: Problems, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_visit: Visit, *_arguments: object, **_options: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(Visit, "call", fail)
    await page.goto("/console")
    await expect(page.get_by_role("main")).to_contain_text("internal server error")
    await expect(page.locator("body")).not_to_contain_text("secret detail")
    await check_accessibility(page)
    problems.expect("status 500: GET /console")


async def test_person_may_click_twice_while_the_server_is_slow(page: Page) -> None:
    async def delay(route: Route) -> None:
        if route.request.method == "POST":
            await asyncio.sleep(0.5)
        await route.continue_()

    await page.goto("/console/projects/new")
    await page.route("**/projects/new", delay)
    await page.get_by_label("Name").fill("created once")
    await page.get_by_role("button", name="Create project").dblclick(no_wait_after=True)
    await expect(page.get_by_role("heading", level=1)).to_have_text("created once")
    await page.goto("/console")
    await expect(page.get_by_role("link", name="created once")).to_have_count(1)


async def test_token_of_the_link_is_not_in_the_history(page: Page) -> None:
    session: Any = await page.context.new_cdp_session(page)  # Any: results of the debugger
    history = await session.send("Page.getNavigationHistory")
    assert [entry["url"] for entry in history["entries"] if "token" in entry["url"]] == []
