"""The actions on computes and their forms, in a browser."""

import re

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from control_plane.tests.browser.problems import Problems
from neonctl_async import NeonClient
from neonctl_local import Durations


@pytest_asyncio.fixture(loop_scope="session")
async def branch(page: Page, neon: NeonClient) -> str:
    """Open the page of a branch, with one compute that is active. Return its path."""
    created = await neon.projects.create(name="shop", wait=True)
    path = f"/console/projects/{created.project.id}/branches/{created.branch.id}"
    async with page.expect_request(re.compile("/changes$")):
        await page.goto(path)
    return path


async def press(page: Page, name: str) -> None:
    """Press the button, or follow the link, of a compute or a form."""
    pattern = re.compile(rf"^{name}( compute ep-\S+)?$")
    named = page.get_by_role("button", name=pattern).or_(page.get_by_role("link", name=pattern))
    await named.first.click()


def states(page: Page) -> Locator:
    """Return the states of the computes."""
    return page.locator("#branch-computes td .status")


def notice(page: Page) -> Locator:
    return page.locator("[data-notice]")


@pytest.mark.usefixtures("branch")
@pytest.mark.control_plane(
    durations=Durations(default=0.05, by_action={"suspend_compute": 3.0, "start_compute": 3.0})
)
async def test_compute_is_suspended_started_and_restarted(page: Page) -> None:
    await press(page, "Suspend")
    await expect(notice(page)).to_contain_text("Started: Suspend compute.")
    await page.evaluate("window.loaded = 1")
    await expect(states(page)).to_have_text("Suspending")
    await expect(states(page)).to_have_text("Idle")
    assert await page.evaluate("window.loaded") == 1, "the page was loaded again"
    await press(page, "Start")
    await expect(states(page)).to_have_text("Starting")
    await expect(states(page)).to_have_text("Active")
    await press(page, "Restart")
    await expect(notice(page)).to_contain_text("Started: Suspend compute, Start compute.")
    await expect(states(page)).to_have_text("Restarting")
    await expect(states(page)).to_have_text("Active")


@pytest.mark.control_plane(
    lock="project", durations=Durations(default=0.05, by_action={"suspend_compute": 30.0})
)
async def test_locked_project_is_an_error_with_the_next_step(
    page: Page, branch: str, problems: Problems
) -> None:
    problems.expect("423")
    await press(page, "Suspend")
    await press(page, "Start")
    error = page.get_by_role("alert")
    await expect(error).to_contain_text("Wait until the running operations have finished")
    await expect(states(page)).to_have_text("Suspending")
    await page.goto(page.url)
    assert page.url.endswith(branch)
    await press(page, "Start")
    await page.get_by_role("link", name="Show the running operations").click()
    await expect(page.get_by_role("heading", name="System operations")).to_be_visible()


@pytest.mark.usefixtures("branch")
async def test_compute_is_added_edited_and_deleted(page: Page) -> None:
    await press(page, "Add compute")
    await page.get_by_label("Minimum size").fill("0.5")
    await page.get_by_label("Maximum size").fill("2")
    await press(page, "Create compute")
    await expect(states(page)).to_have_text(["Active", "Active"])
    added = page.locator("#branch-computes tbody tr").last
    await expect(added).to_contain_text("Read-only")
    await expect(added).to_contain_text("0.5 to 2 CU")
    await added.get_by_role("link", name="Edit compute").click()
    await page.get_by_label("Suspend timeout").fill("90")
    await press(page, "Save")
    await expect(added).to_contain_text("1 min 30 s")
    await added.get_by_role("link", name="Delete compute").click()
    await expect(page.get_by_text("Open connections of this compute end")).to_be_visible()
    await press(page, "Delete compute")
    await expect(states(page)).to_have_count(1)


@pytest.mark.usefixtures("branch")
async def test_refused_settings_stay_in_their_fields(page: Page, problems: Problems) -> None:
    problems.expect("400")
    await press(page, "Edit")
    await page.get_by_label("Minimum size").fill("4")
    await page.get_by_label("Maximum size").fill("2")
    await press(page, "Save")
    await expect(page.get_by_role("alert")).to_contain_text("4 is more than")
    await expect(page.get_by_label("Minimum size")).to_have_value("4")


@pytest.mark.usefixtures("branch")
async def test_button_on_the_dashboard_returns_to_the_dashboard(page: Page) -> None:
    await page.get_by_role("navigation", name="Project").get_by_role("link").first.click()
    await press(page, "Suspend")
    await expect(notice(page)).to_contain_text("Started: Suspend compute.")
    await expect(page.get_by_role("heading", level=1)).to_have_text("shop")
