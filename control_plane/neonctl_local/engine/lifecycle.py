"""The lifecycle of an operation, as a pure function of its plan and the time.

An operation is scheduling until it starts, then running until it stops, and then has its final
status. An operation that fails and is retried waits until ``retry_at``, runs again, and then
finishes.

All times are set when the operation is created, and its status follows from these times and the
current time. So no task has to run in between, and a killed process loses nothing.

Only the plan of an operation with real work stays open until the work is done. The planned end is
then the earliest possible end, and the request's next operations are planned after the real end.
"""

import msgspec
from msgspec.structs import replace

from neonctl_local.clock import Instant, span
from neonctl_local.settings import Durations
from neonctl_local.storage.tables import FINISHED, NEVER, NOT_STARTED, OperationPlan

SCHEDULING = "scheduling"
RUNNING = "running"
FAILED = "failed"

PLANNED_ERROR = "the operation failed, as planned"
"""The error of an operation that ``fail_next`` makes fail, unless another error is planned."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A planned failure. With ``retry_after`` (seconds), the operation is retried and finishes.

    Without ``show_retry_at``, records do not contain ``retry_at``, as if the failure were final.
    """

    status: str = FAILED
    error: str = PLANNED_ERROR
    retry_after: float | None = None
    show_retry_at: bool = True


class OperationState(msgspec.Struct, frozen=True, kw_only=True):
    """The status of an operation at a given time. ``duration`` is in microseconds."""

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
    after: OperationPlan | None = None,
    failure: Failure | None = None,
) -> OperationPlan:
    """Plan an operation that starts soon after its creation, or when ``after`` has finished.

    If the operation ``after`` fails, the new operation never starts and fails at the same time.
    """
    duration = span(durations.of(action))
    if after is not None:
        return follow(created_at, duration, after, failure)
    starts_at = created_at + round(duration * durations.scheduling)
    return _timed(created_at, starts_at, created_at + duration, duration, failure)


def follow(
    created_at: Instant, duration: int, after: OperationPlan, failure: Failure | None
) -> OperationPlan:
    """Plan an operation that starts when the operation ``after`` has finished.

    While the end of ``after`` is not known, the times of the new operation are not known either.
    """
    starts_at = max(created_at, after.settles_at)
    if not after.succeeds:
        return _never_started(created_at, starts_at)
    return _timed(created_at, starts_at, starts_at + duration, duration, failure)


def without_end(plan: OperationPlan) -> OperationPlan:
    """Return the plan with an open end. Its other times are the earliest possible times."""
    return replace(plan, settles_at=NEVER)


def with_end(plan: OperationPlan, duration: int, now: Instant, error: str | None) -> OperationPlan:
    """Return an open plan with an end: ``now``, or the planned end if that is later.

    The operation fails with ``error``, or finishes if ``error`` is None.
    """
    planned_end = plan.ends_at if plan.retry_at is None else plan.retry_at + duration
    settles_at = max(planned_end, now)
    return replace(
        plan,
        ends_at=settles_at if plan.retry_at is None else plan.ends_at,
        settles_at=settles_at,
        outcome=FINISHED if error is None else FAILED,
        error=plan.error if error is None else error,
    )


def _timed(
    created_at: Instant,
    starts_at: Instant,
    ends_at: Instant,
    duration: int,
    failure: Failure | None,
) -> OperationPlan:
    retry_at = None
    if failure is not None and failure.retry_after is not None:
        retry_at = ends_at + span(failure.retry_after)
    return OperationPlan(
        created_at=created_at,
        starts_at=starts_at,
        ends_at=ends_at,
        retry_at=retry_at,
        settles_at=ends_at if retry_at is None else retry_at + duration,
        outcome=FINISHED if failure is None or retry_at is not None else failure.status,
        error=None if failure is None else failure.error,
    )


def _never_started(created_at: Instant, at: Instant) -> OperationPlan:
    return OperationPlan(
        created_at=created_at,
        starts_at=at,
        ends_at=at,
        settles_at=at,
        outcome=FAILED,
        error=NOT_STARTED,
    )


def state_at(plan: OperationPlan, now: Instant) -> OperationState:
    """Return the state of an operation at ``now``."""
    duration = max(0, min(now, plan.settles_at) - plan.starts_at)
    if now >= plan.settles_at:
        failed = not plan.succeeds
        return OperationState(
            status=plan.outcome,
            updated_at=plan.settles_at,
            failures_count=int(plan.runs and (failed or plan.retry_at is not None)),
            error=plan.error if failed else None,
            duration=duration,
        )
    if plan.retry_at is not None and now >= plan.ends_at:
        waiting = now < plan.retry_at
        return OperationState(
            status=FAILED if waiting else RUNNING,
            updated_at=plan.ends_at if waiting else plan.retry_at,
            failures_count=1,
            retry_at=plan.retry_at if waiting else None,
            error=plan.error,
            duration=duration,
        )
    running = now >= plan.starts_at
    return OperationState(
        status=RUNNING if running else SCHEDULING,
        updated_at=plan.starts_at if running else plan.created_at,
        duration=duration,
    )
