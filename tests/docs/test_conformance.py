"""The conformance page names an existing test for each statement."""

import importlib
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
NAMED = re.compile(r"`([\w/]*test_\w+)\.py::(\w+)`")


def test_named_tests_exist() -> None:
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 80
    for module, name in named:
        tests = importlib.import_module(f"tests.local.{module.replace('/', '.')}")
        assert hasattr(tests, name), (module, name)


def test_every_statement_names_a_test() -> None:
    page = PAGE.read_text(encoding="utf-8")
    statements = page[page.index("## The specification") : page.index("## Choices")]
    rows = [line for line in statements.splitlines() if line.startswith("| ")]
    assert [row for row in rows if not NAMED.search(row) and row != "| statement | test |"] == []
