"""A person types times of their own zone, and the server receives UTC."""

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from control_plane.tests.browser.live_page import PATH, LivePage
from control_plane.tests.browser.people import OpenPage

TEMPLATE = """{% extends "base.html" %}{% import "components.html" as ui with context %}
{% block content %}{{ ui.head("Times") }}
<form method="post">
{{ ui.field("at", "Expires (UTC)", "2026-07-23T20:30:05", type="datetime-local", step=1) }}
{{ ui.field("empty", "Starts (UTC)", type="datetime-local", step=1) }}
{{ ui.button("Send") }}
</form>
{% endblock %}"""


@pytest.fixture
def template() -> str:
    """The page of these tests."""
    return TEMPLATE


@pytest_asyncio.fixture(loop_scope="session")
async def origin(server: LivePage) -> str:
    """The origin of the form."""
    return server.origin


async def send(page: Page, server: LivePage) -> dict[str, str]:
    """Submit the form. Return the times that the server receives."""
    async with page.expect_response(lambda response: response.request.method == "POST"):
        await page.get_by_role("button", name="Send").click()
    return {name: server.posts[-1][name] for name in ("at", "empty")}


async def test_time_is_shown_and_typed_in_the_zone_of_the_viewer(
    open_page: OpenPage, server: LivePage
) -> None:
    page = await open_page(timezone_id="Asia/Tokyo")
    await page.goto(PATH)
    field = page.get_by_label("Expires (Asia/Tokyo)")
    await expect(field).to_have_value("2026-07-24T05:30:05")
    await field.fill("2026-07-24T06:30:06")
    assert await send(page, server) == {"at": "2026-07-23T21:30:06", "empty": ""}


@pytest.mark.parametrize("scripts", [True, False], ids=["in UTC", "without scripts"])
async def test_time_is_in_utc(open_page: OpenPage, server: LivePage, scripts: bool) -> None:
    page = await open_page(timezone_id="UTC", java_script_enabled=scripts)
    await page.goto(PATH)
    await page.get_by_label("Starts (UTC)").fill("2026-01-02T03:04:05")
    sent = await send(page, server)
    assert sent == {"at": "2026-07-23T20:30:05", "empty": "2026-01-02T03:04:05"}
