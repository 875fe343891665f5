"""The checks of every test find each kind of problem."""

import pytest
from playwright.async_api import Page

from control_plane.tests.browser.invented import ORIGIN, html, serve
from control_plane.tests.browser.people import OpenPage
from control_plane.tests.browser.problems import Problems

PAGES = {
    "error": "console.error('bad')",
    "warning": "console.warn('odd')",
    "information": "console.log('fine')",
    "exception": "missing()",
    "rejection": "Promise.reject(new Error('refused'))",
    "foreign": "<img src=https://example.com/pixel.png alt=pixel>",
    "port": "<img src=http://127.0.0.1:2/pixel.png alt=pixel>",
    "inline": "<script>document.title = 'changed'</script>",
    "style": "<h1 style='color: red'>Title</h1>",
    "dialog": "alert(1)",
    "key": "<img src='/page.png?key=abc' alt=key>",
    "password": "<img src='/page.png?name=a&password=abc' alt=password>",
    "personal": "<img src=/napi_abc.png alt=personal>",
    "gone": "<img src=/missing.png alt=missing>",
    "lost": "<img src=/lost.png alt=lost>",
}
"""The content of each page, or its script."""


@pytest.fixture
def origin() -> str:
    """The origin of the pages."""
    return ORIGIN


async def visit(page: Page, name: str) -> None:
    """Open one of the pages."""
    is_html = PAGES[name].startswith("<")
    script = {} if is_html else {"/page.js": PAGES[name]}
    body = PAGES[name] if is_html else "<script src=/page.js></script>"
    await serve(page, {f"/{name}": html(body), "/lost.png": "", **script})
    await page.goto(f"/{name}")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("error", r"console error: bad"),
        ("warning", r"console warning: odd"),
        ("exception", r"exception: missing is not defined"),
        ("rejection", r"exception: refused"),
        ("foreign", r"foreign request: GET https://example\.com/pixel\.png"),
        ("port", r"foreign request: GET http://127\.0\.0\.1:2/pixel\.png"),
        ("inline", r"console error: .*inline script .*Content Security Policy"),
        ("style", r"console error: .*inline style .*Content Security Policy"),
        ("dialog", r"dialog: 1"),
        ("key", r"secret in an address: GET /page\.png\?key=abc"),
        ("password", r"secret in an address: GET /page\.png\?name=a&password=abc"),
        ("personal", r"secret in an address: GET /napi_abc\.png"),
        ("gone", r"status 404: GET /missing\.png"),
        ("lost", r"failed request: GET /lost\.png: net::ERR_CONNECTION_RESET"),
    ],
)
async def test_problem_fails_a_test(
    open_page: OpenPage, problems: Problems, name: str, found: str
) -> None:
    page = await open_page()
    await visit(page, name)
    while not problems.found:  # Chromium reports a rejection a little later
        await page.wait_for_timeout(10)
    with pytest.raises(AssertionError, match=found):
        problems.check()
    problems.found.clear()


async def test_page_without_a_problem_passes(open_page: OpenPage, problems: Problems) -> None:
    await visit(await open_page(), "information")
    problems.check()


async def test_failing_page_is_a_problem(open_page: OpenPage, problems: Problems) -> None:
    page = await open_page()
    await serve(page, {})
    await page.goto("/elsewhere")
    assert problems.found == ["status 404: GET /elsewhere"]
    problems.expect("404")


async def test_expected_problem_is_allowed_and_others_are_not(
    open_page: OpenPage, problems: Problems
) -> None:
    page = await open_page()
    await visit(page, "error")
    problems.expect("console error: bad")
    problems.check()
    await visit(page, "warning")
    with pytest.raises(AssertionError, match=r"console warning: odd$"):
        problems.check()
    problems.expect("odd")


async def test_expected_problem_that_does_not_occur_fails(problems: Problems) -> None:
    problems.expect("bad")
    with pytest.raises(AssertionError, match=r"did not occur: \['bad'\]"):
        problems.check()
