"""The page on benchmarks and the README show the results in the JSON files of docs."""

import msgspec
import pytest

from benchmarks.harness.report import CLIENT, Report, brief, markdown, written_into
from tests.support.pages import ROOT, TEXTS

DOCS = ROOT / "docs"
REPORTS = (
    CLIENT,
    "benchmarks-waiting",
    "benchmarks-control-plane",
    "benchmarks-databases",
    "benchmarks-startup",
)


@pytest.fixture(scope="module")
def report() -> Report:
    return read(CLIENT)


def read(name: str) -> Report:
    return msgspec.json.decode((DOCS / f"{name}.json").read_bytes(), type=Report)


@pytest.mark.parametrize("name", REPORTS)
def test_page_shows_the_table(name: str) -> None:
    page = TEXTS["docs/benchmarks.md"]
    assert written_into(page, name, markdown(read(name))) == page


def test_readme_shows_a_part_of_the_results(report: Report) -> None:
    page = TEXTS["README.md"]
    assert written_into(page, CLIENT, brief(report)) == page


@pytest.mark.parametrize("name", REPORTS)
def test_json_reports_every_missed_target(name: str) -> None:
    for row in read(name).rows:
        met = all(row.meets(target) for target in row.targets) if row.targets else None
        assert row.met is met, row.scenario
