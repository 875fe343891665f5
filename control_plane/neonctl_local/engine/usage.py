"""The usage of projects: how long computes ran, and how large branches are.

Computes run between their operations start_compute and suspend_compute. The size of a branch is
known only with real databases, and its current size is used for its whole life.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec

from neonctl_local.clock import SECOND, Instant
from neonctl_local.engine import computes
from neonctl_local.engine.timeframes import Span
from neonctl_local.storage.rows import Row
from neonctl_local.storage.tables import Branch, Endpoint
from neonctl_local.storage.transactions import Transaction

START: Final = "start_compute"

_HOUR: Final = 3600 * SECOND


class ComputeEvent(Row, frozen=True):
    """A finished start_compute or suspend_compute."""

    table: ClassVar[str] = "operations"

    endpoint_id: str
    action: str
    settles_at: Instant


class Running(msgspec.Struct, frozen=True):
    """A period during which a compute ran, and its size in compute units."""

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
        """Return how many seconds the computes ran within a timeframe."""
        return sum(run.span.overlap(frame) for run in self.runs) // SECOND

    def compute_unit_seconds(self, frame: Span) -> int:
        """Return the active seconds multiplied by the sizes of the computes."""
        used = sum(run.span.overlap(frame) * run.compute_units for run in self.runs)
        return round(used / SECOND)

    def bytes_hour(self, frame: Span) -> int:
        """Return the size multiplied by the hours that the branch existed within a timeframe."""
        return self.size * self.life.overlap(frame) // _HOUR

    def branch_hours(self, frame: Span) -> int:
        """Return the hours that the branch existed within a timeframe, or 0 for a root."""
        return 0 if self.is_root else self.life.overlap(frame) // _HOUR

    def size_within(self, frame: Span) -> int:
        """Return the size, or 0 if the branch did not exist within a timeframe."""
        return self.size if self.life.overlap(frame) else 0


def of_project(tx: Transaction, project_id: str, since: Instant) -> list[BranchUsage]:
    """Return the usage of a project's branches since a given time, sorted by branch id.

    Deleted branches are included.
    """
    events: dict[str, list[ComputeEvent]] = defaultdict(list)
    for event in tx.select(
        ComputeEvent,
        "WHERE project_id = ? AND settles_at BETWEEN ? AND ? AND endpoint_id IS NOT NULL "
        "AND action IN ('start_compute', 'suspend_compute') AND outcome = 'finished' "
        "ORDER BY settles_at, position",
        *(project_id, since, tx.now),
    ):
        events[event.endpoint_id].append(event)
    runs: dict[str, list[Running]] = defaultdict(list)
    for endpoint in tx.select(Endpoint, "WHERE project_id = ?", project_id):
        runs_now = computes.state(endpoint, tx.now) == computes.ACTIVE
        # If background work is due, it will suspend the compute as of ``idle_at``. If a suspension
        # failed, a deleted or idle compute has no finished one.
        ends = [endpoint.idle_at, endpoint.deleted_at, None if runs_now else endpoint.state_at]
        until = min(end for end in (tx.now, *ends) if end is not None)
        spans = running_spans(events[endpoint.id], Span(since, until), runs_now=runs_now)
        units = endpoint.autoscaling_limit_min_cu
        runs[endpoint.branch_id] += [Running(span, units) for span in spans]
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


def running_spans(events: Sequence[ComputeEvent], within: Span, *, runs_now: bool) -> list[Span]:
    """Return the periods in which a compute ran, according to its events within a time span.

    Without events, the state of the compute did not change. If its first event is a suspension, the
    compute was running before it.
    """
    ran_before = events[0].action != START if events else runs_now
    started = within.start if ran_before else None
    spans: list[Span] = []
    for event in events:
        if event.action == START:
            started = event.settles_at if started is None else started
        elif started is not None:
            spans.append(Span(started, event.settles_at))
            started = None
    if started is not None:
        spans.append(Span(started, within.end))
    return spans
