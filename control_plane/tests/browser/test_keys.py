"""API keys in a browser: personal ones, and those of an organization."""

import re

from playwright.async_api import Page, expect

from control_plane.tests.browser.accessibility import check_accessibility
from control_plane.tests.browser.people import OpenPage, sign_in
from control_plane.tests.browser.problems import Problems
from neonctl_async import AuthenticationError, NeonClient
from neonctl_local import LocalControlPlane

KEYS = "/console/account/keys"


async def create_key(page: Page, name: str) -> str:
    """Create a personal key by clicks. Return the key that the page shows."""
    await page.goto(KEYS)
    await page.get_by_role("link", name="Create new API key").first.click()
    await page.get_by_label("Name").fill(name)
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("API key created")
    return await page.locator(".copyable code.id").inner_text()


async def is_valid(control_plane: LocalControlPlane, key: str) -> bool:
    """Return whether the API accepts a key."""
    async with NeonClient(key, base_url=control_plane.base_url) as neon:
        try:
            await neon.users.me()
        except AuthenticationError:
            return False
    return True


async def test_created_key_is_shown_once_and_can_be_copied(
    open_page: OpenPage, control_plane: LocalControlPlane
) -> None:
    page = await open_page(permissions=["clipboard-read", "clipboard-write"])
    await sign_in(page, control_plane.console_url)
    key = await create_key(page, "laptop")
    await expect(page.get_by_text("It is shown only once")).to_be_visible()
    await page.get_by_role("button", name="Copy the API key").click()
    assert await page.evaluate("navigator.clipboard.readText()") == key
    await page.get_by_role("button", name="Copy the lines for a shell").click()
    lines = f"export NEON_API_HOST={control_plane.base_url}\nexport NEON_API_KEY={key}"
    assert await page.evaluate("navigator.clipboard.readText()") == lines
    assert await is_valid(control_plane, key)
    await page.reload()
    await expect(page).to_have_url(re.compile(f"{KEYS}$"))
    notice = page.locator("[data-notice]")
    await expect(notice).to_contain_text("A key or secret is shown only once")
    assert key not in await page.content()
    await page.go_back()
    assert key not in await page.content()


async def test_page_of_a_created_key_is_accessible_and_fits_a_phone(page: Page) -> None:
    await page.set_viewport_size({"width": 360, "height": 800})
    await create_key(page, "laptop")
    assert await page.evaluate("document.documentElement.scrollWidth") <= 360
    await check_accessibility(page)


async def test_list_shows_where_a_key_was_used_last(
    page: Page, control_plane: LocalControlPlane
) -> None:
    assert await is_valid(control_plane, await create_key(page, "laptop"))
    await page.get_by_role("link", name="Done").click()
    row = page.get_by_role("row").filter(has=page.get_by_text("laptop"))
    await expect(row).to_contain_text("from 127.0.0.1")
    await expect(row).to_contain_text("by First User")


async def test_open_list_follows_uses_and_revocations_of_others(
    page: Page, open_page: OpenPage, control_plane: LocalControlPlane
) -> None:
    key = await create_key(page, "laptop")
    await page.get_by_role("link", name="Done").click()
    row = page.get_by_role("row").filter(has=page.get_by_text("laptop"))
    await expect(row).to_contain_text("never")
    assert await is_valid(control_plane, key)
    await expect(row).to_contain_text("from 127.0.0.1")
    other = await open_page()
    await sign_in(other, control_plane.console_url)
    await other.goto(KEYS)
    await other.get_by_role("link", name="Revoke API key laptop").click()
    await other.get_by_role("button", name="Revoke").click()
    await expect(row).to_have_count(0)


async def test_revoked_key_fails_at_once(page: Page, control_plane: LocalControlPlane) -> None:
    key = await create_key(page, "laptop")
    await page.get_by_role("link", name="Done").click()
    revoke = page.get_by_role("link", name="Revoke API key laptop")
    await revoke.click()
    await expect(page.get_by_text("takes effect at once and is permanent")).to_be_visible()
    await page.get_by_role("link", name="Cancel").click()
    assert await is_valid(control_plane, key)
    await revoke.click()
    await page.get_by_role("button", name="Revoke").click()
    await expect(page.locator("[data-notice]")).to_contain_text("API key revoked")
    await expect(page.get_by_text("laptop")).to_have_count(0)
    assert not await is_valid(control_plane, key)


async def test_refused_name_is_kept_beside_the_error(page: Page, problems: Problems) -> None:
    problems.expect("status 400: POST /console/account/keys/new")
    await page.goto(f"{KEYS}/new")
    await page.get_by_label("Name").fill("   ")
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("alert")).to_contain_text("key_name")
    await expect(page.get_by_role("alert")).to_be_focused()
    await expect(page.get_by_label("Name")).to_have_value("   ")


async def test_key_is_created_and_revoked_by_the_keyboard_without_scripts(
    open_page: OpenPage, control_plane: LocalControlPlane
) -> None:
    page = await open_page(java_script_enabled=False)
    await page.goto(control_plane.console_url)
    await page.wait_for_url("**/console")
    await page.goto(KEYS)
    await page.get_by_role("link", name="Create new API key").press("Enter")
    await page.get_by_label("Name").press_sequentially("laptop")
    await page.keyboard.press("Enter")
    key = await page.locator(".copyable code.id").inner_text()
    assert await is_valid(control_plane, key)
    await page.get_by_role("link", name="Done").press("Enter")
    await page.get_by_role("link", name="Revoke API key laptop").press("Enter")
    await page.get_by_role("button", name="Revoke").press("Enter")
    await expect(page.locator("[data-notice]")).to_contain_text("API key revoked")
    assert not await is_valid(control_plane, key)


async def test_administrator_creates_and_revokes_a_project_scoped_key(
    page: Page, control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    created = await neon.projects.create(name="shop", org_id=control_plane.org_id)
    await page.goto(f"/console/organizations/{control_plane.org_id}/keys")
    await page.get_by_role("link", name="Create new API key").first.click()
    await page.get_by_label("Name").fill("preview")
    await page.get_by_role("radio", name="Project-scoped").check()
    await page.get_by_label("Project", exact=True).select_option(created.project.id)
    await page.get_by_role("button", name="Create").click()
    key = await page.locator(".copyable code.id").inner_text()
    async with NeonClient(key, base_url=control_plane.base_url) as scoped:
        assert (await scoped.projects.get(created.project.id)).name == "shop"
    await page.get_by_role("link", name="Done").click()
    row = page.get_by_role("row").filter(has=page.get_by_text("preview"))
    await expect(row.get_by_role("link", name="shop")).to_be_visible()
    await expect(row).to_contain_text("from 127.0.0.1")
    await row.get_by_role("link", name="Revoke").click()
    await page.get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("The organization has no API keys")).to_be_visible()
    assert not await is_valid(control_plane, key)


async def test_administrator_creates_an_organization_key(
    page: Page, control_plane: LocalControlPlane
) -> None:
    await page.goto(f"/console/organizations/{control_plane.org_id}/keys/new")
    await page.get_by_label("Name").fill("CI")
    await page.get_by_role("radio", name="Organization").check()
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_text("the rights of an administrator")).to_be_visible()
    await page.get_by_role("link", name="Done").click()
    await expect(page.get_by_role("row").nth(1)).to_contain_text("(all projects)")
