"""Waits of one script on an idle account, beside the loops that people write by hand."""

import pytest

from benchmarks.harness.results import GATHERED, LATENESS, NEON_SDK, OURS, REQUESTS
from benchmarks.loads import scripts
from benchmarks.loads.scripts import Cell, cell
from benchmarks.scenarios.scripts import rows_of


def test_loop_sees_the_end_at_its_next_read() -> None:
    # The first GET arrives 1.025 s after the response, which left when the operations started.
    gathered, in_turn = (
        cell(0.3, row, is_chained=False, scripts=20) for row in (GATHERED, scripts.IN_TURN)
    )
    assert gathered.requests == in_turn.requests == 2
    assert in_turn.lateness == pytest.approx(gathered.lateness + scripts.ROUND_TRIP)


@pytest.mark.long
@pytest.mark.parametrize("is_chained", [True, False], ids=["chained", "at once"])
@pytest.mark.parametrize("seconds", [1.0, 5.0])
def test_script_is_notified_no_later_than_by_a_loop_and_sends_no_more_requests(
    seconds: float, is_chained: bool
) -> None:
    cold, warm, *loops = (
        cell(seconds, row, is_chained=is_chained, scripts=40) for row in scripts.ROWS
    )
    assert max(cold.lateness, warm.lateness) <= min(one.lateness for one in loops)
    assert max(cold.requests, warm.requests) <= min(one.requests for one in loops)


@pytest.mark.parametrize(
    ("seconds", "ours", "met"),
    [
        (10.0, Cell(0.5, 16.0), [True, True]),
        (10.0, Cell(0.7, 18.0), [False, False]),
        (20.0, Cell(0.7, 16.0), [True, True]),
        (20.0, Cell(1.1, 16.0), [False, True]),
    ],
)
def test_rows_compare_a_script_with_the_loop(seconds: float, ours: Cell, met: list[bool]) -> None:
    cells = {OURS: ours, GATHERED: Cell(0.6, 17.0), NEON_SDK: Cell(0.5, 17.0)}
    rows = rows_of(scripts.ROUND_TRIP, seconds, cells)
    assert [row.met for row in rows] == met
    assert [row.measure for row in rows] == [
        f"{measure}, {seconds:g} s" for measure in (LATENESS, REQUESTS)
    ]
    assert {row.column for row in rows} == {f"{seconds:g} s"}
