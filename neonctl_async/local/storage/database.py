"""One SQLite connection. Every call is a transaction; rows are Structs."""

import asyncio
import sqlite3
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from neonctl_async.local.clock import Clock, Instant, instant
from neonctl_async.local.settings import Rules
from neonctl_async.local.storage.data_files import connect
from neonctl_async.local.storage.locks import FileLock, lock_data_file
from neonctl_async.local.storage.transactions import Transaction

P = ParamSpec("P")
T = TypeVar("T")


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
