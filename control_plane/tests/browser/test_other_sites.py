"""Pages of other sites, which link to the console, post to it, frame it and load from it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from playwright.async_api import Page, expect

from control_plane.tests.browser.people import OpenPage, sign_in
from control_plane.tests.browser.problems import Problems
from neonctl_local import LocalControlPlane

ATTACK = """<!doctype html><title>Other site</title>
<a id="page" href="{origin}/console/projects/new">page</a>
<a id="link" href="{link}">link</a>
<form method="post" action="{origin}/console/projects/new">
<input name="name" value="evil"><button id="post">post</button></form>
{more}"""
LOADS = """<iframe name="framed" src="{origin}/console"></iframe>
<img src="{origin}/console/account/keys"><script src="{origin}/console/static/console.js"></script>
<link rel="stylesheet" href="{origin}/console/static/console.css">
<script>fetch("{origin}/console", {{mode: "no-cors", credentials: "include"}}).catch(() => 0)
</script>"""

# An other port of the same host is the same site: browsers send strict cookies to it.
SITES = pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])


@asynccontextmanager
async def other_site(page: str, host: str) -> AsyncGenerator[str]:
    """Serve a page at another origin. Yield its address."""

    async def show(_request: web.Request) -> web.Response:
        return web.Response(text=page, content_type="text/html")

    async def icon(_request: web.Request) -> web.Response:
        return web.Response(status=204)

    app = web.Application()
    app.router.add_get("/", show)
    app.router.add_get("/favicon.ico", icon)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://{host}:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


@SITES
async def test_link_of_another_site_opens_a_page(
    page: Page, origin: str, problems: Problems, host: str
) -> None:
    problems.expect("foreign request: GET http://")
    content = ATTACK.format(origin=origin, link="", more="")
    async with other_site(content, host) as address:
        await page.goto(address)
        await page.locator("#page").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("New project")


@SITES
async def test_sign_in_link_on_another_site_needs_a_confirmation(
    open_page: OpenPage,
    control_plane: LocalControlPlane,
    problems: Problems,
    host: str,
    origin: str,
) -> None:
    problems.expect("foreign request: GET http://")
    content = ATTACK.format(origin=origin, link=control_plane.console_url, more="")
    page = await open_page()
    async with other_site(content, host) as address:
        await page.goto(address)
        await page.locator("#link").click()
        await expect(page.get_by_role("main")).to_contain_text("A page of another site")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Projects")


@SITES
async def test_form_of_another_site_changes_nothing(
    page: Page, origin: str, problems: Problems, host: str
) -> None:
    problems.expect("foreign request: GET http://")
    problems.expect("status 403: POST /console/projects/new")
    content = ATTACK.format(origin=origin, link="", more="")
    async with other_site(content, host) as address:
        await page.goto(address)
        await page.locator("#post").click()
        await expect(page.get_by_role("alert")).to_contain_text("sent the request")
    await page.goto("/console")
    await expect(page.get_by_text("evil")).to_have_count(0)


@SITES
async def test_another_site_frames_and_loads_nothing(
    open_page: OpenPage,
    control_plane: LocalControlPlane,
    problems: Problems,
    host: str,
    origin: str,
) -> None:
    for pattern in (
        "foreign request: GET http://",
        "status 403: GET /console$",
        "failed request: GET /console: net::ERR_BLOCKED_BY_RESPONSE$",  # the frame
        "failed request: GET /console: .*NotSameOrigin",
        "failed request: GET /console/account/keys: .*NotSameOrigin",
        "failed request: GET /console/static/console.js: .*NotSameOrigin",
        "failed request: GET /console/static/console.css: .*NotSameOrigin",
        "console error: .*NotSameOrigin",
        "console error: .*frame-ancestors",
    ):
        problems.expect(pattern)
    page = await open_page()
    await sign_in(page, control_plane.console_url)
    content = ATTACK.format(origin=origin, link="", more=LOADS.format(origin=origin))
    async with other_site(content, host) as address:
        await page.goto(address, wait_until="networkidle")
        for framed in page.frames[1:]:
            assert "Projects" not in await framed.content()
