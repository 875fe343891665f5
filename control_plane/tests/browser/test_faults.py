"""The page of faults, in a browser."""

import re

import pytest
from playwright.async_api import Page, expect

from control_plane.tests.browser.problems import Problems
from neonctl_async import NeonClient
from neonctl_async.errors import NeonError
from neonctl_local import Fault, LocalControlPlane


async def test_fault_is_planned_and_its_count_is_watched(page: Page, neon: NeonClient) -> None:
    await page.goto("/console/faults")
    form = page.get_by_role("form", name="Plan a fault", exact=True)
    await form.get_by_label("Route").select_option("GET /users/me")
    await form.get_by_label("Status", exact=True).first.check()
    await form.get_by_role("spinbutton", name="Status").fill("418")
    await form.get_by_label("Message").fill("<i>tea</i>")
    await form.get_by_label("Times").fill("2")
    await form.get_by_role("button", name="Plan fault").click()
    await expect(page.get_by_role("main").get_by_text("Fault planned.")).to_be_visible()
    row = page.locator("#fault-list tbody tr")
    await expect(row).to_contain_text("status 418: <i>tea</i>")
    await expect(row).to_contain_text("0 of 2")
    with pytest.raises(NeonError, match="tea"):
        await neon.users.me()
    await expect(row).to_contain_text("1 of 2")
    await row.get_by_role("button", name="Clear").click()
    await expect(page.get_by_text("No active faults")).to_be_visible()
    await neon.users.me()


async def test_typed_text_stays_while_faults_fire(
    page: Page, neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    control_plane.inject(Fault(delay=0.001, route="GET /users/me"))
    async with page.expect_response(re.compile("/requests/changes$")):
        await page.goto("/console/faults")
    form = page.get_by_role("form", name="Plan a fault", exact=True)
    await form.get_by_label("Message").fill("half of a")
    await neon.users.me()
    await expect(page.locator("#fault-list tbody tr td.number").first).to_have_text("1")
    await expect(form.get_by_label("Message")).to_have_value("half of a")
    await expect(form.get_by_label("Message")).to_be_focused()


async def test_refused_fault_shows_its_error_in_place(page: Page, problems: Problems) -> None:
    problems.expect("400")
    await page.goto("/console/faults")
    form = page.get_by_role("form", name="Plan a fault", exact=True)
    await form.get_by_label("Delay", exact=True).check()
    await form.get_by_label("Message").fill("kept")
    await form.get_by_role("button", name="Plan fault").click()
    await expect(form.get_by_role("alert")).to_contain_text("the delay is missing")
    await expect(form.get_by_label("Message")).to_have_value("kept")
    await expect(form.get_by_label("Delay", exact=True)).to_be_checked()


async def test_planned_failure_is_shown_with_its_count(page: Page, neon: NeonClient) -> None:
    await page.goto("/console/faults")
    form = page.get_by_role("form", name="Plan a failure of operations")
    await form.get_by_label("Operation").select_option("create_timeline")
    await form.get_by_role("button", name="Plan failure").click()
    row = page.locator("#failure-list tbody tr")
    await expect(row).to_contain_text("0 of 1")
    await neon.projects.create(name="shop")
    await expect(row).to_contain_text("1 of 1")
    await row.get_by_role("button", name="Clear").click()
    await expect(page.get_by_text("No planned failures")).to_be_visible()
