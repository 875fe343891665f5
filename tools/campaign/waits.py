"""The ends of waits that contradict the records which the client received."""

from collections.abc import Iterator
from itertools import pairwise

from neonctl_async import (
    NotFoundError,
    Operation,
    OperationFailedError,
    OperationStatus,
    StatusChanged,
    WaitTimeoutError,
)
from tools.campaign.outcomes import FaultLog, Outcome

HANG_SECONDS = 2.0
"""The longest time between a terminal record and the end of its wait, in seconds.

It is more than the grace of a failed record.
"""


def wrong_waits(one: Outcome, log: FaultLog) -> Iterator[str]:
    """Yield a description of each wrong end of a wait."""
    match one.error:
        case None if one.too_early:
            yield f"the wait returned, but {one.too_early} had not finished"
        case None if failed := log.failed & {operation.id for operation in one.operations}:
            yield f"the wait returned, but {failed} failed"
        case NotFoundError() if one.id is not None:
            yield "the wait raised a transient 404"
        case OperationFailedError(failed=failed):
            ids = {operation.id for operation in failed}
            if not ids <= log.failed and not one.is_late:
                yield f"the wait raised the failure of {ids - log.failed}, which did not fail"
        case WaitTimeoutError(pending=pending):
            for operation in pending:
                if (seconds := _known_for(one, log, operation.id)) > HANG_SECONDS:
                    yield f"the end of {operation.id} was known for {seconds:.1f} s"
        case _:
            pass
    yield from _steps_back(one.changes)


def _known_for(one: Outcome, log: FaultLog, operation: str) -> float:
    """Return for how many seconds the client had known the end of an operation."""
    times = [time for id, time in one.received.items() if log.reported(id, operation)]
    return max(times, default=0.0)


def _steps_back(changes: list[StatusChanged]) -> Iterator[str]:
    for id in {change.operation.id for change in changes}:
        for first, second in pairwise(one for one in changes if one.operation.id == id):
            old, new = first.operation, second.operation
            if second.previous is None:
                continue  # another wait of the call began with an older list
            if old.status == OperationStatus.FINISHED:
                yield f"{id} is {new.status} after it had finished"
            elif new.updated_at < old.updated_at and not _is_terminal(new):
                yield f"{id} went back from {old.status} to {new.status}"


def _is_terminal(record: Operation) -> bool:
    return record.status in (OperationStatus.FINISHED, OperationStatus.FAILED)
