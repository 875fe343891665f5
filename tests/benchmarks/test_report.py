"""The report of a benchmark run."""

from benchmarks.harness.report import plain
from benchmarks.harness.results import FLOOR, OURS, Target, make_row


def test_table_shows_whether_each_target_is_met() -> None:
    targets = [Target(1.1, relative_to=FLOOR), Target(20)]
    table = plain([make_row("GET", "alone", "ms", {FLOOR: [10], OURS: [12]}, targets=targets)])
    _head, ours, floor = table.splitlines()
    assert ours.split() == ["GET:", "alone,", "ms", OURS, "12.0", "≤", "20", "met"]
    assert floor.split() == [FLOOR, "10.0", "1.20", "≤", "1.1", "MISSED"]
