"""The pages of a branch, in a browser: create, watch, change, restore, delete, recover."""

import re
from datetime import UTC, datetime, timedelta

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from control_plane.tests.browser.problems import Problems
from neonctl_async import NeonClient
from neonctl_local import Durations


@pytest_asyncio.fixture(loop_scope="session")
async def project(neon: NeonClient) -> str:
    """Return the path of the page of a project. Its operations have finished."""
    created = await neon.projects.create(name="shop", wait=True)
    return f"/console/projects/{created.project.id}"


@pytest_asyncio.fixture(loop_scope="session")
async def child(neon: NeonClient, project: str) -> str:
    """Return the path of the page of a child branch."""
    created = await neon.branches.create(project.rpartition("/")[2], name="child", wait=True)
    return f"{project}/branches/{created.branch.id}"


def button(page: Page, name: str) -> Locator:
    """Return the button with exactly this name."""
    return page.get_by_role("button", name=name, exact=True)


async def press(page: Page, name: str) -> None:
    """Press a button or follow a link that looks like one."""
    await button(page, name).or_(page.get_by_role("link", name=name, exact=True)).click()


def notice(page: Page) -> Locator:
    return page.locator("[data-notice]")


def state(page: Page) -> Locator:
    """Return the state of the branch."""
    return page.locator("#branch-state .status")


@pytest.mark.control_plane(durations=Durations(default=0.05, by_action={"create_branch": 3.0}))
async def test_created_branch_is_watched_until_it_is_ready(page: Page, project: str) -> None:
    await page.goto(project)
    await press(page, "New branch")
    await page.get_by_label("Name").fill("preview")
    await press(page, "Create branch")
    await expect(notice(page)).to_contain_text("Branch preview created. Started: Create branch")
    await page.evaluate("window.loaded = 1")
    await expect(state(page)).to_have_text("Creating")
    await expect(state(page)).to_have_text("Ready")
    compute = page.locator("#branch-computes tbody tr")
    await expect(compute.locator(".status")).to_have_text("Active")
    operations = page.locator("#branch-operations .status")
    await expect(operations).to_have_text(["OK", "OK"])
    await expect(page.locator("#announcements")).to_contain_text("Active")
    assert await page.evaluate("window.loaded") == 1, "the page was loaded again"
    await page.get_by_role("link", name="Watch the operations").click()
    await expect(page.get_by_role("heading", name="System operations")).to_be_visible()
    assert "?branch=br-" in page.url


async def test_refused_branch_keeps_what_was_typed_and_shows_the_error(
    page: Page, project: str, child: str, problems: Problems
) -> None:
    problems.expect("409")
    await page.goto(f"{project}/branches/new?parent={child.rpartition('/')[2]}")
    await page.get_by_label("Name").fill("child")
    await page.get_by_text("More options").click()
    await page.get_by_label("LSN").fill("0/1A2B3C")
    await page.get_by_label("Create a compute").uncheck()
    await press(page, "Create branch")
    error = page.get_by_role("alert")
    await expect(error).to_contain_text("a branch named 'child' already exists")
    await expect(error).to_contain_text("Type another value")
    await expect(page.get_by_label("LSN")).to_have_value("0/1A2B3C")
    await expect(page.get_by_label("Create a compute")).not_to_be_checked()
    await expect(page.get_by_label("Parent branch")).to_have_value(child.rpartition("/")[2])
    await page.get_by_label("Name").fill("grandchild")
    await press(page, "Create branch")
    await expect(page.get_by_role("heading", level=1)).to_have_text("grandchild")


async def test_branch_is_renamed_protected_and_made_the_default(page: Page, child: str) -> None:
    await page.goto(child)
    await page.get_by_label("Name", exact=True).fill("renamed")
    await press(page, "Rename")
    await expect(page.get_by_role("heading", level=1)).to_have_text("renamed")
    await press(page, "Protect")
    await expect(page.locator("#branch-state")).to_contain_text("protected")
    reason = "Not available: a protected branch cannot be deleted"
    await expect(page.get_by_role("button", name=re.compile(reason))).to_be_visible()
    await press(page, "Unprotect")
    await press(page, "Set as default")
    await expect(notice(page)).to_have_text("renamed is the default branch.")
    await expect(page.locator("#branch-state")).to_contain_text("default")


async def test_expiry_is_typed_in_the_zone_of_the_viewer(
    page: Page, neon: NeonClient, child: str
) -> None:
    await page.goto(child)
    day = datetime.now(UTC).date() + timedelta(days=10)
    await page.get_by_label("Expires").fill(f"{day}T05:45:00")
    await press(page, "Save expiry")
    await expect(page.locator("#branch-facts")).to_contain_text(f"{day} 05:45:00")
    project_id, branch_id = child.split("/")[3], child.split("/")[5]
    branch = await neon.branches.get(project_id, branch_id)
    assert branch.expires_at is not None
    assert branch.expires_at.isoformat() == f"{day}T00:00:00+00:00"


async def test_branch_is_reset_and_restored(page: Page, project: str, child: str) -> None:
    await page.goto(child)
    await press(page, "Reset from parent")
    await expect(page.get_by_text("are replaced by the current ones of main")).to_be_visible()
    await press(page, "Reset branch")
    await expect(notice(page)).to_contain_text("Branch child reset from its parent.")
    await press(page, "Restore")
    await page.get_by_label("Restore from").select_option(label="main (default)")
    await page.get_by_label("Keep the previous state as").fill("before")
    await press(page, "Restore branch")
    await expect(notice(page)).to_contain_text("Its previous state is kept as before.")
    await page.goto(project)
    await expect(page.get_by_role("link", name="before")).to_be_visible()


async def test_root_branch_gives_the_reasons_of_disabled_buttons(page: Page, project: str) -> None:
    await page.goto(project)
    await page.locator("#branches").get_by_role("link", name="main").click()
    for reason in ("a root branch has no parent", "root branch of a project cannot be deleted"):
        named = page.get_by_role("button", name=re.compile(f"Not available: .*{reason}"))
        await expect(named).to_have_attribute("aria-disabled", "true")


async def test_branch_is_deleted_after_a_confirmation_and_recovered(page: Page, child: str) -> None:
    await page.goto(child)
    await press(page, "Delete")
    await expect(page.locator("main")).to_contain_text("the data of 1 database: neondb")
    await press(page, "Cancel")
    await expect(state(page)).to_have_text("Ready")
    await press(page, "Delete")
    await press(page, "Delete branch")
    await expect(state(page)).to_have_text("Deleted")
    await page.get_by_role("link", name="Branches", exact=True).click()
    await press(page, "Deleted branches")
    await press(page, "Recover branch child")
    await expect(notice(page)).to_have_text("Branch child recovered.")
    await expect(state(page)).to_have_text("Ready")


async def test_deletion_by_somebody_else_is_shown(page: Page, neon: NeonClient, child: str) -> None:
    async with page.expect_request(re.compile("/changes$")):
        await page.goto(child)
    await neon.branches.delete(child.split("/")[3], child.split("/")[5])
    await expect(state(page)).to_have_text("Deleted")
    await expect(page.locator("#announcements")).to_contain_text("Branch child: Deleted")
    await expect(button(page, "Recover branch")).to_be_visible()
