"""One SQLite connection. Every call is a transaction; rows are Structs."""

import asyncio
import sqlite3
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar, Concatenate, ParamSpec, TypeVar

import msgspec

from neonctl_async.local.clock import Clock, Instant, instant
from neonctl_async.local.settings import Rules
from neonctl_async.local.storage.data_files import connect
from neonctl_async.local.storage.locks import FileLock, lock_data_file

SqlValue = str | int | float | bytes | None


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table named in the class; the fields are the columns."""

    table: ClassVar[str]


P = ParamSpec("P")
T = TypeVar("T")
RowT = TypeVar("RowT", bound=Row)


class Transaction:
    """The reads and writes of one request, at the time ``now``, under the settings ``rules``."""

    def __init__(self, connection: sqlite3.Connection, now: Instant, rules: Rules) -> None:
        self.now = now
        self.rules = rules
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

    def number(self, sql: str, *values: SqlValue) -> int | None:
        """Return the single number that a query selects, or None."""
        row = self._connection.execute(sql, values).fetchone()
        return None if row is None or row[0] is None else int(row[0])

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


class Database:
    """Runs functions with a :class:`Transaction`, one after another.

    The writes of a function are committed when it returns and rolled back when it raises. The
    write-ahead log of a file keeps every committed transaction, even if the process is killed.
    Work on a file runs in a separate thread. Work in memory never blocks and runs on the event
    loop: switching threads would take a hundred times as long as the statements.
    """

    def __init__(
        self, path: Path | None, clock: Clock, rules: Rules, *, durable: bool = False
    ) -> None:
        self._path = path
        self._durable = durable
        self._clock = clock
        self.rules: Rules = rules
        self._now: Instant = 0
        self._is_open = False
        self._worker: ThreadPoolExecutor | None = None
        self._lock: FileLock | None = None
        self._connection: sqlite3.Connection | None = None
        self._saved: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Open the database, in the newest schema. Raise RuntimeError if that fails."""
        if self._path is not None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix="neonctl-async-local")
        self._is_open = True
        try:
            await self._submit(self._connect)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connection and stop the thread."""
        if not self._is_open:
            return
        await self._submit(self._disconnect)
        self._is_open = False
        if self._worker is not None:
            await asyncio.to_thread(self._worker.shutdown)
            self._worker = None

    async def run(
        self, function: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call ``function(transaction, ...)`` as one transaction."""
        return await self._submit(self._transact, lambda tx: function(tx, *args, **kwargs))

    async def save(self) -> None:
        """Keep a copy of all data in memory, for :meth:`restore`."""
        await self._submit(self._save)

    async def restore(self) -> bool:
        """Return to the data of the last :meth:`save`. Return False if there is none."""
        return await self._submit(self._restore)

    async def _submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if not self._is_open:
            raise RuntimeError("the local control plane is not running: start it first")
        if self._worker is None:
            return function(*args, **kwargs)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._worker, partial(function, *args, **kwargs))

    def _connect(self) -> None:
        if self._path is not None:
            self._lock = lock_data_file(self._path)
        self._connection = connect(self._path, durable=self._durable)
        served = self._connection.execute("SELECT until FROM served").fetchone()
        self._now = served[0] if served else 0

    def _disconnect(self) -> None:
        for connection in (self._connection, self._saved):
            if connection is not None:
                connection.close()
        self._connection = self._saved = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _save(self) -> None:
        if self._connection is not None:
            if self._saved is None:
                self._saved = sqlite3.connect(":memory:")
            self._connection.backup(self._saved)

    def _restore(self) -> bool:
        if self._connection is None or self._saved is None:
            return False
        self._saved.backup(self._connection)
        return True

    def _transact(self, function: Callable[[Transaction], T]) -> T:
        if self._connection is None:
            raise RuntimeError("the database is not open")
        # If the clock is set back, statuses must not go back.
        self._now = max(self._now, instant(self._clock()))
        with _atomic(self._connection):
            if self._path is not None:
                self._connection.execute(
                    "INSERT OR REPLACE INTO served (id, until) VALUES (1, ?)", (self._now,)
                )
            return function(Transaction(self._connection, self._now, self.rules))


@contextmanager
def _atomic(connection: sqlite3.Connection) -> Generator[None, None, None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite itself ends some transactions, if the disk is full
            connection.execute("ROLLBACK")
        raise


@lru_cache
def _select(kind: type[Row]) -> str:
    names = ", ".join(kind.__struct_fields__)
    return f"SELECT {names} FROM {kind.table}"


def _row(kind: type[RowT], values: tuple[SqlValue, ...]) -> RowT:
    # Not strict: SQLite stores a bool as 0 or 1.
    return msgspec.convert(
        dict(zip(kind.__struct_fields__, values, strict=True)), kind, strict=False
    )
