"""People in front of browsers: Chromium, contexts and pages."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol, Self

from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from control_plane.tests.browser.problems import Problems
from tools.chromium import ARGUMENTS, find_chromium

PATIENCE = 30_000
"""The limit of each action and each expectation, in milliseconds."""

TIMEZONE = "Asia/Kathmandu"
"""The time zone of all pages. Its distance of 5:45 from UTC shows each time that is not local."""


class OpenPage(Protocol):
    """Opens a page in a new context. The options are those of the context."""

    async def __call__(self, **options: Any) -> Page: ...  # Any: each option has its own type


@asynccontextmanager
async def started_browser() -> AsyncGenerator[Browser]:
    """Start Chromium."""
    expect.set_options(timeout=PATIENCE)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(), args=list(ARGUMENTS)
        )
        try:
            yield browser
        finally:
            await browser.close()


async def sign_in(page: Page, link: str) -> None:
    """Sign in with a link, which leads to the first page of the console."""
    await page.goto(link)
    await page.wait_for_url("**/console")


async def sign_in_with_key(page: Page, key: str) -> None:
    """Sign in with a personal API key."""
    await page.goto("/console/sign-in")
    await page.get_by_label("Personal API key or sign-in link").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await page.wait_for_url("**/console")


class Contexts:
    """The contexts of a test. A context has cookies and a cache of its own."""

    def __init__(self, browser: Browser, problems: Problems) -> None:
        self._browser = browser
        self._problems = problems
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._stack.aclose()

    async def open_page(self, **options: Any) -> Page:  # Any: each option has its own type
        """Open a page in a new context."""
        context = await self._new_context(**options)
        return await context.new_page()

    async def _new_context(self, **options: Any) -> BrowserContext:  # Any: as above
        settings: dict[str, Any] = {  # as above
            "base_url": self._problems.origin,
            "timezone_id": TIMEZONE,
            "viewport": {"width": 1280, "height": 800},
        }
        context = await self._browser.new_context(**(settings | options))
        self._stack.push_async_callback(context.close)
        context.set_default_timeout(PATIENCE)
        self._problems.attach(context)
        return context
