"""The first visit: from the link that the command prints to a finished branch."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from control_plane.tests.browser.people import OpenPage, sign_in
from neonctl_async import NeonClient
from tests.support.server_process import Served, serving


@pytest_asyncio.fixture(loop_scope="session")
async def served() -> AsyncIterator[Served]:
    """The server, started as a new user starts it."""
    async with serving() as served:
        yield served


@pytest.fixture
def origin(served: Served) -> str:
    """The origin of the console."""
    return served.base_url.removesuffix("/api/v2")


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
async def test_key_is_created_and_used_and_the_operations_of_a_branch_are_watched(
    open_page: OpenPage, served: Served, scripts: bool
) -> None:
    page = await open_page(java_script_enabled=scripts)
    await sign_in(page, await served.console_url())
    key = await create_key(page, "laptop")
    await create_project(page, "shop")
    async with NeonClient(key, base_url=served.base_url) as neon:
        [project] = await neon.projects.list().collect()
        assert project.name == "shop"
        await neon.projects.wait_for(project.id)  # until then, the project is locked
    await create_branch(page, "preview")
    await page.get_by_role("navigation").get_by_role("link", name="System operations").click()
    await watch_to_ok(page, ["Create branch", "Start compute"], scripts=scripts)


async def create_key(page: Page, name: str) -> str:
    """Create a personal key in the pages. Return it."""
    await page.locator("summary", has_text="First User").click()
    await page.get_by_role("link", name="API keys", exact=True).click()
    await page.get_by_role("link", name="Create new API key").first.click()
    await page.get_by_label("Name").fill(name)
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("API key created")
    return await page.locator("main .copyable:not(.block) code").inner_text()


async def create_project(page: Page, name: str) -> None:
    """Create a project in the pages."""
    await page.get_by_role("link", name="Local control plane").click()
    await page.get_by_role("link", name="New project").first.click()
    await page.get_by_label("Name").fill(name)
    await page.get_by_role("button", name="Create project").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(name)


async def create_branch(page: Page, name: str) -> None:
    """Create a branch with a compute in the pages."""
    await page.get_by_role("link", name="New branch").click()
    await page.get_by_label(re.compile("^Name")).fill(name)
    await page.get_by_label("Create a compute").check()
    await page.get_by_role("button", name="Create branch").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(name)


async def watch_to_ok(page: Page, names: list[str], *, scripts: bool) -> None:
    """Wait until the operations of the branch are OK. Without scripts, load the page again."""
    rows = page.get_by_role("row").filter(has_text="preview")
    for name in names:
        cell = rows.filter(has_text=name).get_by_role("cell", name="OK", exact=True)
        while not scripts and not await cell.is_visible():
            await page.reload()
        await expect(cell).to_be_visible()
