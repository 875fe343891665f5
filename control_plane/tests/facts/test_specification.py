"""Every statement of the specification has a test, and so has every choice where it is open."""

import importlib
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

TESTS = Path(__file__).parents[1]
# Any: the content of a TOML file.
CONTENT: Final[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("specification.toml").read_text(encoding="utf-8")
)
STATEMENTS: Final[dict[str, dict[str, list[str]]]] = CONTENT["statements"]
IN_BROWSER = "browser/"
CONSOLE = (
    "2.1, 3.1 and 5 API keys in the console",
    "2.3, 3.2 and 4.5 Operations in the console",
)
"""The sections whose statements are tested in a browser."""


@cache
def names_of_browser_tests(module: str) -> set[str]:
    """Return the tests of a module. Only some environments can import it."""
    text = (TESTS / module).read_text(encoding="utf-8")
    return set(re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE))


def exists(test: str) -> bool:
    module, name = test.split("::")
    if module.startswith(IN_BROWSER):
        return name in names_of_browser_tests(module)
    dotted = module.removesuffix(".py").replace("/", ".")
    return hasattr(importlib.import_module(f"control_plane.tests.{dotted}"), name)


def named() -> Iterator[str]:
    for section in STATEMENTS.values():
        for tests in section.values():
            yield from tests
    for choice in CONTENT["choices"]:
        yield from choice["tests"]


def test_named_tests_exist() -> None:
    assert [test for test in named() if not exists(test)] == []


def test_missing_browser_test_is_found() -> None:
    assert exists(f"{IN_BROWSER}test_operations.py::test_new_branch_is_watched_to_ok")
    assert not exists(f"{IN_BROWSER}test_operations.py::test_that_does_not_exist")


def test_every_statement_names_a_test() -> None:
    assert sum(map(len, STATEMENTS.values())) > 100
    untested = [
        text for section in STATEMENTS.values() for text, tests in section.items() if not tests
    ]
    assert untested == []


def test_every_statement_about_the_console_names_a_browser_test() -> None:
    statements = [one for section in CONSOLE for one in STATEMENTS[section].items()]
    assert [text for text, tests in statements if not any(IN_BROWSER in one for one in tests)] == []
