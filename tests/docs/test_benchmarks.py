"""The page on benchmarks and the README show the results in the JSON files of a run."""

import pytest

from benchmarks.harness.report import (
    CLIENT,
    brief,
    markdown,
    read,
    reports,
    written_into,
)
from tests.support.pages import ROOT, TEXTS

REPORTS = {path.stem: read(path) for path in reports(ROOT)}


@pytest.mark.parametrize("name", REPORTS)
def test_page_shows_the_table(name: str) -> None:
    page = TEXTS["docs/benchmarks.md"]
    assert written_into(page, name, markdown(REPORTS[name])) == page


def test_readme_shows_a_part_of_the_results() -> None:
    page = TEXTS["README.md"]
    table = brief(REPORTS.values())
    assert written_into(page, CLIENT, table) == page
    assert 3 <= table.count("\n") - 1 <= 5


@pytest.mark.parametrize("name", REPORTS)
def test_json_reports_every_missed_target(name: str) -> None:
    for row in REPORTS[name].rows:
        met = all(row.meets(target) for target in row.targets) if row.targets else None
        assert row.met is met, row.scenario
