"""The usage of branches: runs of their computes, and sizes."""

import msgspec
import pytest

from neonctl_local.api.billing.metrics import OF_PROJECTS
from neonctl_local.clock import SECOND
from neonctl_local.engine.timeframes import Span
from neonctl_local.engine.usage import (
    BranchUsage,
    ComputeEvent,
    Running,
    running_spans,
)

HOUR = 3600 * SECOND


@pytest.mark.parametrize(
    ("events", "runs_now", "expected"),
    [
        ([("start", 10), ("suspend", 20), ("start", 30)], True, [Span(10, 20), Span(30, 100)]),
        ([("start", 10), ("start", 15), ("suspend", 20)], False, [Span(10, 20)]),
        ([("suspend", 7), ("suspend", 8)], False, [Span(5, 7)]),
        ([], True, [Span(5, 100)]),
        ([], False, []),
    ],
)
def test_compute_runs_from_its_start_until_its_suspension(
    events: list[tuple[str, int]], runs_now: bool, expected: list[Span]
) -> None:
    history = [
        ComputeEvent(endpoint_id="ep", action=f"{verb}_compute", settles_at=at)
        for verb, at in events
    ]
    assert running_spans(history, Span(5, 100), runs_now=runs_now) == expected


USAGE = BranchUsage(
    id="br",
    is_root=True,
    life=Span(HOUR // 2, 10 * HOUR),
    size=1000,
    runs=[Running(Span(0, 600 * SECOND), 0.25), Running(Span(HOUR, 2 * HOUR), 2.0)],
)


def test_time_of_computes_is_counted_within_the_timeframe() -> None:
    first, both = Span(0, HOUR), Span(0, 2 * HOUR)
    assert USAGE.active_seconds(first) == 600
    assert USAGE.active_seconds(both) == 4200
    assert USAGE.compute_unit_seconds(first) == 150
    assert USAGE.compute_unit_seconds(both) == 7350
    assert USAGE.compute_unit_seconds(Span(3 * HOUR, 4 * HOUR)) == 0


def test_storage_is_counted_during_the_life_of_the_branch() -> None:
    first, after = Span(0, HOUR), Span(10 * HOUR, 11 * HOUR)
    assert USAGE.size_within(first) == 1000
    assert USAGE.bytes_hour(first) == 500
    assert USAGE.bytes_hour(Span(0, 31 * 24 * HOUR)) == 9500
    for measure in (USAGE.size_within, USAGE.bytes_hour):
        assert measure(after) == 0


def test_only_child_branches_have_branch_hours() -> None:
    day = Span(0, 24 * HOUR)
    assert USAGE.branch_hours(day) == 0
    assert msgspec.structs.replace(USAGE, is_root=False).branch_hours(day) == 9


def test_bytes_month_are_bytes_times_hours_as_neon_documents() -> None:
    month = Span(0, 31 * 24 * HOUR)
    stored = msgspec.structs.replace(USAGE, life=month, size=2 * 10**9)
    assert OF_PROJECTS["root_branch_bytes_month"](stored, month) == 1_488_000_000_000
