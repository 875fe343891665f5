"""Every fact of Neon's guides has a test, or a row in the table of differences.

``facts.toml`` has the facts. A test that shows one is marked with ``@pytest.mark.fact("its-id")``.
"""

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).parents[3]
# Any: the content of a TOML file.
CONTENT: Final[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("facts.toml").read_text(encoding="utf-8")
)
FACTS: Final[dict[str, str]] = {
    id: statement for page in CONTENT["pages"] for id, statement in page["facts"].items()
}
MARK = re.compile(r"@pytest\.mark\.fact\(([^)]*)\)\s+(?=@|(?:async )?def test_|class Test)")
HEADING = "## Differences from Neon's guides"


def marked() -> set[str]:
    """Return the facts that tests are marked with, also tests that need a browser or Postgres."""
    texts = [
        path.read_text(encoding="utf-8")
        for folder in (ROOT / "control_plane" / "tests", ROOT / "tests")
        for path in folder.rglob("test_*.py")
    ]
    marks = [arguments for text in texts for arguments in MARK.findall(text)]
    assert (
        sum(text.count("mark.fact" + "(") for text in texts) == len(marks) + 1
    )  # in the docstring
    return {id for arguments in marks for id in re.findall(r'"([^"]+)"', arguments)}


def different() -> list[str]:
    """Return the facts that the rows of the table begin with, in their order."""
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    section = page.partition(HEADING)[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    return [id for cell in cells for id in re.findall(r"`([^`]+)`", cell)]


def test_fact_has_one_id_and_is_stated_once() -> None:
    assert len(FACTS) == sum(len(page["facts"]) for page in CONTENT["pages"])
    assert [text for text, times in Counter(FACTS.values()).items() if times > 1] == []


def test_marks_and_rows_name_facts() -> None:
    assert (marked() | set(different())) - set(FACTS) == set()


def test_fact_has_one_row_at_most() -> None:
    assert [id for id, times in Counter(different()).items() if times > 1] == []


def test_fact_either_holds_or_differs() -> None:
    assert marked() & set(different()) == set()


def test_every_fact_has_a_test_or_a_row() -> None:
    assert set(FACTS) - marked() - set(different()) == set()
