"""A browser for all tests of a process, and a context of its own for each test.

All tests and fixtures of this folder share one event loop, because the browser belongs to its
loop. An asynchronous fixture needs ``@pytest_asyncio.fixture(loop_scope="session")``.
"""

import asyncio
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from neonctl_async import NeonClient
from neonctl_local import Durations, LocalControlPlane

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

    from control_plane.tests.browser.live_page import LivePage
    from control_plane.tests.browser.people import OpenPage
    from control_plane.tests.browser.problems import Problems

# Only the environments of make browser and make check contain Playwright.
collect_ignore_glob = [] if find_spec("playwright") else ["test_*.py"]


def pytest_collectstart(collector: pytest.Collector) -> None:
    """Mark all tests of this folder."""
    if isinstance(collector, pytest.Module):
        collector.add_marker(pytest.mark.browser)
        collector.add_marker(pytest.mark.asyncio(loop_scope="session"))


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> "AsyncIterator[Browser]":
    """Chromium, for all tests of a process."""
    from control_plane.tests.browser.people import started_browser  # noqa: PLC0415 - Playwright may be missing

    async with started_browser() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def control_plane(request: pytest.FixtureRequest) -> AsyncIterator[LocalControlPlane]:
    """A local control plane. The marker ``control_plane`` has further settings."""
    settings: dict[str, object] = {"durations": Durations(default=0.05), "lock": "none"}
    if marker := request.node.get_closest_marker("control_plane"):
        settings |= marker.kwargs
    async with LocalControlPlane(**settings) as control_plane:  # type: ignore[arg-type] # settings of any type
        yield control_plane


@pytest_asyncio.fixture(loop_scope="session")
async def neon(control_plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    """A client of the local control plane."""
    async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
        yield neon


@pytest_asyncio.fixture(loop_scope="session")
async def server(template: str) -> "AsyncIterator[LivePage]":
    """A server of one page. The module of the test has a fixture with its template."""
    from control_plane.tests.browser.live_page import LivePage  # noqa: PLC0415 - Playwright may be missing

    server = await LivePage.new(template)
    async with server.serving():
        yield server


@pytest.fixture
def origin(control_plane: LocalControlPlane) -> str:
    """The origin of all requests. A test with a server of its own overrides this fixture."""
    return control_plane.base_url.removesuffix("/api/v2")


@pytest.fixture
def problems(origin: str) -> "Problems":
    """The problems of all pages of a test. ``problems.expect(pattern)`` allows some of them."""
    from control_plane.tests.browser.problems import Problems  # noqa: PLC0415 - Playwright may be missing

    return Problems(origin)


@pytest_asyncio.fixture(loop_scope="session")
async def open_page(browser: "Browser", problems: "Problems") -> "AsyncIterator[OpenPage]":
    """A function that opens a page in a new context. Its options are those of the context."""
    from control_plane.tests.browser.people import Contexts  # noqa: PLC0415 - Playwright may be missing

    async with Contexts(browser, problems) as contexts:
        yield contexts.open_page
    problems.check()


@pytest_asyncio.fixture(loop_scope="session")
async def page(open_page: "OpenPage", control_plane: LocalControlPlane) -> "Page":
    """The first page of the console. The first user is signed in."""
    from control_plane.tests.browser.people import sign_in  # noqa: PLC0415 - Playwright may be missing

    page = await open_page()
    await sign_in(page, control_plane.console_url)
    return page


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def fail_on_leftover_task(request: pytest.FixtureRequest) -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    if left:
        await asyncio.wait(left, timeout=10)
    left = {task for task in left if not task.done()}
    assert not left, f"{request.node.name} left tasks behind: {left}"
