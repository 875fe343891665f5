"""A store in a file, for the processes of one machine."""

import asyncio
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from neonctl_async.transport.shared.messages import EXCHANGE_SECONDS, Reply, Request
from neonctl_async.transport.shared.rules import exchange
from neonctl_async.transport.shared.state import KEEP, State, new_state

APPLICATION_ID = 0x4E526174
"""Marks the files of this module ("NRat"), in the header of the file."""
SCHEMA_VERSION = 1
BUSY_SECONDS = 0.8 * EXCHANGE_SECONDS
"""The longest time that an exchange waits for the exchanges of other processes. The rest of its
time is for its own transaction, which takes milliseconds."""

T = TypeVar("T")
V = TypeVar("V")

_decode = msgspec.msgpack.Decoder(State).decode
_encode = msgspec.msgpack.Encoder().encode


class SqliteStore:
    """Keeps accounts in an SQLite file, which only its owner can read.

    The file is used in a separate thread. A file system that hangs can therefore block neither the
    event loop nor the exit of the process. The clock is the monotonic one, which all processes of a
    machine share, and which nobody can set.
    """

    def __init__(
        self, path: Path, account: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name: str = f"sqlite:///{path}"
        self._file = _File(path, account, clock)
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def exchange(self, request: Request) -> Reply:
        """Apply a report and return the leases. Raise sqlite3.Error or OSError if that fails."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=_work, args=(self._jobs,), name="neonctl-async-budget", daemon=True
            )
            self._thread.start()
        job: _Job[Reply] = _Job(lambda: self._file.exchange(request, job))
        self._jobs.put(job)
        try:
            return await job.result
        finally:
            job.is_abandoned = True

    async def aclose(self) -> None:
        """Close the file. A thread that hangs is left behind."""
        if self._thread is None:
            return
        self._thread = None
        job = _Job(self._file.close)
        self._jobs.put(job)
        self._jobs.put(None)
        await asyncio.wait({job.result}, timeout=EXCHANGE_SECONDS)


class _Job(Generic[T]):
    """A function that the thread calls, and the future of its result."""

    def __init__(self, function: Callable[[], T]) -> None:
        self.is_abandoned = False
        """True if nobody waits for the result any more."""
        self._loop = asyncio.get_running_loop()
        self.result: asyncio.Future[T] = self._loop.create_future()
        self._function = function

    def run(self) -> None:
        """Call the function, in the thread."""
        if self.is_abandoned:
            return
        try:
            result = self._function()
        except Exception as error:  # noqa: BLE001 - passed on to the caller, who awaits the result
            self._notify(self.result.set_exception, error)
        else:
            self._notify(self.result.set_result, result)

    def _notify(self, set_result: Callable[[V], None], value: V) -> None:
        def notify() -> None:
            if not self.result.done():
                set_result(value)

        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(notify)


def _work(jobs: "queue.SimpleQueue[_Job[Any] | None]") -> None:
    while (job := jobs.get()) is not None:
        job.run()


class _File:
    """The file, in the thread."""

    def __init__(self, path: Path, account: str, clock: Callable[[], float]) -> None:
        self._path = path
        self._account = account
        self._clock = clock
        self._connection: sqlite3.Connection | None = None
        self._identity = (0, 0)

    def exchange(self, request: Request, job: "_Job[Reply]") -> Reply:
        """Apply a report in a transaction, unless its job is abandoned before the end."""
        connection = self._open()
        try:
            connection.execute("BEGIN IMMEDIATE")
            reply = self._apply(connection, request)
            connection.execute("ROLLBACK" if job.is_abandoned else "COMMIT")
        except BaseException:
            self.close()
            raise
        return reply

    def close(self) -> None:
        """Close the file. An open transaction is rolled back."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _apply(self, connection: sqlite3.Connection, request: Request) -> Reply:
        now = int(self._clock() * 1000)
        row = connection.execute(
            "SELECT state FROM accounts WHERE account = ?", (self._account,)
        ).fetchone()
        state = _state(row) or new_state(request, now)
        reply = exchange(state, request, now)
        connection.execute(
            "INSERT OR REPLACE INTO accounts VALUES (?, ?, ?)",
            (self._account, now, _encode(state)),
        )
        return reply

    def _open(self) -> sqlite3.Connection:
        """Return a connection to the file that is at the path now."""
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
        # Data that an operating system crash destroys is no loss: it counts for a minute.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN IMMEDIATE")
        [application_id] = connection.execute("PRAGMA application_id").fetchone()
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [tables] = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if not (application_id or version or tables):
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute(
                "CREATE TABLE accounts (account TEXT PRIMARY KEY, used_at INTEGER, state BLOB)"
            )
        elif (application_id, version) != (APPLICATION_ID, SCHEMA_VERSION):
            raise sqlite3.DatabaseError(
                f"{self._path} is not a rate budget of this version: expected a file that "
                "neonctl-async has created; delete it or choose another path"
            )
        now = int(self._clock() * 1000)
        # Data from the future is from before the last start of the machine: its age is unknown.
        connection.execute("DELETE FROM accounts WHERE used_at < ?", (now - KEEP,))
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL").fetchone()


def _state(row: tuple[bytes] | None) -> State | None:
    """Return the data of an account, or None: data that nobody can read counts as lost."""
    try:
        return None if row is None else _decode(row[0])
    except (msgspec.DecodeError, TypeError):
        return None


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
