"""The locks that a command held or waited for, from samples of ``pg_locks``. Pure: no I/O."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

_READS_AND_WRITES: Final = "reads and writes"
_WRITES: Final = "writes"

BLOCKS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "AccessExclusiveLock": _READS_AND_WRITES,
        "ExclusiveLock": _WRITES,
        "ShareRowExclusiveLock": _WRITES,
        "ShareLock": _WRITES,
        "ShareUpdateExclusiveLock": "schema changes and VACUUM",
    }
)
"""What a lock on a table blocks, by its mode. The modes of ordinary reads and writes are left out,
because they block only schema changes."""

_SQL_NAMES: Final = {
    "AccessExclusiveLock": "ACCESS EXCLUSIVE",
    "ExclusiveLock": "EXCLUSIVE",
    "ShareRowExclusiveLock": "SHARE ROW EXCLUSIVE",
    "ShareLock": "SHARE",
    "ShareUpdateExclusiveLock": "SHARE UPDATE EXCLUSIVE",
    "RowExclusiveLock": "ROW EXCLUSIVE",
    "RowShareLock": "ROW SHARE",
    "AccessShareLock": "ACCESS SHARE",
}


class SeenLock(NamedTuple):
    """A row of ``pg_locks``."""

    pid: int
    transaction: str
    type: str
    relation: int | None
    """The OID of the relation, or None for a lock on something else."""
    mode: str
    granted: bool


class HeldLock(msgspec.Struct, frozen=True, kw_only=True):
    """The locks of one mode on a relation."""

    relation: str
    mode: str
    """The name in SQL, such as ``ACCESS EXCLUSIVE``."""
    blocks: str
    """What the lock keeps other sessions from doing."""
    transactions: int
    """The number of transactions that held such a lock."""
    longest_seconds: float
    """The time between the first and the last sample of the lock that was held longest."""


class LockWait(msgspec.Struct, frozen=True, kw_only=True):
    """The waits for one kind of lock."""

    waited_for: str
    """The relation, or the kind of object, such as ``transactionid`` for a changed row."""
    mode: str
    waits: int
    longest_seconds: float


class _Span(NamedTuple):
    first: float
    last: float


class _Total(NamedTuple):
    number: int = 0
    longest: float = 0.0

    def plus(self, span: _Span) -> "_Total":
        return _Total(self.number + 1, max(self.longest, span.last - span.first))


class _Kind(NamedTuple):
    """The properties shared by locks that the report counts together."""

    type: str
    relation: int | None
    mode: str
    granted: bool


class LockTally:
    """Counts the locks of all samples, and measures how long each was held.

    Its memory use depends on the number of locks at one time, not on the number of samples.
    """

    def __init__(self) -> None:
        self.samples: int = 0
        self.longest_gap: float = 0.0
        """The longest time between two samples, in seconds. A lock held for less time may be
        missed."""
        self._last: float | None = None
        self._open: dict[SeenLock, _Span] = {}
        self._totals: dict[_Kind, _Total] = {}

    def note(self, seen: Sequence[SeenLock], *, sent: float, received: float) -> None:
        """Add a sample: the locks at some moment between ``sent`` and ``received``, in seconds."""
        since = sent if self._last is None else self._last
        self.longest_gap = max(self.longest_gap, received - since)
        self._last = sent
        self.samples += 1
        before, self._open = self._open, {}
        for lock in seen:
            first = before.pop(lock, _Span(received, received)).first
            self._open[lock] = _Span(first, max(first, sent))  # not longer than it was held
        self._close(before)

    def finish(self) -> None:
        """Count the locks of the last sample as released."""
        self._close(self._open)
        self._open = {}

    def held(self, names: Mapping[int, str]) -> list[HeldLock]:
        """Return the locks that were held on the named relations, the most disruptive first."""
        order = list(BLOCKS)
        kinds = [
            (kind, name)
            for kind in self._totals
            if kind.granted and kind.mode in BLOCKS and (name := names.get(kind.relation or 0))
        ]
        kinds.sort(key=lambda one: (order.index(one[0].mode), one[1]))
        return [
            HeldLock(
                relation=name,
                mode=_SQL_NAMES[kind.mode],
                blocks=BLOCKS[kind.mode],
                transactions=self._totals[kind].number,
                longest_seconds=round(self._totals[kind].longest, 3),
            )
            for kind, name in kinds
        ]

    def waits(self, names: Mapping[int, str]) -> list[LockWait]:
        """Return the locks that a session waited for, the longest wait first."""
        waits = [
            LockWait(
                waited_for=names.get(kind.relation or 0, kind.type),
                mode=_SQL_NAMES.get(kind.mode, kind.mode),
                waits=total.number,
                longest_seconds=round(total.longest, 3),
            )
            for kind, total in self._totals.items()
            if not kind.granted
        ]
        return sorted(waits, key=lambda wait: -wait.longest_seconds)

    def _close(self, locks: Mapping[SeenLock, _Span]) -> None:
        for lock, span in locks.items():
            kind = _Kind(lock.type, lock.relation, lock.mode, lock.granted)
            self._totals[kind] = self._totals.get(kind, _Total()).plus(span)
