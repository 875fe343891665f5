"""Copy buttons put a text on the clipboard, and confirm it."""

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from control_plane.tests.browser.live_page import PATH, LivePage
from control_plane.tests.browser.people import OpenPage

LONG = "neon_api_key_" + "0123456789abcdef" * 20
TEMPLATE = f"""{{% extends "base.html" %}}{{% import "components.html" as ui with context %}}
{{% block content %}}{{{{ ui.head("Texts") }}}}
<p>{{{{ ui.copyable("{LONG}", "API key") }}}}</p>
{{{{ ui.code_block("export A=1\\nexport B=<2>", "shell lines") }}}}
<p><label>Address <input id="address" value="http://127.0.0.1"></label>
<button type="button" class="copy" data-copy="address" aria-label="Copy the address"></button></p>
{{% endblock %}}"""

REFUSED = """
navigator.clipboard.writeText = () => Promise.reject(new DOMException("refused"));
document.execCommand = () => false;
"""


@pytest.fixture
def template() -> str:
    """The page of these tests."""
    return TEMPLATE


@pytest_asyncio.fixture(loop_scope="session")
async def origin(server: LivePage) -> str:
    """The origin of the texts."""
    return server.origin


@pytest_asyncio.fixture(loop_scope="session")
async def texts(open_page: OpenPage) -> Page:
    """The page with the texts. It may read and write the clipboard."""
    page = await open_page(permissions=["clipboard-read", "clipboard-write"])
    await page.goto(PATH)
    return page


async def clipboard(page: Page) -> object:
    """Return the text on the clipboard."""
    return await page.evaluate("navigator.clipboard.readText()")


async def test_whole_text_is_copied(texts: Page) -> None:
    button = texts.get_by_role("button", name="Copy the API key")
    await button.click()
    await expect(button).to_have_attribute("data-copied", "Copied")
    await expect(texts.locator("#announcements")).to_have_text("Copied.")
    assert await clipboard(texts) == LONG


async def test_lines_are_copied_as_they_are(texts: Page) -> None:
    await texts.get_by_role("button", name="Copy the shell lines").press("Enter")
    await expect(texts.locator("#announcements")).to_have_text("Copied.")
    assert await clipboard(texts) == "export A=1\nexport B=<2>"


async def test_value_of_a_field_is_copied(texts: Page) -> None:
    await texts.get_by_label("Address", exact=True).fill("http://localhost")
    await texts.get_by_role("button", name="Copy the address").click()
    await expect(texts.locator("#announcements")).to_have_text("Copied.")
    assert await clipboard(texts) == "http://localhost"


async def test_feedback_moves_nothing(texts: Page) -> None:
    button = texts.get_by_role("button", name="Copy the API key")
    before = await button.bounding_box()
    await button.click()
    await expect(button).to_have_attribute("data-copied", "Copied")
    assert await button.bounding_box() == before


async def test_text_is_selected_where_the_clipboard_is_refused(open_page: OpenPage) -> None:
    page = await open_page()
    await page.add_init_script(REFUSED)
    await page.goto(PATH)
    button = page.get_by_role("button", name="Copy the API key")
    await button.click()
    await expect(button).to_have_attribute("data-copied", "Selected")
    await expect(page.locator("#announcements")).to_have_text(
        "The text is selected. Press Control and C to copy it."
    )
    assert await page.evaluate("getSelection().toString()") == LONG


async def test_no_button_is_shown_without_scripts(open_page: OpenPage) -> None:
    page = await open_page(java_script_enabled=False)
    await page.goto(PATH)
    await expect(page.locator("button.copy").first).to_be_hidden()
    await expect(page.get_by_text(LONG)).to_be_visible()
