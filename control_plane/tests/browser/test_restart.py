"""The server stops and starts again while pages are open."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from control_plane.tests.browser.people import OpenPage, sign_in_with_key
from control_plane.tests.browser.problems import Problems
from neonctl_local import LocalControlPlane


class Restarting:
    """A local control plane that keeps its data and its address over a restart."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self.control_plane = LocalControlPlane(data=data)

    async def restart(self) -> None:
        """Stop the server, and start it again at the same address."""
        start_again = await self.stop()
        await start_again()

    async def stop(self) -> Callable[[], Awaitable[None]]:
        """Stop the server. Return the function that starts it at the same address."""
        port = urlsplit(self.control_plane.base_url).port
        assert port is not None
        await self.control_plane.stop()
        self.control_plane = LocalControlPlane(data=self._data, port=port)
        return self.control_plane.start


@pytest_asyncio.fixture(loop_scope="session")
async def restarting(tmp_path: Path) -> AsyncIterator[Restarting]:
    """A local control plane with a data file."""
    restarting = Restarting(tmp_path / "data.db")
    await restarting.control_plane.start()
    yield restarting
    await restarting.control_plane.stop()


@pytest_asyncio.fixture(loop_scope="session")
async def control_plane(restarting: Restarting) -> LocalControlPlane:
    """The local control plane before the restart."""
    return restarting.control_plane


@pytest.fixture
def expected_problems(problems: Problems) -> None:
    """Streams end when the server stops. The server does not know older sessions."""
    problems.expect("net::ERR_|status 401")


@pytest.mark.usefixtures("expected_problems")
async def test_typed_text_survives_a_restart(page: Page, restarting: Restarting) -> None:
    key = restarting.control_plane.api_key
    await page.goto("/console/projects/new")
    await page.get_by_label("Name").fill("typed before the restart")
    await restarting.restart()
    await page.get_by_role("button", name="Create project").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    await page.get_by_label("Personal API key or sign-in link").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_label("Name")).to_have_value("typed before the restart")
    await page.get_by_role("button", name="Create project").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("typed before the restart")


@pytest.mark.usefixtures("expected_problems")
async def test_open_page_reports_the_stop_and_leads_to_the_sign_in(
    page: Page, restarting: Restarting
) -> None:
    project_id = await new_project(page)
    await page.goto(f"/console/projects/{project_id}")
    message = page.get_by_role("complementary", name="Connection")
    await expect(message).to_be_hidden()
    key = restarting.control_plane.api_key
    start_again = await restarting.stop()
    await expect(message).to_contain_text("Not connected")
    await start_again()
    await message.get_by_role("link", name="Sign in again").click()
    await page.get_by_label("Personal API key or sign-in link").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Branches")).to_be_visible()


async def new_project(page: Page) -> str:
    """Create a project in the pages. Return its id."""
    await page.goto("/console/projects/new")
    await page.get_by_role("button", name="Create project").click()
    await page.wait_for_url("**/projects/*-*")
    return page.url.rpartition("/")[2]


async def test_person_signs_in_again_after_a_restart(
    open_page: OpenPage, restarting: Restarting
) -> None:
    page = await open_page()
    key = restarting.control_plane.api_key
    await sign_in_with_key(page, key)
    await page.wait_for_load_state("networkidle")
    await restarting.restart()
    await sign_in_with_key(page, key)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Projects")
