"""Threads that read a data file, while another thread writes to it."""

import asyncio
import sqlite3
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, cast

from neonctl_local.storage.data_files import connect_reader

T = TypeVar("T")

_CACHE_KIB = 16 * 1024


class _Shared:
    """A call whose callers share the result."""

    result: asyncio.Future[Any]  # Any: the type differs for each key

    def __init__(self) -> None:
        self.has_started = False


class Readers:
    """Threads that read a data file, each on a connection of its own.

    The write-ahead log gives each transaction a snapshot of the file. So reads do not wait for
    writes, and writes do not wait for reads.
    """

    def __init__(self, path: Path, threads: int, name: str) -> None:
        self._path = path
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._shared: dict[Hashable, _Shared] = {}
        self._connections: list[sqlite3.Connection] = []
        self._idle: list[sqlite3.Connection] = []

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Call a function with a connection, in the next free thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._call, function)

    async def run_shared(self, key: Hashable, function: Callable[[sqlite3.Connection], T]) -> T:
        """Call a function as :meth:`run` does, once for all waiting callers with the same key.

        These callers must pass equivalent functions. A call that has already started is not shared,
        because it may miss a write that finished before the new caller's request.
        """
        shared = self._shared.get(key)
        if shared is None or shared.has_started:
            shared = self._shared[key] = _Shared()
            loop = asyncio.get_running_loop()
            shared.result = loop.run_in_executor(self._threads, self._start, shared, function)
        # The other callers still need the result if this one is cancelled.
        try:
            return cast("T", await asyncio.shield(shared.result))
        finally:
            if self._shared.get(key) is shared:
                del self._shared[key]

    async def close(self) -> None:
        """Wait for the running reads, and close all connections."""
        await asyncio.to_thread(self._close)

    def _start(self, shared: "_Shared", function: Callable[[sqlite3.Connection], T]) -> T:
        shared.has_started = True
        return self._call(function)

    def _call(self, function: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            return function(connection)
        finally:
            self._idle.append(connection)

    def _connect(self) -> sqlite3.Connection:
        connection = connect_reader(self._path)
        self._connections.append(connection)
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        return connection

    def _close(self) -> None:
        self._threads.shutdown()
        for connection in self._connections:
            connection.close()
