"""A store in a file, for processes on one machine."""

import asyncio
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from neonctl_async.transport.shared.messages import EXCHANGE_SECONDS, Reply, Request
from neonctl_async.transport.shared.table import CREATE, exchange

APPLICATION_ID = 0x4E526174
"""Marks the files of this module ("NRat") in their headers."""
SCHEMA_VERSION = 2
BUSY_SECONDS = 0.8 * EXCHANGE_SECONDS
"""The longest time that an exchange waits for the exchanges of other processes. The rest of its
time is for its own transaction, which takes milliseconds."""

T = TypeVar("T")


class SqliteStore:
    """Keeps accounts in an SQLite file, which only its owner can read.

    The file is used in a separate thread. A file system that hangs can therefore block neither the
    event loop nor the exit of the process. Times are from the monotonic clock, which all processes
    on a machine share and nobody can set.
    """

    def __init__(
        self, path: Path, account: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name: str = f"sqlite:///{path}"
        self._file = _File(path, account, clock)
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def exchange(self, request: Request) -> Reply:
        """Record ends, and grant slots. Raise sqlite3.Error or OSError if that fails."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work, name="neonctl-async-budget", daemon=True
            )
            self._thread.start()
        return await self._call(lambda: self._file.exchange(request))

    async def aclose(self) -> None:
        """Close the file. A thread that hangs is left behind."""
        if self._thread is not None:
            self._thread = None
            try:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._call(self._file.close), EXCHANGE_SECONDS)
            finally:
                self._jobs.put(None)

    async def _call(self, function: Callable[[], T]) -> T:
        """Call a function in the thread."""
        future: Future[T] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except Exception as error:  # noqa: BLE001 - passed on to the caller, who awaits it
                    future.set_exception(error)

        self._jobs.put(run)
        return await asyncio.wrap_future(future)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
        self._file.close()  # if the call that does so was cancelled


class _File:
    """The file. Its methods run in the thread."""

    def __init__(self, path: Path, account: str, clock: Callable[[], float]) -> None:
        self._path = path
        self._account = account
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._identity = (0, 0)

    def exchange(self, request: Request) -> Reply:
        """Run an exchange in a transaction."""
        connection = self._open()
        try:
            connection.execute("BEGIN IMMEDIATE")
            reply = exchange(connection, self._account, request, int(self._clock() * 1000))
            connection.execute("COMMIT")
        except BaseException:
            self.close()
            raise
        return reply

    def close(self) -> None:
        """Close the file. An open transaction is rolled back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        """Return a connection to the file that is currently at the path."""
        if self._connection is not None:
            with suppress(OSError):
                if self._identity == _identity(self._path.stat()):
                    return self._connection
            self.close()  # the file was deleted or replaced
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        self._identity = _identity(os.fstat(descriptor))
        os.close(descriptor)
        connection = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check the file, and create its table if it is empty."""
        # Data that an operating system crash destroys is no loss, because it counts for a minute
        # only.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        [application_id] = connection.execute("PRAGMA application_id").fetchone()
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not (application_id or version or tables):
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            for statement in CREATE.split(";"):
                connection.execute(statement)
        elif (application_id, version) != (APPLICATION_ID, SCHEMA_VERSION):
            raise sqlite3.DatabaseError(
                f"{self._path} is not a rate budget of this version: expected a file that "
                "neonctl-async has created; delete it or choose another path"
            )
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL").fetchone()


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
