"""Checks pages with axe-core."""

import asyncio
from pathlib import Path
from typing import Final, Literal, TypedDict

from playwright.async_api import Page

AXE: Final = Path(__file__).parents[3] / ".browser" / "node_modules" / "axe-core" / "axe.min.js"
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")

RUN: Final = """async () => {
    const {violations} = await axe.run(document, {preload: false, resultTypes: ["violations"]});
    return violations.map(({id, help, nodes}) => ({
        id, help, nodes: nodes.map(({html, failureSummary}) => `${html}\\n    ${failureSummary}`),
    }));
}"""


class Violation(TypedDict):
    """A rule that elements of the page violate."""

    id: str
    help: str
    nodes: list[str]


async def check_accessibility(page: Page) -> None:
    """Fail if axe-core finds a violation on the page, in light or dark colors.

    Playwright evaluates axe-core through the debugger, so the content security policy of the page
    stays in force.
    """
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(await asyncio.to_thread(AXE.read_text, encoding="utf-8"))
    for scheme in SCHEMES:
        # Without reduced motion, colors could still be between light and dark.
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found: list[Violation] = await page.evaluate(RUN)
        problems = [f"{one['id']}: {one['help']}\n  " + "\n  ".join(one["nodes"]) for one in found]
        assert not problems, f"{page.url}, {scheme}:\n" + "\n".join(problems)
    await page.emulate_media(color_scheme="null", reduced_motion="null")
