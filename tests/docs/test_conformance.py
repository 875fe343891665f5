"""The conformance page names an existing test for each statement."""

import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "conformance.md"
NAMED = re.compile(r"`([\w/]*test_\w+)\.py::(\w+)`")
IN_BROWSER = "browser/"
CONSOLE = (
    "2.1, 3.1 and 5 API keys in the console",
    "2.3, 3.2 and 4.5 Operations in the console",
)
"""The sections whose statements are tested in a browser."""


@cache
def names_of_browser_tests(module: str) -> set[str]:
    """Return the tests of a module. Only some environments can import it."""
    text = (ROOT / "control_plane" / "tests" / f"{module}.py").read_text(encoding="utf-8")
    return set(re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE))


def exists(module: str, name: str) -> bool:
    if module.startswith(IN_BROWSER):
        return name in names_of_browser_tests(module)
    return hasattr(importlib.import_module(f"control_plane.tests.{module.replace('/', '.')}"), name)


def rows(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line.startswith("| ") and line != "| statement | test |":
            yield line


def test_named_tests_exist() -> None:
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 80
    assert [one for one in named if not exists(*one)] == []


def test_missing_browser_test_is_found() -> None:
    assert exists(f"{IN_BROWSER}test_operations", "test_new_branch_is_watched_to_ok")
    assert not exists(f"{IN_BROWSER}test_operations", "test_that_does_not_exist")


def test_every_statement_names_a_test() -> None:
    page = PAGE.read_text(encoding="utf-8")
    statements = page[page.index("## The specification") : page.index("## Choices")]
    assert [row for row in rows(statements) if not NAMED.search(row)] == []


def test_every_statement_about_the_console_names_a_browser_test() -> None:
    page = PAGE.read_text(encoding="utf-8")
    sections = [part for part in page.split("\n### ") if part.partition("\n")[0] in CONSOLE]
    assert len(sections) == len(CONSOLE)
    found = [row for section in sections for row in rows(section)]
    assert [row for row in found if f"`{IN_BROWSER}" not in row] == []
