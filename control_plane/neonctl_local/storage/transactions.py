"""Transactions: the reads and writes of rows, which are Structs."""

import sqlite3
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from neonctl_local.clock import Instant
from neonctl_local.settings import Rules
from neonctl_local.storage.later import Key, LaterUpdate
from neonctl_local.storage.rows import Row, RowT, SqlValue


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
        """Return the same transaction with another time as ``now``."""
        return Transaction(self._connection, moment, self.rules)

    def select(self, kind: type[RowT], where: str, *values: SqlValue) -> list[RowT]:
        """Return the rows that match the clauses after ``FROM table``."""
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
        """Return the row with an id, or None. It must not change: a transaction reads it once."""
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
        """Update the row with the same ``id``. A read leaves this to the next write.

        The update is dropped if another one changes these columns before.
        """
        if self._noted is None:
            self.update(row, **changes)
            return
        values = msgspec.structs.asdict(row)
        before = {name: values[name] for name in changes}
        self.later[row.table, values["id"]] = LaterUpdate(self.now, before, changes)

    def not_stored(self, kind: type[Row]) -> dict[SqlValue, Mapping[str, SqlValue]]:
        """Return the new values of rows that reads have left to the next write, by id."""
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


@lru_cache
def _select(kind: type[Row]) -> str:
    names = ", ".join(kind.__struct_fields__)
    return f"SELECT {names} FROM {kind.table}"


def _row(kind: type[RowT], values: tuple[SqlValue, ...]) -> RowT:
    # Not strict: SQLite stores a bool as 0 or 1.
    return msgspec.convert(
        dict(zip(kind.__struct_fields__, values, strict=True)), kind, strict=False
    )
