"""What the benchmarks make of what they measured."""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from benchmarks import __main__ as program
from benchmarks import answers
from benchmarks.effort import Effort
from benchmarks.figures import FLOOR, NEON_API, NEON_SDK, OURS, Row, Spread, Target, row, spread
from benchmarks.picture import draw
from benchmarks.report import Report, brief, markdown, plain, written_into
from benchmarks.scenario import CREATE, Settings
from benchmarks.scenario_server import ScenarioServer
from benchmarks.waits import Case
from benchmarks.waits_picture import draw_waits
from neonctl_async import NeonClient, OperationFailedError
from neonctl_async.models.operations import OperationsPage

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def report() -> Report:
    return msgspec.json.decode((DOCS / "benchmarks.json").read_bytes(), type=Report)


def test_the_page_shows_the_table_that_the_json_says(report: Report) -> None:
    page = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    assert report.rows
    assert written_into(page, markdown(report)) == page


def test_the_readme_shows_a_part_of_it(report: Report) -> None:
    page = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert written_into(page, brief(report)) == page


def test_the_picture_shows_what_the_json_says(report: Report) -> None:
    assert (DOCS / "pictures" / "benchmarks.svg").read_text(encoding="utf-8") == draw(report.rows)


def test_the_picture_of_the_waits_shows_what_the_json_says(report: Report) -> None:
    assert (DOCS / "pictures" / "waits.svg").read_text(encoding="utf-8") == draw_waits(report.rows)


def test_the_json_calls_no_target_met_that_is_missed(report: Report) -> None:
    for found in report.rows:
        met = all(found.meets(target) for target in found.targets) if found.targets else None
        assert found.met is met, found.scenario


def test_a_spread_is_the_median_and_the_quartiles() -> None:
    assert spread([5, 1, 2, 4, 3]) == Spread(median=3, low=2, high=4, count=5)
    assert spread([7]) == Spread(median=7, low=7, high=7, count=1)


def measured(**runs: list[float]) -> Row:
    names = {"ours": OURS, "floor": FLOOR, "sdk": NEON_SDK, "api": NEON_API}
    return row("a GET", "alone", "ms", {names[name]: values for name, values in runs.items()})


def test_ratios_are_of_runs_in_the_same_turn() -> None:
    found = measured(ours=[1, 20, 3], floor=[1, 10, 1])
    assert found.ratios == {FLOOR: Spread(median=2, low=1.5, high=2.5, count=3)}


def test_a_contender_with_fewer_runs_is_compared_in_the_turns_that_it_took_part_in() -> None:
    found = measured(ours=[2, 4, 100], sdk=[1, 1])
    assert found.ratios[NEON_SDK] == Spread(median=3, low=2.5, high=3.5, count=2)


def test_one_that_took_nothing_has_no_ratio() -> None:
    assert measured(ours=[0, 0], floor=[0, 1], api=[1, 1]).ratios.keys() == {NEON_API}


@pytest.mark.parametrize(
    ("targets", "met"),
    [
        ([], None),
        ([Target(1.1, by=FLOOR)], True),
        ([Target(1.09, by=FLOOR)], False),
        ([Target(11)], True),
        ([Target(10.9)], False),
        ([Target(1.1, by=FLOOR), Target(10.9)], False),
    ],
)
def test_a_target_bounds_a_ratio_or_the_figure_itself(
    targets: list[Target], met: bool | None
) -> None:
    values = {OURS: [11.0, 11.0, 11.0], FLOOR: [10.0, 10.0, 10.0]}
    assert row("a GET", "alone", "ms", values, targets=targets).met is met


def test_the_table_says_of_each_target_whether_it_is_met() -> None:
    targets = [Target(1.1, by=FLOOR), Target(20)]
    table = plain([row("a GET", "alone", "ms", {FLOOR: [10], OURS: [12]}, targets=targets)])
    _head, ours, floor = table.splitlines()
    assert ours.split() == ["a", "GET:", "alone,", "ms", OURS, "12.0", "≤", "20", "met"]
    assert floor.split() == [FLOOR, "10.0", "1.20", "≤", "1.1", "MISSED"]


@pytest.mark.parametrize(("most", "code"), [(1.0, 0), (0.9, 1)])
def test_a_run_ends_with_1_where_a_target_is_missed(
    most: float, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def group(effort: Effort) -> list[Row]:
        assert effort is Effort.QUICK
        return [row("a GET", "alone", "ms", {OURS: [1.0]}, targets=[Target(most)])]

    monkeypatch.setattr(program, "GROUPS", {"get": group})
    monkeypatch.setattr(sys, "argv", ["benchmarks", "--quick"])
    assert program.main() == code
    assert ("MISSED: a GET, alone" in capsys.readouterr().out) is bool(code)


def test_the_operations_of_a_wait_are_divided_among_its_projects() -> None:
    durations = Case(operations=20, projects=4, shortest=1, longest=3).durations(turn=0)
    assert [len(of_project) for of_project in durations] == [5, 5, 5, 5]
    taken = [seconds for of_project in durations for seconds in of_project]
    assert (min(taken), max(taken)) == (1, 3)


def test_a_lone_operation_takes_another_time_in_each_turn() -> None:
    case = Case(operations=1, shortest=1, longest=3, turns=3)
    taken = [seconds for turn in range(3) for [seconds] in case.durations(turn)]
    assert sorted(taken) == [1, 2, 3]


def test_a_wait_is_in_the_picture_of_the_waits_alone() -> None:
    late = row("a wait", "late", "s", {OURS: [1.0], NEON_SDK: [2.0]})
    cost = row("a wait", "cost", "requests", {OURS: [1.0], NEON_SDK: [2.0]})
    assert "a wait" in draw_waits([late, cost])
    assert "a wait" not in draw([late, cost])


@pytest.mark.process
async def test_a_branch_of_the_scenario_server_takes_and_ends_as_its_name_says() -> None:
    async with (
        ScenarioServer(Settings()) as server,
        NeonClient("napi_test", base_url=server.base_url) as neon,
    ):
        created = await neon.branches.create("p", name="branch 0.25 0.5!")
        with pytest.raises(OperationFailedError) as failed:
            await neon.operations.wait(created)
        report = await server.report()
    succeeding, failing = created.operations
    assert [one.id for one in failed.value.failed] == [failing.id]
    assert report.ends[failing.id] - report.ends[succeeding.id] == pytest.approx(0.5)
    assert report.count(CREATE) == 1
    assert report.count() == 1 + len(report.looks()["p"])


def listed(folder: Path, stored: int) -> Iterator[OperationsPage]:
    for n in range(stored // answers.PAGE + 1):
        yield msgspec.json.decode((folder / f"page-{n}.json").read_bytes(), type=OperationsPage)


def test_cursors_lead_through_the_fixed_answers(tmp_path: Path) -> None:
    answers.write(tmp_path, 2 * answers.PAGE)
    pages = list(listed(tmp_path, 2 * answers.PAGE))
    assert [len(page.operations) for page in pages] == [answers.PAGE, answers.PAGE, 0]
    following = [page.pagination and page.pagination.cursor for page in pages]
    assert following == [answers.cursor_of(1), answers.cursor_of(2), answers.cursor_of(2)]
    assert len({one.id for page in pages for one in page.operations}) == 2 * answers.PAGE
