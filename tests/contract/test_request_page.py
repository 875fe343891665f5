"""The code on the page about ``neon.request`` agrees with the published description."""

import inspect
from pathlib import Path

import pytest

from tests.contract.calls import recorded_client
from tests.contract.problems import assert_none
from tests.support.pages import code_blocks, compiled

pytestmark = pytest.mark.contract

PAGE = Path(__file__).parents[2] / "docs" / "request.md"
TEXT = PAGE.read_text()


async def test_code_of_the_page_has_no_violations(prism: str) -> None:
    async with recorded_client(prism) as client:
        names: dict[str, object] = {
            "neon": client.neon,
            "project_id": "late-frost-12345678",
            "branch_id": "br-quiet-sun-87654321",
            "database_name": "neondb",
        }
        for line, code in code_blocks(TEXT, "python"):
            result = eval(compiled(PAGE, line, code), names)
            if inspect.iscoroutine(result):
                await result
    for exchange in client.recorder.exchanges:
        assert_none(f"{PAGE.name} calls {exchange}", exchange.violations)
