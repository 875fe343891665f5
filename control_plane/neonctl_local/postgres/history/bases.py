"""The copies from which recoveries start: which to use and keep, and when to make the next."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

INTERVAL: Final = 64 << 20
"""The amount of WAL after which a new copy is made, in bytes, if the data is smaller.

Recovery replays this much in about a second. Larger data is copied after as many bytes of WAL as
the data contains, so that the copies never need more disk space than the WAL.
"""

GRACE: Final = 60.0
"""How long history is kept beyond the retention period, in seconds, for requests at its edge."""


class Moment(NamedTuple):
    """A point in time of a cluster: a time or an LSN. Exactly one of the two is set."""

    at: datetime | None = None
    lsn: str | None = None

    def __str__(self) -> str:
        return f"LSN {self.lsn}" if self.at is None else self.at.isoformat()


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a data directory.

    Recovery from it needs the WAL from ``segment`` on, and can reach all times since ``taken_at``
    and all positions since ``lsn``. ``first`` marks the copy that was made before the first start:
    it contains the data of all earlier times of the branch. ``size`` is in bytes.
    """

    number: int
    taken_at: datetime
    lsn: str
    segment: str
    size: int
    first: bool = False


def position(lsn: str) -> int:
    """Return an LSN as a byte position."""
    high, low = lsn.split("/")
    return (int(high, 16) << 32) + int(low, 16)


def find_base(bases: Iterable[Base], moment: Moment) -> tuple[Base, dict[str, str]] | None:
    """Return the latest copy that is not after a moment, and the settings to recover to the moment.

    Return None if the history starts later.
    """
    for base in sorted(bases, key=lambda each: each.number, reverse=True):
        if moment.at is None:
            assert moment.lsn is not None
            if position(base.lsn) <= position(moment.lsn):
                # An LSN is the end of a record. Postgres compares it with the start of the next.
                target = {"recovery_target_lsn": moment.lsn, "recovery_target_inclusive": "off"}
                return base, target
        elif base.taken_at <= moment.at:
            return base, {"recovery_target_time": moment.at.isoformat()}
        elif base.first:
            return base, {"recovery_target": "immediate"}
    return None


def is_due(bases: Sequence[Base], wal: int) -> bool:
    """Return whether a new copy is due after ``wal`` bytes of WAL since the last one."""
    return not bases or wal >= max(INTERVAL, bases[-1].size)


def outdated(bases: Sequence[Base], now: datetime, retention: float) -> Sequence[Base]:
    """Return the copies not needed for the retention period. ``bases`` are sorted, oldest first."""
    start = now - timedelta(seconds=retention + GRACE)
    reaching = [base for base in bases if base.taken_at <= start]
    return reaching[:-1]


def oversized(usage: Mapping[str, Sequence[tuple[Base, int]]], limit: int) -> dict[str, list[Base]]:
    """Return the oldest copies to drop until the rest uses at most ``limit`` bytes.

    ``usage`` lists the copies of each cluster from old to new, with the bytes that each frees. The
    latest copy of each cluster always stays.
    """
    total = sum(size for used in usage.values() for _, size in used)
    droppable = [(id, base, size) for id, used in usage.items() for base, size in used[:-1]]
    dropped: dict[str, list[Base]] = {}
    for id, base, size in sorted(droppable, key=lambda each: each[1].taken_at):
        if total <= limit:
            break
        dropped.setdefault(id, []).append(base)
        total -= size
    return dropped
