"""The database of a tenant. Every call is a transaction; rows are msgspec Structs."""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Generator, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Concatenate, Final, ParamSpec, TypeVar

from neonctl_local.clock import SECOND, Clock, Instant, instant
from neonctl_local.errors import StorageFullError
from neonctl_local.settings import Rules
from neonctl_local.storage import full_disk
from neonctl_local.storage.data_files import checkpoint_long_log, connect
from neonctl_local.storage.full_disk import Reserve
from neonctl_local.storage.locks import FileLock, lock_data_file
from neonctl_local.storage.readers import Readers
from neonctl_local.storage.transactions import LaterUpdates, Transaction

P = ParamSpec("P")
T = TypeVar("T")

_THREADS: Final = "neonctl-async-local"
_STORE_EVERY: Final = 1.0
"""The shortest time between two writes of updates that reads have left, in seconds."""
_WRITES_PER_CHECK: Final = 100
"""The number of writes between two checks of the write-ahead log's size."""

_logger: Final = logging.getLogger(__name__)


class Database:
    """Runs functions with a :class:`Transaction`.

    The writes of a function are committed when it returns and rolled back when it raises. The
    write-ahead log of a file keeps every committed transaction, even if the process is killed.

    For a file, one thread writes, and other threads read. Long lists are read in a thread of their
    own, so short reads never wait for them. A database in memory never blocks, so it is used on the
    event loop: switching threads would take a hundred times as long as the statements.
    """

    def __init__(
        self, path: Path | None, clock: Clock, rules: Rules, *, durable: bool = False
    ) -> None:
        self._path = path
        self._file = path
        self._durable = durable
        self._clock = clock
        self.rules: Rules = rules
        self._now: Instant = 0
        self._stored_now: Instant = 0
        self._now_lock = threading.Lock()
        self._is_open = False
        self._worker: ThreadPoolExecutor | None = None
        self._readers: Readers | None = None
        self._lists: Readers | None = None
        self._open_readers: list[Readers] = []
        self._later = LaterUpdates()
        self._timer: asyncio.TimerHandle | None = None
        self._next_store = 0.0
        self._writes = 0
        self._has_warned = False
        self._reserve: Reserve | None = None
        self._lacks_space = False
        self._has_warned_of_full = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed: asyncio.Event | None = None
        self._lock: FileLock | None = None
        self._connection: sqlite3.Connection | None = None
        self._saved: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Open the database, in the newest schema. Raise RuntimeError if that fails."""
        if self._path is not None:
            self._worker = ThreadPoolExecutor(1, thread_name_prefix=_THREADS)
        self._list_turn = asyncio.Lock()  # of this event loop: a later start may have another one
        self._is_open = True
        try:
            await self._submit(self._connect)
        except BaseException:
            await self.close()
            raise
        if self._file is not None:
            self._readers = Readers(self._file, 2, f"{_THREADS}-reader")
            self._lists = Readers(self._file, 1, f"{_THREADS}-lists")
            self._open_readers = [self._readers, self._lists]

    async def close(self) -> None:
        """Close all connections and stop the threads. If this call is cancelled, repeat it."""
        if not self._is_open:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._readers = self._lists = None
        while self._open_readers:
            await self._open_readers[-1].close()
            self._open_readers.pop()
        await self._submit(self._disconnect)
        self._is_open = False
        self._changed = None
        if self._worker is not None:
            self._worker.shutdown(wait=False)  # a cancelled wait may not have started
            await asyncio.to_thread(self._worker.shutdown)
            self._worker = None

    async def run(
        self, function: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call ``function(transaction, ...)`` as one transaction, which may write.

        Raises StorageFullError, a 507, if the disk is full.
        """
        return await self._submit(self._transact, lambda tx: function(tx, *args, **kwargs))

    async def spend(
        self, function: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function that frees disk space, as :meth:`run` does.

        If the disk is full, the call is repeated with more and more space from the reserve, until
        it succeeds or the reserve is used up.
        """

        def run(tx: Transaction) -> T:
            return function(tx, *args, **kwargs)

        return await self._submit(self._transact, run, spends=True)

    async def read(
        self, function: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call ``function(transaction, ...)`` with a snapshot, alongside other reads and writes.

        The snapshot contains every write that was finished before the call.
        """

        def read(tx: Transaction) -> T:
            return function(tx, *args, **kwargs)

        if self._readers is None:
            return await self._submit(self._read_in_memory, read)
        try:
            return await self._readers.run(partial(self._read_on, function=read))
        finally:
            self._store_later()

    async def read_list(self, key: Hashable, function: Callable[[Transaction], T]) -> T:
        """Call a function that may take many milliseconds, as :meth:`read` does.

        Waiting calls with the same key share one result, so their functions must be equivalent.
        """
        if self._lists is None:
            async with self._list_turn:
                result = await self._submit(self._read_in_memory, function)
                await asyncio.sleep(0)  # other requests run between two lists
            return result
        try:
            return await self._lists.run_shared(key, partial(self._read_on, function=function))
        finally:
            self._store_later()

    @property
    def changed(self) -> asyncio.Event:
        """An event that is set when the next transaction has changed a row.

        Storing the updates that reads have left for later does not set the event.
        """
        if self._changed is None:
            self._loop = asyncio.get_running_loop()
            self._changed = asyncio.Event()
        return self._changed

    async def save(self) -> None:
        """Keep a copy of all data in memory, for :meth:`restore`."""
        await self._submit(self._save)

    async def restore(self) -> bool:
        """Return to the data of the last :meth:`save`. Return False if nothing was saved."""
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
            # The readers connect later: the working directory, or a link, may have changed by then.
            self._file = self._path.resolve()
            self._lock = lock_data_file(self._path)
            self._reserve = Reserve(self._file)
            self._reserve.allow_start()
        self._connection = connect(self._path, durable=self._durable)
        if self._reserve is not None:
            self._lacks_space = not self._reserve.fill()
        served = self._connection.execute("SELECT until FROM served").fetchone()
        self._now = self._stored_now = served[0] if served else 0

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._store_noted()
        for connection in (self._connection, self._saved):
            if connection is not None:
                connection.close()
        self._connection = self._saved = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _save(self) -> None:
        if self._connection is not None:
            self._store_noted()
            if self._saved is None:
                self._saved = sqlite3.connect(":memory:")
            self._connection.backup(self._saved)

    def _restore(self) -> bool:
        if self._connection is None or self._saved is None:
            return False
        with full_disk.reported(self._path):
            self._saved.backup(self._connection)
        self._later.clear()
        self._report_change()
        return True

    def _transact(
        self,
        function: Callable[[Transaction], T],
        now: Instant | None = None,
        *,
        spends: bool = False,
    ) -> T:
        try:
            result = self._attempt(function, now)
        except StorageFullError as error:
            self._note_full(error)
            if not spends or self._reserve is None:
                raise
            result = self._spend(self._reserve, partial(self._attempt, function, now), error)
        self._note_success()
        return result

    @staticmethod
    def _spend(reserve: Reserve, attempt: Callable[[], T], error: StorageFullError) -> T:
        """Repeat a transaction with more and more space from the reserve, until it succeeds."""
        size = reserve.size()
        try:
            while reserve.spend():
                with suppress(StorageFullError):
                    return attempt()
            raise error
        finally:
            reserve.take_back(size)

    def _note_full(self, error: StorageFullError) -> None:
        if not self._has_warned_of_full:  # every write to a full disk fails
            _logger.warning("%s. Deletions use a reserve of disk space", error)
        self._lacks_space = self._has_warned_of_full = True

    def _note_success(self) -> None:
        """Refill the reserve when there is space again. The disk then no longer counts as full."""
        if self._lacks_space and (self._reserve is None or self._reserve.fill()):
            if self._has_warned_of_full:
                _logger.info("the data file can be written again")
            self._lacks_space = self._has_warned_of_full = False

    def _attempt(self, function: Callable[[Transaction], T], now: Instant | None) -> T:
        if self._connection is None:
            raise RuntimeError("the database is not open")
        now = self._advance() if now is None else now
        before = None
        try:
            with full_disk.reported(self._path), _atomic(self._connection):
                if self._path is not None:
                    self._connection.execute(
                        "INSERT OR REPLACE INTO served (id, until) VALUES (1, ?)", (now,)
                    )
                stored = self._later.store(self._connection)
                before = self._connection.total_changes
                result = function(Transaction(self._connection, now, self.rules))
        finally:
            # Also after an error: the transaction may have committed its first part.
            if before is not None and self._connection.total_changes != before:
                self._report_change()
        self._stored_now = now
        self._later.forget(stored)
        self._writes += 1
        if self._file is not None and self._writes % _WRITES_PER_CHECK == 0:
            checkpoint_long_log(self._connection, self._file)
        return result

    def _report_change(self) -> None:
        """Set the event of :attr:`changed`. This is called in the thread that writes."""
        if self._changed is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._set_changed)

    def _set_changed(self) -> None:
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    def _advance(self) -> Instant:
        """Return the time. It does not go back if the clock does, so statuses do not either."""
        with self._now_lock:
            self._now = max(self._now, instant(self._clock()))
            return self._now

    def _read_in_memory(self, function: Callable[[Transaction], T]) -> T:
        if self._connection is None:
            raise RuntimeError("the database is not open")
        before = self._connection.total_changes
        try:
            result = self._read_on(self._connection, function)
        finally:
            # Not with PRAGMA query_only: setting it makes SQLite compile all statements again.
            has_written = self._connection.total_changes != before
            self._store_noted()
        if has_written:
            raise sqlite3.OperationalError("a read attempted to write a readonly database")
        return result

    def _read_on(self, connection: sqlite3.Connection, function: Callable[[Transaction], T]) -> T:
        noted = self._later.noted  # before the snapshot, which contains what is stored in between
        connection.execute("BEGIN")
        try:
            # The first statement takes the snapshot. The time is later than all writes in it.
            connection.execute("SELECT until FROM served").fetchone()
            tx = Transaction(connection, self._advance(), self.rules, noted=self._later.copy(noted))
            try:
                return function(tx)
            finally:
                self._later.add(tx.later)
        finally:
            connection.execute("ROLLBACK")

    def _store_later(self) -> None:
        """Schedule a write of the updates that reads have left, at most once a second."""
        is_due = self._later or self._now - self._stored_now >= SECOND
        if is_due and self._timer is None and self._readers is not None:
            self._timer = asyncio.get_running_loop().call_at(
                self._next_store, self._store_in_thread
            )

    def _store_in_thread(self) -> None:
        self._timer = None
        self._next_store = asyncio.get_running_loop().time() + _STORE_EVERY
        if self._worker is not None:
            self._worker.submit(self._store_noted)

    def _store_noted(self) -> None:
        """Store the updates that reads have left. If that fails, a later call tries again."""
        if not self._later and (self._path is None or self._now == self._stored_now):
            return
        try:
            self._transact(_nothing, self._now)
        except StorageFullError:
            pass
        except sqlite3.Error as error:
            if not self._has_warned:  # the call is repeated every second
                _logger.warning("the times of the last uses cannot be stored: %s", error)
            self._has_warned = True
        else:
            self._has_warned = False


def _nothing(tx: Transaction) -> None:
    """Do nothing, so that the transaction writes only what every write stores."""
    del tx


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
