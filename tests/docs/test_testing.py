"""The tests on the page about testing pass."""

import inspect
from collections.abc import Callable
from pathlib import Path

from tests.support.pages import code_blocks, compiled

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_shown_tests_without_fixtures_pass() -> None:
    passed: list[str] = []
    for line, code in code_blocks(PAGE.read_text(), "python"):
        names: dict[str, object] = {}
        block = compiled(PAGE, line, code)
        if "def test_" not in code or block.co_flags & inspect.CO_COROUTINE:
            continue
        exec(block, names)
        for name, test in names.items():
            if name.startswith("test_") and callable(test) and not _takes_fixtures(test):
                test()
                passed.append(name)
    assert "test_wait_ends_at_its_timeout" in passed


def _takes_fixtures(test: Callable[..., object]) -> bool:
    return bool(inspect.signature(test).parameters)
