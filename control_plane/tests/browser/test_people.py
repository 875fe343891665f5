"""The fixtures sign people in, each with a browser context of their own."""

from playwright.async_api import Page, expect

from control_plane.tests.browser.people import OpenPage, sign_in
from neonctl_local import LocalControlPlane


async def test_first_user_is_signed_in(page: Page) -> None:
    await expect(page.get_by_role("heading", level=1)).to_have_text("Projects")


async def test_second_context_shares_no_session(
    page: Page, open_page: OpenPage, control_plane: LocalControlPlane
) -> None:
    other = await open_page(color_scheme="dark")
    assert not await other.context.cookies()
    await sign_in(other, control_plane.console_url)
    await expect(other.get_by_role("heading", level=1)).to_have_text("Projects")
    assert await other.context.cookies() != await page.context.cookies()
