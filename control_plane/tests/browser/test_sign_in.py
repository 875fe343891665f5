"""Signing in and out, and a server that restarts while a person fills in a form."""

import pytest
from playwright.async_api import Page, expect
from yarl import URL

from control_plane.tests.browser.people import OpenPage, sign_in
from control_plane.tests.browser.problems import Problems
from neonctl_local import LocalControlPlane

KEY = "Personal API key or sign-in link"


async def enter(page: Page, key: str) -> None:
    """Fill in the form, and send it by keyboard."""
    await page.get_by_label(KEY).fill(key)
    await page.get_by_label(KEY).press("Enter")


async def test_person_signs_in_with_a_key_and_out(
    open_page: OpenPage, control_plane: LocalControlPlane, problems: Problems
) -> None:
    problems.expect("status 401: GET /console/projects/new")
    problems.expect("status 401: POST /console/sign-in")
    page = await open_page()
    await page.goto("/console/projects/new")
    await expect(page.get_by_label(KEY)).to_be_focused()
    await enter(page, "neon_api_key_wrong")
    await expect(page.get_by_role("alert")).to_contain_text("the API key is unknown")
    await enter(page, control_plane.api_key)
    await page.wait_for_url("**/console/projects/new")
    await page.get_by_text("First User").click()
    await page.get_by_role("button", name="Sign out").click()
    await page.wait_for_url("**/console/sign-in")
    await page.go_back()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


@pytest.mark.parametrize("scripts", [True, False])
async def test_form_survives_a_restart_of_the_server(
    open_page: OpenPage, problems: Problems, scripts: bool, control_plane: LocalControlPlane
) -> None:
    problems.expect("status 401: POST /console/projects/new")
    port = URL(control_plane.base_url).port
    assert port is not None
    page = await open_page(java_script_enabled=scripts)
    await sign_in(page, control_plane.console_url)
    await page.goto("/console/projects/new")
    await page.get_by_label("Name").fill('a "shop" \u202e<b>')
    await page.wait_for_load_state("networkidle")
    await control_plane.stop()
    async with LocalControlPlane(port=port) as restarted:
        await page.get_by_role("button", name="Create project").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
        await enter(page, restarted.console_url)
        await page.wait_for_url("**/console/projects/new")
        await expect(page.get_by_label("Name")).to_have_value('a "shop" \u202e<b>')
        await page.get_by_role("button", name="Create project").click()
        await expect(page.get_by_role("heading", level=1)).to_contain_text('a "shop"')
        await page.goto("about:blank")
    # Chromium may load the icon of a page while the server is down.
    problems.found = [one for one in problems.found if "ERR_CONNECTION_REFUSED" not in one]


@pytest.mark.parametrize("change", ["one.value = 'x'.repeat(43)", "one.remove()"])
async def test_form_with_another_token_changes_nothing_and_is_kept(
    page: Page, problems: Problems, change: str
) -> None:
    problems.expect("status 403: POST /console/projects/new")
    await page.goto("/console/projects/new")
    await page.evaluate(f"for (const one of document.querySelectorAll('[name=csrf]')) {change}")
    await page.get_by_label("Name").fill("kept name")
    await page.get_by_role("button", name="Create project").click()
    await expect(page.get_by_role("alert")).to_contain_text("nothing was changed")
    await page.get_by_role("link", name="Open the form again").click()
    await expect(page.get_by_label("Name")).to_have_value("kept name")
    await page.get_by_role("button", name="Create project").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("kept name")
    await page.goto("/console")
    await expect(page.get_by_role("row", name="kept name")).to_have_count(1)
