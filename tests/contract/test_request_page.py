"""What the page on ``neon.request`` shows is what is published."""

import inspect
from pathlib import Path

import pytest

from tests.contract.calls import watched
from tests.contract.verdict import agrees
from tests.support.pages import code_blocks, compiled

pytestmark = pytest.mark.contract

PAGE = Path(__file__).parents[2] / "docs" / "request.md"
TEXT = PAGE.read_text()


async def test_the_code_of_the_page_violates_nothing(prism: str) -> None:
    async with watched(prism) as client:
        shown: dict[str, object] = {
            "neon": client.neon,
            "project_id": "late-frost-12345678",
            "branch_id": "br-quiet-sun-87654321",
            "database_name": "neondb",
        }
        for line, code in code_blocks(TEXT, "python"):
            result = eval(compiled(PAGE, line, code), shown)
            if inspect.iscoroutine(result):
                await result
    for exchange in client.witness.seen:
        agrees(f"{PAGE.name} calls {exchange}", exchange.violations)
