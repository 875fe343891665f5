"""The page on design shows results of the published benchmarks."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from benchmarks.harness.report import Report
from benchmarks.harness.results import LATENESS, OURS, REQUESTS
from tests.support.pages import TEXTS

PAGE = TEXTS["docs/design.md"]
REPORT = Path(__file__).parents[2] / "docs" / "benchmarks.json"
CLIENTS = (OURS, "@neon/sdk")
SHOWN: Mapping[str, tuple[str, int]] = {
    "1,000 operations in 1 project": (
        "1,000 operations of a project, finishing evenly over 10 s",
        1,
    ),
    "1,000 operations in 1 project, 50 ms away": ("the same with a round trip of 50 ms", 1),
    "200 operations in 100 projects, 50 ms away": (
        "200 operations in 100 projects, round trip of 50 ms",
        100,
    ),
}
"""The title on the page and the number of projects of each scenario."""


@pytest.fixture(scope="module")
def medians() -> Mapping[tuple[str, str, str], float]:
    """The medians of the benchmarks, by scenario, measure and client."""
    report = msgspec.json.decode(REPORT.read_bytes(), type=Report)
    return {
        (row.scenario, row.measure, client): spread.median
        for row in report.rows
        for client, spread in row.spreads.items()
    }


@pytest.mark.parametrize("scenario", SHOWN)
def test_table_of_pollers_shows_the_benchmarks(
    scenario: str, medians: Mapping[tuple[str, str, str], float]
) -> None:
    title, projects = SHOWN[scenario]
    cells = [title]
    for client in CLIENTS:
        requests = medians[scenario, REQUESTS, client] / projects
        lateness = medians[scenario, LATENESS, client]
        number = f"{requests:,.0f} requests" if projects == 1 else f"{requests:.3g} requests"
        unit = "" if projects == 1 else " per project"
        precision = 2 if lateness < 1 else 1 if projects > 1 else 0
        cells.append(f"{number}{unit}, {lateness:.{precision}f} s late")
    assert f"| {' | '.join(cells)} |" in PAGE


def test_table_of_pollers_shows_the_unknown_outcomes(
    medians: Mapping[tuple[str, str, str], float],
) -> None:
    scenario, measure = "100 branches, every 20th response a 503", "maximum unknown outcomes"
    ours, theirs = (medians[scenario, measure, client] for client in CLIENTS)
    assert ours == 0
    cells = f"reports the outcome of all | does not report the outcome of {theirs:.0f}"
    assert f"| 100 branches, every 20th response a 503 | {cells} |" in PAGE
