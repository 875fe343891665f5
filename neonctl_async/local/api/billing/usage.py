"""The usage of projects: how long computes ran, and how large branches are.

Computes run between their operations start_compute and suspend_compute. The size of a branch is
known with real databases only, and its current size stands for its whole life.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import ClassVar

import msgspec

from neonctl_async.local.api.billing.timeframes import Span, month_of
from neonctl_async.local.clock import SECOND, Instant
from neonctl_async.local.storage.tables import Branch, Endpoint
from neonctl_async.local.storage.transactions import Row, Transaction

_HOUR = 3600 * SECOND


class ComputeEvent(Row, frozen=True):
    """A finished start_compute or suspend_compute."""

    table: ClassVar[str] = "operations"

    endpoint_id: str
    action: str
    settles_at: Instant


class Running(msgspec.Struct, frozen=True):
    """A time during which a compute ran, and its size in compute units."""

    span: Span
    compute_units: float


class BranchUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The usage of a branch: the runs of its computes, and its size during its life."""

    id: str
    is_root: bool
    life: Span
    size: int
    runs: list[Running]

    def active_seconds(self, frame: Span) -> int:
        """Return how long computes ran within a timeframe."""
        return sum(run.span.overlap(frame) for run in self.runs) // SECOND

    def compute_unit_seconds(self, frame: Span) -> int:
        """Return the same time, multiplied by the sizes of the computes."""
        used = sum(run.span.overlap(frame) * run.compute_units for run in self.runs)
        return round(used / SECOND)

    def bytes_hour(self, frame: Span) -> int:
        """Return the size multiplied by the hours of its life within a timeframe."""
        return self.size * self.life.overlap(frame) // _HOUR

    def bytes_month(self, frame: Span) -> int:
        """Return the size multiplied by the share of the month."""
        month = month_of(frame.start)
        return self.size * self.life.overlap(frame) // (month.end - month.start)

    def size_within(self, frame: Span) -> int:
        """Return the size, or 0 if the branch did not exist within a timeframe."""
        return self.size if self.life.overlap(frame) else 0


def of_project(tx: Transaction, project_id: str) -> list[BranchUsage]:
    """Return the usage of the branches of a project, deleted ones included, in order of ids."""
    events = tx.select(
        ComputeEvent,
        "WHERE project_id = ? AND action IN ('start_compute', 'suspend_compute') "
        "AND endpoint_id IS NOT NULL AND outcome = 'finished' AND settles_at <= ? "
        "ORDER BY settles_at, position",
        project_id,
        tx.now,
    )
    spans = running_spans(events, tx.now)
    runs: dict[str, list[Running]] = defaultdict(list)
    for endpoint in tx.select(Endpoint, "WHERE project_id = ?", project_id):
        units = endpoint.autoscaling_limit_min_cu
        runs[endpoint.branch_id] += [Running(span, units) for span in spans[endpoint.id]]
    return [
        BranchUsage(
            id=branch.id,
            is_root=branch.parent_id is None,
            life=Span(branch.created_at, branch.deleted_at or tx.now),
            size=branch.logical_size or 0,
            runs=runs[branch.id],
        )
        for branch in tx.select(Branch, "WHERE project_id = ? ORDER BY id", project_id)
    ]


def running_spans(events: Iterable[ComputeEvent], now: Instant) -> dict[str, list[Span]]:
    """Return the times during which each compute ran. A compute that still runs runs until now."""
    started: dict[str, Instant] = {}
    spans: dict[str, list[Span]] = defaultdict(list)
    for event in events:
        if event.action == "start_compute":
            started.setdefault(event.endpoint_id, event.settles_at)
        elif event.endpoint_id in started:
            start = started.pop(event.endpoint_id)
            spans[event.endpoint_id].append(Span(start, event.settles_at))
    for endpoint_id, start in started.items():
        spans[endpoint_id].append(Span(start, now))
    return spans
