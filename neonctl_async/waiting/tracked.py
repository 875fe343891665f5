"""An operation that is awaited: what the poller of its project knows of it."""

from collections.abc import Iterable

from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting.change_queue import Mailbox
from neonctl_async.waiting.forecast import Followed


class Awaited:
    """An operation that is awaited: since when, by whom, and its newest record."""

    __slots__ = (
        "answered_at",
        "followed",
        "is_looked_at",
        "mailboxes",
        "record",
        "ref",
        "since",
    )

    def __init__(self, ref: OperationRef, since: float) -> None:
        self.ref: OperationRef = ref
        self.since: float = since
        """When it began, as far as is known: a record may say how long it has been running."""
        self.record: Operation | None = None
        self.followed: Followed | None = None
        self.mailboxes: set[Mailbox] = set()
        self.answered_at: float = since
        """When the newest look at it ended, if only in a failure."""
        self.is_looked_at: bool = False


def mailboxes_of(awaited: Iterable[Awaited]) -> set[Mailbox]:
    """All that these operations are awaited for."""
    return {mailbox for one in awaited for mailbox in one.mailboxes}


def end_looks(awaited: Iterable[Awaited], now: float) -> None:
    """Looks at these operations have ended now, if only in a failure."""
    for one in awaited:
        one.is_looked_at = False
        one.answered_at = now


def age(record: Operation) -> float:
    """How long an operation had been running when the platform wrote its record, in seconds."""
    return (record.total_duration_ms or 0) / 1000


def duration(followed: Followed, record: Operation, now: float) -> float:
    """How long an operation took from its begin: what it tells, within what was seen of it.

    It tells how long it ran; it may have waited for another one before.
    """
    at_least, at_most = followed.pending_at - followed.began, now - followed.began
    if record.total_duration_ms is None:
        return (at_least + at_most) / 2
    return min(max(age(record), at_least), at_most)
