"""The pages of requests and rate limits, in a browser."""

import re

import pytest
from playwright.async_api import Page, expect

from neonctl_async import NeonClient
from neonctl_async.errors import NeonError
from neonctl_local import Fault, LocalControlPlane


async def open_live(page: Page, path: str) -> None:
    """Open a page, and wait until it is live."""
    async with page.expect_response(re.compile("/requests/changes$")):
        await page.goto(path)
    await page.evaluate("window.loaded = 1")


async def is_same_page(page: Page) -> bool:
    """Return whether the page was not loaded again."""
    return bool(await page.evaluate("window.loaded === 1"))


async def test_requests_appear_while_somebody_watches(
    page: Page, neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    await open_live(page, "/console/requests")
    await expect(page.get_by_text("No requests yet")).to_be_visible()
    await neon.projects.create(name="shop")
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(1)
    await expect(rows.first).to_contain_text(re.compile("POST.*/projects.*201", re.DOTALL))
    await expect(rows.first).to_contain_text("first key")
    control_plane.inject(Fault(status=400, route="GET /projects/{project_id}", times=1))
    with pytest.raises(NeonError):
        await neon.projects.get("x")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text(re.compile("GET.*/projects/x.*400.*fault", re.DOTALL))
    await expect(page.get_by_text("Last minute")).to_contain_text("1 of 700 for First User")
    assert await is_same_page(page)


async def test_filter_of_requests_stays_while_requests_arrive(page: Page, neon: NeonClient) -> None:
    await neon.projects.create(name="shop")
    await page.goto("/console/requests")
    await page.get_by_label("Method").select_option("GET")
    await page.get_by_role("button", name="Filter").click()
    await expect(page.get_by_text("No request matches the filter")).to_be_visible()
    await neon.users.me()
    await expect(page.locator("tbody tr")).to_have_count(1)
    await page.get_by_role("link", name="Clear").click()
    await expect(page.locator("tbody tr")).to_have_count(2)


async def test_use_of_the_limits_grows_while_somebody_watches(page: Page, neon: NeonClient) -> None:
    await open_live(page, "/console/limits")
    mine = page.locator("tbody tr").first
    await expect(mine).to_contain_text("0 of 700")
    for _ in range(3):
        await neon.users.me()
    await expect(mine).to_contain_text("3 of 700")
    await expect(mine).to_contain_text("GET /users/me")
    assert await is_same_page(page)
