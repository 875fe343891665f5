"""The code that runs against Neon only agrees with the published description."""

import inspect

import pytest

from tests.contract.calls import recorded_client
from tests.contract.problems import assert_none
from tests.support.pages import ROOT, TEXTS, code_blocks, compiled

pytestmark = pytest.mark.contract


@pytest.mark.parametrize("page", ["docs/requests.md", "docs/services.md"])
async def test_code_of_a_page_has_no_violations(page: str, prism: str) -> None:
    async with recorded_client(prism) as client:
        names: dict[str, object] = {
            "neon": client.neon,
            "project_id": "late-frost-12345678",
            "branch_id": "br-quiet-sun-87654321",
        }
        for line, code in code_blocks(TEXTS[page], 'python title="Neon only"'):
            result = eval(compiled(ROOT / page, line, code), names)
            if inspect.iscoroutine(result):
                await result
    assert client.recorder.exchanges
    for exchange in client.recorder.exchanges:
        assert_none(f"{page} calls {exchange}", exchange.violations)
