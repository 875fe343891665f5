"""Transactions: the reads and writes of rows, which are msgspec Structs.

Requests without other writes leave some updates, such as the last use of a key, to the next write.
Such a request neither waits for these updates nor fails if they cannot be stored.
"""

import sqlite3
import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from neonctl_local.clock import Instant
from neonctl_local.settings import Rules
from neonctl_local.storage.rows import Row, RowT, SqlValue

Key = tuple[str, SqlValue]
"""A table, and the id of one of its rows."""


class LaterUpdate(NamedTuple):
    """New values for columns of a row. They are dropped if these columns change first."""

    noted_at: Instant
    before: Mapping[str, SqlValue]
    after: Mapping[str, SqlValue]


class Transaction:
    """The reads and writes of one request, at the time ``now``, under the settings ``rules``.

    A transaction with ``noted`` only reads. ``noted`` holds the updates that are not stored yet,
    and ``later`` those that this transaction adds.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        now: Instant,
        rules: Rules,
        *,
        noted: Mapping[Key, LaterUpdate] | None = None,
    ) -> None:
        self.now = now
        self.rules = rules
        self.later: dict[Key, LaterUpdate] = {}
        self._noted = noted
        self._unchanging: dict[tuple[str, str], Row | None] = {}
        self._connection = connection

    def commit(self) -> None:
        """Commit the writes so far, and start a new transaction for the rest."""
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")

    def at(self, moment: Instant) -> "Transaction":
        """Return a transaction on the same connection, with another time as ``now``."""
        return Transaction(self._connection, moment, self.rules)

    def select(self, kind: type[RowT], where: str, *values: SqlValue) -> list[RowT]:
        """Return the rows that match ``where``, the clauses after ``FROM table``."""
        cursor = self._connection.execute(f"{_select(kind)} {where}", values)
        return [_row(kind, row) for row in cursor]

    def first(self, kind: type[RowT], where: str, *values: SqlValue) -> RowT | None:
        """Return the first row that matches, or None."""
        row = self._connection.execute(f"{_select(kind)} {where}", values).fetchone()
        return None if row is None else _row(kind, row)

    def get(self, kind: type[RowT], key: str) -> RowT:
        """Return the row with an id. Raise LookupError if there is none."""
        row = self.first(kind, "WHERE id = ?", key)
        if row is None:
            raise LookupError(f"no {kind.__name__} {key!r}")
        return row

    def get_unchanging(self, kind: type[RowT], key: str) -> RowT | None:
        """Return the row with an id, or None.

        Use this only for rows that never change, because a transaction reads each of them once.
        """
        if (kind.table, key) not in self._unchanging:
            self._unchanging[kind.table, key] = self.first(kind, "WHERE id = ?", key)
        found = self._unchanging[kind.table, key]
        assert found is None or isinstance(found, kind)
        return found

    def number(self, sql: str, *values: SqlValue) -> int | None:
        """Return the single number that a query selects, or None."""
        row = self._connection.execute(sql, values).fetchone()
        return None if row is None or row[0] is None else int(row[0])

    def values(self, sql: str, names: Mapping[str, SqlValue]) -> tuple[SqlValue, ...]:
        """Return the single row of a query with named parameters."""
        row: tuple[SqlValue, ...] = self._connection.execute(sql, names).fetchone()
        return row

    def pairs(self, sql: str, *values: SqlValue) -> list[tuple[int, int]]:
        """Return the rows of a query that selects two numbers."""
        return self._connection.execute(sql, values).fetchall()

    def insert(self, row: RowT) -> RowT:
        """Store a row and return it. SQLite numbers the row if its ``id`` is 0."""
        values = msgspec.structs.asdict(row)
        is_numbered = values["id"] == 0
        if is_numbered:
            del values["id"]
        names = ", ".join(values)
        marks = ", ".join("?" * len(values))
        sql = f"INSERT INTO {row.table} ({names}) VALUES ({marks})"
        number = self._connection.execute(sql, tuple(values.values())).lastrowid
        return msgspec.structs.replace(row, id=number) if is_numbered else row

    def update(self, row: RowT, **changes: SqlValue) -> RowT:
        """Update the row with the same ``id`` and return the changed row."""
        assignments = ", ".join(f"{name} = ?" for name in changes)
        sql = f"UPDATE {row.table} SET {assignments} WHERE id = ?"
        key: SqlValue = msgspec.structs.asdict(row)["id"]
        self._connection.execute(sql, (*changes.values(), key))
        return msgspec.structs.replace(row, **changes)

    def update_later(self, row: Row, **changes: SqlValue) -> None:
        """Update the row with the same ``id``, or leave that to the next write if this is a read.

        The update is dropped if another one changes these columns first.
        """
        if self._noted is None:
            self.update(row, **changes)
            return
        values = msgspec.structs.asdict(row)
        before = {name: values[name] for name in changes}
        self.later[row.table, values["id"]] = LaterUpdate(self.now, before, changes)

    def not_stored(self, kind: type[Row]) -> dict[SqlValue, Mapping[str, SqlValue]]:
        """Return the new values that reads have queued for the next write, by the id of the row."""
        noted = self._noted or {}
        return {key: update.after for (table, key), update in noted.items() if table == kind.table}

    def content(self, sql: str, names: Mapping[str, SqlValue]) -> bytes:
        """Return the single BLOB that a query with named parameters selects."""
        (found,) = self._connection.execute(sql, names).fetchone()
        return bytes(found)

    def delete_all(self) -> None:
        """Delete every row of every table."""
        self._connection.execute("PRAGMA defer_foreign_keys = ON")
        tables = self._connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        for (table,) in tables.fetchall():
            self._connection.execute(f"DELETE FROM {table}")

    def execute(self, sql: str, *values: SqlValue) -> int:
        """Run a statement and return the number of rows that it changed."""
        return self._connection.execute(sql, values).rowcount


class LaterUpdates:
    """The updates that are waiting to be stored: for each row, only the latest.

    Several threads use this object.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._updates: dict[Key, LaterUpdate] = {}

    def __bool__(self) -> bool:
        return bool(self._updates)

    @property
    def noted(self) -> dict[Key, LaterUpdate]:
        """The waiting updates. A read takes them before its snapshot, so it does not miss any."""
        return self._updates

    def copy(self, noted: dict[Key, LaterUpdate]) -> dict[Key, LaterUpdate]:
        """Return a copy of :attr:`noted`, because other threads add to the original."""
        with self._lock:
            return dict(noted)

    def add(self, updates: Mapping[Key, LaterUpdate]) -> None:
        """Add updates. Later updates of a row replace earlier ones."""
        with self._lock:
            for key, update in updates.items():
                known = self._updates.get(key)
                if known is None or known.noted_at <= update.noted_at:
                    self._updates[key] = update

    def store(self, connection: sqlite3.Connection) -> dict[Key, LaterUpdate]:
        """Store the updates in the transaction of a connection. Return them for :meth:`forget`."""
        with self._lock:
            updates = dict(self._updates)
        for (table, key), (_, before, after) in updates.items():
            changes = ", ".join(f"{name} = ?" for name in after)
            unchanged = " AND ".join(f"{name} IS ?" for name in before)
            sql = f"UPDATE {table} SET {changes} WHERE id = ? AND {unchanged}"
            connection.execute(sql, (*after.values(), key, *before.values()))
        return updates

    def forget(self, stored: Mapping[Key, LaterUpdate]) -> None:
        """Forget updates that have been stored, unless later ones have replaced them."""
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


@lru_cache
def _select(kind: type[Row]) -> str:
    names = ", ".join(kind.__struct_fields__)
    return f"SELECT {names} FROM {kind.table}"


def _row(kind: type[RowT], values: tuple[SqlValue, ...]) -> RowT:
    # Not strict: SQLite stores a bool as 0 or 1.
    return msgspec.convert(
        dict(zip(kind.__struct_fields__, values, strict=True)), kind, strict=False
    )


def _rebased(update: LaterUpdate, stored: LaterUpdate | None) -> LaterUpdate:
    """Return an update that expects the values that have just been stored."""
    return update if stored is None else update._replace(before={**update.before, **stored.after})
