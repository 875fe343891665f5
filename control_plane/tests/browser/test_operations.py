"""Monitoring > System operations, in a browser (sections 2.3, 3.2 and 4.5)."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from control_plane.tests.browser.people import OpenPage, sign_in
from neonctl_async import EndpointSpec, NeonClient
from neonctl_local import BackgroundIntervals, Durations, LocalControlPlane

COLUMNS = ["Operation", "Branch", "Compute", "Operation status", "Duration", "Date"]
SLOW = Durations(default=3.0)


@pytest_asyncio.fixture(loop_scope="session")
async def project_id(neon: NeonClient) -> str:
    """A project whose operations have finished."""
    created = await neon.projects.create(name="shop", wait=True)
    return created.project.id


def row(page: Page, name: str) -> Locator:
    """Return the rows of operations with a name."""
    header = page.get_by_role("rowheader", name=re.compile(f"^{name}"))
    return page.locator("tbody tr").filter(has=header)


async def open_operations(page: Page, project_id: str, query: str = "") -> None:
    async with page.expect_request(re.compile("/changes$")):
        await page.goto(f"/console/projects/{project_id}/operations{query}")


async def test_columns_of_the_monitoring_view(page: Page, project_id: str) -> None:
    await open_operations(page, project_id)
    await expect(page.get_by_role("columnheader")).to_have_text(COLUMNS)
    navigation = page.get_by_role("navigation", name="Project")
    current = navigation.locator("[aria-current=page]")
    await expect(current).to_have_text("System operations")
    await expect(row(page, "Create timeline").locator(".status")).to_have_text("OK")


@pytest.mark.control_plane(durations=SLOW)
async def test_new_branch_is_watched_to_ok(page: Page, neon: NeonClient, project_id: str) -> None:
    await open_operations(page, project_id)
    await page.evaluate("window.loaded = 1")
    compute = EndpointSpec(type="read_write")
    created = await neon.branches.create(project_id, name="preview", endpoints=[compute])
    create, start = row(page, "Create branch"), row(page, "Start compute").first
    await expect(create.locator(".status")).to_have_text("In progress")
    await expect(start.locator(".status")).to_have_text("Scheduling")
    await expect(create).to_contain_text("preview")
    await expect(start).to_contain_text(created.endpoints[0].id)
    await expect(start.locator(".status")).to_have_text("In progress")
    await expect(create.locator(".status")).to_have_text("OK")
    await expect(start.locator(".status")).to_have_text("OK")
    assert await page.evaluate("window.loaded") == 1, "the page was loaded again"


@pytest.mark.control_plane(durations=SLOW)
async def test_screen_readers_hear_each_change(
    page: Page, neon: NeonClient, project_id: str
) -> None:
    await open_operations(page, project_id)
    await neon.branches.create(project_id, name="preview")
    await expect(page.locator("#announcements")).to_contain_text("Create branch: In progress")
    await expect(page.locator("#announcements")).to_contain_text("Create branch: OK")


@pytest.mark.control_plane(durations=Durations(default=0.05, by_action={"create_branch": 600.0}))
async def test_duration_of_a_running_operation_grows(
    page: Page, neon: NeonClient, project_id: str
) -> None:
    await neon.branches.create(project_id, name="preview")
    await open_operations(page, project_id)
    duration = row(page, "Create branch").locator("[data-since]")
    await expect(duration).to_have_text(re.compile(r"^\d+ s$"))
    first = await duration.inner_text()
    await expect(duration).not_to_have_text(first)
    assert int((await duration.inner_text()).removesuffix(" s")) > int(first.removesuffix(" s"))
    assert await row(page, "Create branch").get_attribute("data-changed") is None


@pytest.mark.control_plane(durations=SLOW)
async def test_error_and_retry_are_shown_with_their_reasons(
    page: Page, neon: NeonClient, control_plane: LocalControlPlane, project_id: str
) -> None:
    await open_operations(page, project_id)
    await control_plane.fail_next("create_branch", error="no space left on device")
    await neon.branches.create(project_id, name="full")
    failed = row(page, "Create branch")
    await expect(failed.locator(".status")).to_have_text("Error")
    await expect(page.locator(".problem")).to_contain_text("no space left on device")
    await control_plane.fail_next("create_branch", retry_after=3600, error="storage is busy")
    await neon.branches.create(project_id, name="busy")
    retried = row(page, "Create branch").first
    await expect(page.locator(".problem").first).to_have_text(
        re.compile("Retry at .*: storage is busy")
    )
    await expect(retried.locator(".status")).to_have_text("Scheduling")


async def test_filters_stay_in_the_address(page: Page, neon: NeonClient, project_id: str) -> None:
    await neon.branches.create(project_id, name="preview", wait=True)
    await open_operations(page, project_id)
    await page.get_by_label("Branch", exact=True).select_option("preview")
    await page.get_by_label("Operation", exact=True).select_option("Create branch")
    await page.get_by_label("Status", exact=True).select_option("OK")
    await page.get_by_role("button", name="Filter").click()
    await expect(page.locator("tbody tr")).to_have_count(1)
    query = parse_qs(urlsplit(page.url).query)
    assert (query["action"], query["status"]) == (["create_branch"], ["OK"])
    await page.reload()
    await expect(page.get_by_label("Status", exact=True)).to_have_value("OK")
    await page.get_by_label("Status", exact=True).select_option("Error")
    await page.get_by_role("button", name="Filter").click()
    await expect(page.get_by_text("No operation matches the filter")).to_be_visible()
    await page.get_by_role("link", name="Clear the filter").click()
    await expect(row(page, "Create timeline")).to_be_visible()


async def test_older_and_newer_pages(page: Page, neon: NeonClient, project_id: str) -> None:
    for number in range(52):
        await neon.branches.create(project_id, name=f"branch {number}")
    await open_operations(page, project_id)
    await expect(page.locator("tbody tr")).to_have_count(50)
    await page.get_by_role("link", name="Older").click()
    await expect(row(page, "Create timeline")).to_be_visible()
    assert await page.locator("tbody tr").count() < 50
    await page.get_by_role("link", name="Newer").click()
    await expect(row(page, "Create branch").first).to_contain_text("branch 51")


async def test_details_stay_open_while_the_page_changes(
    page: Page, neon: NeonClient, project_id: str
) -> None:
    await open_operations(page, project_id)
    oldest = row(page, "Create timeline")
    await oldest.locator("summary").click()
    operation = [one async for one in neon.operations.list(project_id)][-1]
    await expect(oldest).to_contain_text(operation.id)
    await neon.branches.create(project_id, name="preview")
    await expect(row(page, "Create branch").locator(".status")).to_have_text("OK")
    await expect(oldest.get_by_text(operation.id)).to_be_visible()


@pytest.mark.control_plane(intervals=BackgroundIntervals(suspend_after=1.0))
async def test_idle_compute_is_suspended_while_a_person_watches(
    page: Page, project_id: str
) -> None:
    await open_operations(page, project_id)
    await expect(row(page, "Suspend compute").locator(".status")).to_have_text("OK")


async def test_operations_of_a_deleted_project_stay_visible(
    page: Page, neon: NeonClient, project_id: str
) -> None:
    await open_operations(page, project_id)
    await neon.projects.delete(project_id)
    await expect(row(page, "Delete tenant").locator(".status")).to_have_text("OK")
    await expect(row(page, "Create timeline").locator(".status")).to_have_text("OK")


async def test_list_is_complete_without_scripts(
    open_page: OpenPage, control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await neon.branches.create(project_id, name="preview", wait=True)
    page = await open_page(java_script_enabled=False)
    await sign_in(page, control_plane.console_url)
    await page.goto(f"/console/projects/{project_id}/operations")
    await expect(row(page, "Create branch").locator(".status")).to_have_text("OK")
    await page.get_by_label("Status", exact=True).select_option("Error")
    await page.get_by_role("button", name="Filter").click()
    await expect(page.get_by_text("No operation matches the filter")).to_be_visible()
    await page.get_by_role("link", name="Clear the filter").click()
    await row(page, "Create branch").locator("summary").click()
    await expect(page.get_by_text("create_branch", exact=True)).to_be_visible()
