"""What an operation's status means. Pure: no I/O."""

import enum
from datetime import datetime

from neonctl_async.models.operations import (
    UNSUCCESSFUL,
    Operation,
    OperationStatus,
)

SUCCEEDED = frozenset({OperationStatus.FINISHED, OperationStatus.SKIPPED})


class Outcome(enum.Enum):
    """The state of an operation for a wait: pending, or one of two terminal states."""

    SUCCEEDED = enum.auto()
    UNSUCCESSFUL = enum.auto()
    PENDING = enum.auto()


def is_retryable_failure(operation: Operation) -> bool:
    """Return whether an operation has failed and its record shows no time for a retry.

    Neon documents ``failed`` both as final and as a status that may be followed by a retry.
    """
    return operation.status == OperationStatus.FAILED and operation.retry_at is None


def is_new_failure(operation: Operation, now: datetime, grace: float) -> bool:
    """Return whether an operation failed less than ``grace`` seconds ago, without a ``retry_at``.

    Neon may retry such an operation. Timestamps may be rounded down to the second.
    """
    if not grace or not is_retryable_failure(operation):
        return False
    return (now - operation.updated_at).total_seconds() < grace + 1


def supersedes(record: Operation, known: Operation) -> bool:
    """Return whether a received record replaces the known record of the same operation.

    A record may come from a list that lags behind, so it is dropped if its ``updated_at`` is older.
    A terminal status replaces any other status, whatever its ``updated_at``.
    """
    rank, known_rank = finality(record), finality(known)
    if rank > known_rank:
        return True
    if known.status in SUCCEEDED and rank < known_rank:
        return False
    return record.updated_at >= known.updated_at


def finality(operation: Operation) -> int:
    """Return 2 for a successful operation, 1 for an unsuccessful one, and 0 for a pending one.

    An unsuccessful operation with a ``retry_at`` counts as pending, at any time.
    """
    if operation.status in SUCCEEDED:
        return 2
    return int(operation.status in UNSUCCESSFUL and operation.retry_at is None)


def is_unchanged(old: Operation, new: Operation) -> bool:
    """Return whether two records of an operation differ at most in ``total_duration_ms``.

    Neon may increase ``total_duration_ms`` from poll to poll while nothing else changes.
    """
    return (
        old.status == new.status
        and old.updated_at == new.updated_at
        and old.failures_count == new.failures_count
        and old.retry_at == new.retry_at
        and old.error == new.error
    )


def outcome(operation: Operation, now: datetime) -> Outcome:
    """Return the outcome of ``operation`` at the time ``now``.

    An unknown status is pending. An unsuccessful operation with a ``retry_at`` in the future is
    also pending, because Neon will retry it.
    """
    if operation.status in SUCCEEDED:
        return Outcome.SUCCEEDED
    if operation.status not in UNSUCCESSFUL:
        return Outcome.PENDING
    if operation.retry_at is not None and operation.retry_at > now:
        return Outcome.PENDING
    return Outcome.UNSUCCESSFUL
