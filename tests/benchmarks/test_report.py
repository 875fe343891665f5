"""The report of a benchmark run."""

import msgspec

from benchmarks.harness.machine import Machine
from benchmarks.harness.report import Report, markdown, merged, plain
from benchmarks.harness.results import FLOOR, OURS, Row, Target, make_row


def test_table_shows_whether_each_target_is_met() -> None:
    targets = [Target(1.1, relative_to=FLOOR), Target(20)]
    table = plain([make_row("GET", "alone", "ms", {FLOOR: [10], OURS: [12]}, targets=targets)])
    _head, ours, floor = table.splitlines()
    assert ours.split() == ["GET:", "alone,", "ms", OURS, "12.0", "≤", "20", "met"]
    assert floor.split() == [FLOOR, "10.0", "1.20", "≤", "1.1", "MISSED"]


def report(values: dict[str, float], *, date: str = "2026-01-01") -> Report:
    machine = Machine(cpu="test", cores=2, python="CPython", os="Linux")
    rows = [make_row(name, "time", "s", {OURS: [value]}) for name, value in values.items()]
    return Report(date=date, machine=machine, versions={}, rows=rows)


def test_partial_report_keeps_the_rows_of_other_scenarios() -> None:
    rows = merged(report({"a": 1, "b": 2}), report({"b": 3, "c": 4})).rows
    assert {row.scenario: row.spreads[OURS].median for row in rows} == {"a": 1, "b": 3, "c": 4}


def test_rows_of_another_day_are_not_kept() -> None:
    rows = merged(report({"a": 1}), report({"b": 3}, date="2026-01-02")).rows
    assert [row.scenario for row in rows] == ["b"]


def test_rows_with_columns_are_a_table_of_their_scenario() -> None:
    def row(measure: str, unit: str, column: str, limit: float) -> Row:
        values = {OURS: [0.25], FLOOR: [3.0]}
        targets = [Target(limit)]
        name = f"{measure}, {column}"
        return make_row("a wait", name, unit, values, targets=targets, column=column)

    rows = [
        row("lateness", "s", "1 s", 1.0),
        row("requests", "count", "1 s", 1.0),
        row("lateness", "s", "10 s", 0.2),
        row("requests", "count", "10 s", 1.0),
    ]
    lines = markdown(msgspec.structs.replace(report({"a": 1}), rows=rows)).splitlines()
    assert lines[3:7] == [
        "| a wait: lateness, requests | 1 s | 10 s |",
        "| --- | ---: | ---: |",
        f"| {OURS} | 0.250 s, 0.250 | **0.250 s**, 0.250 |",
        f"| {FLOOR} | 3.00 s, 3.00 | 3.00 s, 3.00 |",
    ]
    assert "a wait" not in "".join(lines[:2])
