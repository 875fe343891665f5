"""The tests on the page about testing pass."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path

from pytest_neonctl_async import ControlPlane
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


def test_page_lists_the_coroutines_of_the_control_plane() -> None:
    _, _, section = PAGE.read_text().partition("### The local control plane of a test\n")
    listed = re.findall(
        r"`(\w+)`", "\n".join(re.findall(r"^- .*", section.partition("###")[0], re.MULTILINE))
    )
    coroutines = inspect.getmembers(ControlPlane, inspect.iscoroutinefunction)
    assert sorted(listed) == sorted(name for name, _ in coroutines if not name.startswith("_"))


def _takes_fixtures(test: Callable[..., object]) -> bool:
    return bool(inspect.signature(test).parameters)
