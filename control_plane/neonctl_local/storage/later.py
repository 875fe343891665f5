"""Updates that requests without other writes leave to the next write, such as the use of a key.

A read neither waits for them nor fails if they cannot be stored.
"""

import sqlite3
import threading
from collections.abc import Mapping
from typing import NamedTuple

from neonctl_local.clock import Instant
from neonctl_local.storage.rows import SqlValue

Key = tuple[str, SqlValue]
"""A table, and the id of a row of it."""


class LaterUpdate(NamedTuple):
    """New values of columns of a row. They are dropped if the row changes before."""

    noted_at: Instant
    before: Mapping[str, SqlValue]
    after: Mapping[str, SqlValue]


class LaterUpdates:
    """The updates that wait to be stored: at most one a row, the latest. Threads share them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._updates: dict[Key, LaterUpdate] = {}

    def __bool__(self) -> bool:
        return bool(self._updates)

    @property
    def noted(self) -> dict[Key, LaterUpdate]:
        """The updates that wait now. A read takes them before its snapshot, so it misses none."""
        return self._updates

    def copy(self, noted: dict[Key, LaterUpdate]) -> dict[Key, LaterUpdate]:
        """Return a copy of :attr:`noted`, to which other threads add."""
        with self._lock:
            return dict(noted)

    def add(self, updates: Mapping[Key, LaterUpdate]) -> None:
        """Add updates. Those of a later time replace the others."""
        with self._lock:
            for key, update in updates.items():
                known = self._updates.get(key)
                if known is None or known.noted_at <= update.noted_at:
                    self._updates[key] = update

    def store(self, connection: sqlite3.Connection) -> dict[Key, LaterUpdate]:
        """Store the updates in the transaction of a connection. Return them, to be forgotten."""
        with self._lock:
            updates = dict(self._updates)
        for (table, key), (_, before, after) in updates.items():
            changes = ", ".join(f"{name} = ?" for name in after)
            unchanged = " AND ".join(f"{name} IS ?" for name in before)
            sql = f"UPDATE {table} SET {changes} WHERE id = ? AND {unchanged}"
            connection.execute(sql, (*after.values(), key, *before.values()))
        return updates

    def forget(self, stored: Mapping[Key, LaterUpdate]) -> None:
        """Forget the updates that are stored now, unless later ones have replaced them."""
        with self._lock:
            # A new dict: a read with an older snapshot still needs the old one.
            self._updates = {
                key: _rebased(update, stored.get(key))
                for key, update in self._updates.items()
                if update is not stored.get(key)
            }

    def clear(self) -> None:
        """Forget all updates."""
        with self._lock:
            self._updates = {}


def _rebased(update: LaterUpdate, stored: LaterUpdate | None) -> LaterUpdate:
    """Return an update that expects the values which have just been stored."""
    return update if stored is None else update._replace(before={**update.before, **stored.after})
