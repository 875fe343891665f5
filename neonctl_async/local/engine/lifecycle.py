"""The life of an operation, as a pure function of its plan and the time (section 3.2).

An operation is scheduling until it starts, running until it ends, and then has its final status.
One that fails and is retried has ``retry_at`` set while it waits, runs once more from then on,
and settles. All of it is decided when the operation is created, so that reading it at a given
time is all that is needed to know where it stands: nothing runs in between, nothing is lost when
the process dies, and time alone moves a status, forward.
"""

import msgspec

from neonctl_async.local.clock import Instant, span
from neonctl_async.local.settings import Durations
from neonctl_async.local.storage.plan import FINISHED, NOT_STARTED, Plan

SCHEDULING = "scheduling"
RUNNING = "running"
FAILED = "failed"

AS_PLANNED = "the operation failed, as planned"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """How an operation is to fail. With ``retry_after``, in seconds, it is retried and finishes."""

    status: str = FAILED
    error: str = AS_PLANNED
    retry_after: float | None = None


class OperationState(msgspec.Struct, frozen=True, kw_only=True):
    """An operation at one moment."""

    status: str
    updated_at: Instant
    failures_count: int = 0
    retry_at: Instant | None = None
    error: str | None = None
    duration: int = 0


def plan(
    action: str,
    created_at: Instant,
    durations: Durations,
    *,
    after: Plan | None = None,
    failure: Failure | None = None,
) -> Plan:
    """Decide the life of an operation that starts at once, or once ``after`` has finished."""
    duration = span(durations.of(action))
    if after is None:
        starts_at = created_at + round(duration * durations.scheduling)
        ends_at = created_at + duration
    elif after.succeeds:
        starts_at = max(created_at, after.settles_at)
        ends_at = starts_at + duration
    else:
        at = max(created_at, after.settles_at)
        return Plan(
            created_at=created_at,
            starts_at=at,
            ends_at=at,
            settles_at=at,
            outcome=FAILED,
            error=NOT_STARTED,
        )
    retry_at = None
    if failure is not None and failure.retry_after is not None:
        retry_at = ends_at + span(failure.retry_after)
    return Plan(
        created_at=created_at,
        starts_at=starts_at,
        ends_at=ends_at,
        retry_at=retry_at,
        settles_at=ends_at if retry_at is None else retry_at + duration,
        outcome=FINISHED if failure is None or retry_at is not None else failure.status,
        error=None if failure is None else failure.error,
    )


def at(plan: Plan, now: Instant) -> OperationState:
    """Where an operation stands at ``now``."""
    started = _elapsed(plan.starts_at, min(now, plan.settles_at))
    if now >= plan.settles_at:
        failed = not plan.succeeds
        return OperationState(
            status=plan.outcome,
            updated_at=plan.settles_at,
            failures_count=int(plan.runs and (failed or plan.retry_at is not None)),
            error=plan.error if failed else None,
            duration=started,
        )
    if plan.retry_at is not None and now >= plan.ends_at:
        waiting = now < plan.retry_at
        return OperationState(
            status=FAILED if waiting else RUNNING,
            updated_at=plan.ends_at if waiting else plan.retry_at,
            failures_count=1,
            retry_at=plan.retry_at if waiting else None,
            error=plan.error,
            duration=started,
        )
    running = now >= plan.starts_at
    return OperationState(
        status=RUNNING if running else SCHEDULING,
        updated_at=plan.starts_at if running else plan.created_at,
        duration=started,
    )


def _elapsed(start: Instant, end: Instant) -> int:
    return max(0, end - start)
