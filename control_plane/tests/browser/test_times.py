"""Times are shown in the viewer's zone, and ages stay fresh."""

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from control_plane.tests.browser.live_page import PATH, LivePage
from control_plane.tests.browser.people import OpenPage

# Without changes: an update would set the clock to the time of the server, which stands still.
TEMPLATE = """{% extends "base.html" %}{% import "components.html" as ui with context %}
{% set changes = "" %}
{% block content %}{{ ui.head("Times") }}
<p id="time">{{ ui.time("2026-07-23T20:30:05Z") }}</p>
<p id="fraction">{{ ui.time("2026-07-23T20:30:05.987654+02:00") }}</p>
<p id="none">{{ ui.time(none) }}</p>
<p id="age">{{ ui.age(created) }}</p>
<p id="later">{{ ui.age("2026-11-23T03:02:04Z") }}</p>
<p id="elapsed">{{ ui.elapsed(created, "at first") }}</p>
{% endblock %}"""


@pytest.fixture
def template() -> str:
    """The page of these tests."""
    return TEMPLATE


@pytest_asyncio.fixture(loop_scope="session")
async def origin(server: LivePage) -> str:
    """The origin of the times."""
    return server.origin


@pytest_asyncio.fixture(loop_scope="session")
async def times(open_page: OpenPage) -> Page:
    """The page with the times. It is 01:02:03 UTC, and the viewer's clock is an hour late."""
    page = await open_page(timezone_id="Asia/Kathmandu")
    await page.clock.install(time="2026-11-23T00:02:03Z")
    await page.clock.pause_at("2026-11-23T00:02:04Z")
    await page.goto(PATH)
    return page


async def test_time_is_shown_in_the_zone_of_the_viewer(times: Page) -> None:
    shown = times.locator("#time time")
    await expect(shown).to_have_text("2026-07-24 02:15:05")
    await expect(shown).to_have_attribute(
        "title", "2026-07-24 02:15:05 GMT+5:45 (2026-07-23 20:30:05 UTC)"
    )
    await expect(shown).to_have_attribute("datetime", "2026-07-23T20:30:05Z")


async def test_fraction_and_offset_of_a_timestamp_are_understood(times: Page) -> None:
    await expect(times.locator("#fraction time")).to_have_text("2026-07-24 00:15:05")


async def test_missing_time_is_a_dash(times: Page) -> None:
    await expect(times.locator("#none")).to_have_text("\N{EN DASH}")


async def test_ages_follow_the_clock_of_the_server_and_stay_fresh(times: Page) -> None:
    await expect(times.locator("#age")).to_have_text("2 minutes ago")
    await expect(times.locator("#later")).to_have_text("in 2 hours")
    await expect(times.locator("#elapsed")).to_have_text("2 min 3 s")
    await times.clock.run_for(60_000)
    await expect(times.locator("#age")).to_have_text("3 minutes ago")
    await expect(times.locator("#later")).to_have_text("in 1 hour")
    await expect(times.locator("#elapsed")).to_have_text("3 min 3 s")
    await expect(times.locator("#age time")).to_have_attribute(
        "title", "2026-11-23 06:45:00 GMT+5:45 (2026-11-23 01:00:00 UTC)"
    )


async def test_time_is_in_utc_without_scripts(open_page: OpenPage) -> None:
    page = await open_page(java_script_enabled=False)
    await page.goto(PATH)
    shown = page.locator("#age time")
    await expect(shown).to_have_text("2026-11-23 01:00:00 UTC")
    await expect(shown).to_have_attribute("title", "2026-11-23 01:00:00 UTC")
    await expect(page.locator("#elapsed")).to_have_text("at first")
