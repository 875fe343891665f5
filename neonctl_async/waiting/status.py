"""What a status means, without I/O."""

import enum
from datetime import datetime

import msgspec

from neonctl_async.models.operations import Operation, OperationRef, OperationStatus

SUCCEEDED = frozenset({OperationStatus.FINISHED, OperationStatus.SKIPPED})
UNSUCCESSFUL = frozenset({OperationStatus.FAILED, OperationStatus.ERROR, OperationStatus.CANCELLED})


class Outcome(enum.Enum):
    """What has become of an operation."""

    SUCCEEDED = enum.auto()
    UNSUCCESSFUL = enum.auto()
    PENDING = enum.auto()


def is_same(one: Operation, other: Operation) -> bool:
    """Whether two records of an operation tell the same.

    ``total_duration_ms`` may grow from look to look while nothing else happens.
    """
    return (
        one.status == other.status
        and one.updated_at == other.updated_at
        and one.failures_count == other.failures_count
        and one.retry_at == other.retry_at
        and one.error == other.error
    )


class Change(msgspec.Struct, frozen=True):
    """A record as it was just seen, and what it means."""

    ref: OperationRef
    operation: Operation
    outcome: Outcome


def outcome(operation: Operation, now: datetime) -> Outcome:
    """What has become of ``operation`` at the time ``now`` (specification, section 3.2).

    A status that this library has never heard of is pending. So is an unsuccessful operation
    whose ``retry_at`` lies ahead: the platform is about to try it again.
    """
    if operation.status in SUCCEEDED:
        return Outcome.SUCCEEDED
    if operation.status not in UNSUCCESSFUL:
        return Outcome.PENDING
    if operation.retry_at is not None and operation.retry_at > now:
        return Outcome.PENDING
    return Outcome.UNSUCCESSFUL
