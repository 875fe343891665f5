"""Forms are sent once, text areas by Control and Enter, and menus close by themselves."""

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from control_plane.tests.browser.live_page import PATH, LivePage
from control_plane.tests.browser.people import OpenPage

TEMPLATE = """{% extends "base.html" %}{% import "components.html" as ui with context %}
{% block content %}{{ ui.head("Forms") }}
<details class="menu"><summary>First</summary><ul><li><a href="#a">Inside</a></li></ul></details>
<details class="menu"><summary>Second</summary><ul><li><a href="#b">Other</a></li></ul></details>
<form method="post" action="/console/rows">
{{ ui.textarea("statement", "Statement") }}{{ ui.button("Run") }}
</form>
{% endblock %}"""


@pytest.fixture
def template() -> str:
    """The page of these tests."""
    return TEMPLATE


@pytest_asyncio.fixture(loop_scope="session")
async def origin(server: LivePage) -> str:
    """The origin of the forms."""
    return server.origin


@pytest_asyncio.fixture(loop_scope="session")
async def forms(open_page: OpenPage) -> Page:
    """The page with the forms."""
    page = await open_page()
    await page.goto(PATH)
    return page


async def test_form_that_is_submitted_twice_is_sent_once(forms: Page, server: LivePage) -> None:
    server.delay = 0.5
    await forms.evaluate(
        """() => {
            const form = document.querySelector("main form");
            form.requestSubmit();
            setTimeout(() => form.requestSubmit(), 200);
        }"""
    )
    await expect(forms.get_by_text("Posted")).to_be_visible()
    assert server.posts == [{"statement": ""}]


async def test_button_shows_that_its_form_is_on_its_way(forms: Page) -> None:
    await forms.evaluate("addEventListener('submit', (event) => event.preventDefault())")
    button = forms.get_by_role("button", name="Run")
    await button.click()
    await expect(button).to_have_attribute("aria-busy", "true")
    await forms.evaluate("dispatchEvent(new PageTransitionEvent('pageshow'))")
    await expect(button).not_to_have_attribute("aria-busy", "true")


async def test_control_and_enter_submit_a_text_area(forms: Page, server: LivePage) -> None:
    await forms.get_by_label("Statement").fill("select 1")
    await forms.keyboard.press("Enter")
    assert server.posts == []
    await forms.keyboard.press("Control+Enter")
    await expect(forms.get_by_text("Posted")).to_be_visible()
    assert server.posts == [{"statement": "select 1\r\n"}]


async def test_form_can_be_sent_again_after_going_back(forms: Page, server: LivePage) -> None:
    for number in range(2):
        await forms.get_by_role("button", name="Run").click()
        await expect(forms.get_by_text("Posted")).to_be_visible()
        assert len(server.posts) == number + 1
        await forms.go_back()


async def test_escape_closes_a_menu_and_returns_the_focus(forms: Page) -> None:
    summary = forms.locator("summary", has_text="First")
    await summary.press("Enter")
    await expect(forms.get_by_role("link", name="Inside")).to_be_visible()
    await forms.keyboard.press("Tab")
    await expect(forms.get_by_role("link", name="Inside")).to_be_focused()
    await forms.keyboard.press("Escape")
    await expect(forms.get_by_role("link", name="Inside")).to_be_hidden()
    await expect(summary).to_be_focused()


async def test_only_one_menu_is_open(forms: Page) -> None:
    await forms.locator("summary", has_text="First").click()
    await forms.locator("summary", has_text="Second").click()
    await expect(forms.get_by_role("link", name="Inside")).to_be_hidden()
    await expect(forms.get_by_role("link", name="Other")).to_be_visible()
    await forms.locator("h1").click()
    await expect(forms.get_by_role("link", name="Other")).to_be_hidden()
