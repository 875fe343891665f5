"""One SQLite connection. Every call is a transaction; rows are Structs."""

import asyncio
import sqlite3
import zlib
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

from neonctl_async.local.clock import Clock, Instant, instant
from neonctl_async.local.settings import Rules
from neonctl_async.local.storage.transactions import Transaction

_SCHEMA: Final = (
    resources.files("neonctl_async.local.storage")
    .joinpath("schema.sql")
    .read_text(encoding="utf-8")
)
_SCHEMA_VERSION: Final = zlib.crc32(_SCHEMA.encode()) >> 1
"""The checksum of the schema that a file stores, in the 31 bits that SQLite has for it."""

_IN_USE: Final = "database is locked"

P = ParamSpec("P")
T = TypeVar("T")


class Database:
    """Runs functions with a :class:`Transaction`, one after another.

    The writes of a function are committed when it returns and rolled back when it raises. The
    write-ahead log of a file keeps every committed transaction, even if the process is killed.
    Work on a file runs in a separate thread. Work in memory never blocks and runs on the event
    loop: switching threads would take a hundred times as long as the statements.
    """

    def __init__(self, path: Path | None, clock: Clock, rules: Rules) -> None:
        self._path = path
        self._clock = clock
        self.rules: Rules = rules
        self._now: Instant = 0
        self._is_open = False
        self._worker: ThreadPoolExecutor | None = None
        self._connection: sqlite3.Connection | None = None
        self._saved: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Open the database and create missing tables. Raise RuntimeError if that fails."""
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
        try:
            if self._path is not None:
                self._path.touch(mode=0o600)
            connection = sqlite3.connect(self._path or ":memory:", timeout=0, isolation_level=None)
            self._connection = connection
            # Only one process may use a file: reject the second one here, not during a request.
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("PRAGMA foreign_keys = ON")
            _refuse_other_schemas(connection)
            connection.executescript(_SCHEMA)
            connection.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")
            served = connection.execute("SELECT until FROM served").fetchone()
        except (sqlite3.Error, OSError) as error:
            reason = str(error)
            if reason == _IN_USE:
                reason = "another process uses it; connect to its server, or use another file"
            raise RuntimeError(f"cannot keep data in {self._path}: {reason}") from error
        self._now = served[0] if served else 0

    def _disconnect(self) -> None:
        for connection in (self._connection, self._saved):
            if connection is not None:
                connection.close()
        self._connection = self._saved = None

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


def _refuse_other_schemas(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    is_new = connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None
    if not is_new and version != _SCHEMA_VERSION:
        raise OSError("another version or another program created it: use a new file")


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
