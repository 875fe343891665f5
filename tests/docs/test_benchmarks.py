"""The page on benchmarks, the README and the plots show the results in docs/benchmarks.json."""

from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from benchmarks.harness.report import Report, brief, markdown, written_into
from benchmarks.plots import comparison, waits

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def report() -> Report:
    return msgspec.json.decode((DOCS / "benchmarks.json").read_bytes(), type=Report)


def test_page_shows_the_tables(report: Report) -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert report.rows
    assert written_into(page, markdown(report)) == page


def test_readme_shows_a_part_of_the_results(report: Report) -> None:
    page = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert written_into(page, brief(report)) == page


@pytest.mark.parametrize(("name", "plot"), [("benchmarks", comparison), ("waits", waits)])
def test_plot_shows_the_results(report: Report, name: str, plot: ModuleType) -> None:
    picture = (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert picture == plot.draw(report.rows)


def test_json_reports_every_missed_target(report: Report) -> None:
    for row in report.rows:
        met = all(row.meets(target) for target in row.targets) if row.targets else None
        assert row.met is met, row.scenario
