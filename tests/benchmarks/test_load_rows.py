"""The results of loads in the benchmarks."""

import msgspec
import pytest

from benchmarks.harness.results import NEON_SDK, OURS
from benchmarks.loads.catalogue import catalogue
from benchmarks.loads.load import Load
from benchmarks.loads.measure import Outcome, Wait
from benchmarks.loads.oracle import optimum
from benchmarks.scenarios import loads
from benchmarks.servers.control_plane import CREATE, LIST, Received


def outcome_of(load: Load, *, delay: float, polls: int, refused: int = 0) -> Outcome:
    creates = [Received(0.0, CREATE, branch.project_id, 200) for branch in load.branches]
    reads = [Received(1.0, LIST, "p0", 429 if n < refused else 200) for n in range(polls)]
    return Outcome(
        load=load,
        oracle=optimum(load),
        waits=[Wait("p0", 0.0, 2.0, 5.0), Wait("p0", 0.0, 9.0, 9.0 + delay)],
        failures=[],
        requests=creates + reads,
    )


def test_loads_of_the_benchmarks_exist() -> None:
    names = {load.name for load in catalogue(loads.SEED)}
    assert names.issuperset([*loads.SHORT, *loads.LONG, *loads.LOCKED, *loads.QUICK])


@pytest.mark.parametrize(
    ("delay", "polls", "refused", "met"),
    [(3.0, 216, 0, True), (3.5, 216, 0, False), (3.0, 217, 0, False), (3.0, 216, 1, False)],
)
def test_row_shows_whether_the_targets_of_a_load_are_met(
    delay: float, polls: int, refused: int, met: bool
) -> None:
    load = next(load for load in catalogue(loads.SEED) if load.name == "60 in 60")
    ours = outcome_of(load, delay=delay, polls=polls, refused=refused)
    rows = loads.rows_of(load, {OURS: ours, NEON_SDK: ours})
    assert all(row.met is not False for row in rows) is met
    by_measure = {row.measure: row.spreads for row in rows}
    assert by_measure["worst wait"][OURS].median == max(delay, 3.0)
    assert by_measure["polls"][loads.ORACLE].median == 60


@pytest.mark.parametrize(("beyond", "met"), [(20.0, True), (20.5, False)])
def test_row_of_a_locked_project_shows_the_time_beyond_its_serial_work(
    beyond: float, met: bool
) -> None:
    load = next(load for load in catalogue(loads.SEED) if load.name == "20 in 1, locked")
    serial = load.serial_ends["p0"]
    ours = Outcome(
        load=load,
        oracle=optimum(load),
        waits=[Wait("p0", 0.0, 2.0, 3.0), Wait("p0", 0.0, serial, serial + beyond)],
        failures=[],
        requests=[],
    )
    sdk = msgspec.structs.replace(ours, failures=["423"] * 17)
    rows = {row.measure: row for row in loads.rows_of(load, {OURS: ours, NEON_SDK: sdk})}
    row = rows[f"beyond the {serial:.0f} s of serial work"]
    assert row.spreads[OURS].median == pytest.approx(beyond)
    assert row.met is met
    assert rows["failed calls"].spreads[NEON_SDK].median == 17
