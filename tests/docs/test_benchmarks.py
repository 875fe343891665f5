"""The pages on benchmarks, the README and the plots show the results in the JSON files of docs."""

from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from benchmarks.harness.report import Report, brief, markdown, written_into
from benchmarks.plots import comparison, waits

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("benchmarks", "benchmarks-control-plane", "benchmarks-databases", "benchmarks-startup")


@pytest.fixture(scope="module")
def report() -> Report:
    return read("benchmarks")


def read(name: str) -> Report:
    return msgspec.json.decode((DOCS / f"{name}.json").read_bytes(), type=Report)


@pytest.mark.parametrize("name", PAGES)
def test_page_shows_the_tables(name: str) -> None:
    report = read(name)
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert report.rows
    assert written_into(page, markdown(report)) == page


def test_readme_shows_a_part_of_the_results(report: Report) -> None:
    page = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert written_into(page, brief(report)) == page


@pytest.mark.parametrize(("name", "plot"), [("benchmarks", comparison), ("waits", waits)])
def test_plot_shows_the_results(report: Report, name: str, plot: ModuleType) -> None:
    picture = (DOCS / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert picture == plot.draw(report.rows)


@pytest.mark.parametrize("name", PAGES)
def test_json_reports_every_missed_target(name: str) -> None:
    for row in read(name).rows:
        met = all(row.meets(target) for target in row.targets) if row.targets else None
        assert row.met is met, row.scenario
