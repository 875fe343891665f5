"""check_accessibility finds violations, in light and in dark colors."""

import pytest

from control_plane.tests.browser.accessibility import check_accessibility
from control_plane.tests.browser.invented import ORIGIN, html, serve
from control_plane.tests.browser.people import OpenPage
from control_plane.tests.browser.problems import Problems

GOOD = "<main><h1>Title</h1><p>Text</p></main>"
PALE = "<link rel=stylesheet href=/pale.css>"


@pytest.fixture
def origin() -> str:
    """The origin of the pages."""
    return ORIGIN


async def test_good_page_passes(open_page: OpenPage) -> None:
    page = await open_page()
    await serve(page, {"/": html(GOOD)})
    await page.goto("/")
    await check_accessibility(page)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("<main><h1>Title</h1><input></main>", r"label: Form elements must have labels"),
        ("<main><h1>Title</h1><img src=data:,></main>", r"image-alt: "),
        ("<p>Text</p>", r"landmark-one-main: "),
    ],
)
async def test_violation_fails(
    open_page: OpenPage, problems: Problems, body: str, rule: str
) -> None:
    page = await open_page()
    await serve(page, {"/": html(body)})
    await page.goto("/")
    with pytest.raises(AssertionError, match=rule):
        await check_accessibility(page)
    problems.found.clear()


async def test_pale_text_in_dark_colors_fails(open_page: OpenPage) -> None:
    page = await open_page()
    await page.set_content(
        html(
            GOOD,
            "<style>@media (prefers-color-scheme: dark) {"
            " body { background: #222; color: #333; } }</style>",
        )
    )
    with pytest.raises(AssertionError, match=r"(?s), dark:\ncolor-contrast: .*<p>Text</p>"):
        await check_accessibility(page)


async def test_content_security_policy_of_the_page_stays_in_force(
    open_page: OpenPage, problems: Problems
) -> None:
    page = await open_page()
    await serve(page, {"/": html(GOOD)})
    await page.goto("/")
    await check_accessibility(page)
    await page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "document.title = 'changed'";
            document.body.append(script);
        }"""
    )
    assert await page.title() == "A page"
    problems.expect("console error: .*inline script .*Content Security Policy")
