"""neon-api, which is synchronous: in this thread, and for 50 at once in as many threads."""

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Protocol, Self

from benchmarks.harness.results import NEON_API
from benchmarks.peers.base import AT_ONCE, KEY, Contender, Held, resident_megabytes
from benchmarks.servers.fixed_responses import PAGE, cursor_of


class _Page(Protocol):
    operations: list[object]


class _Client(Protocol):
    """What is used of the client, which has no types."""

    def operation(self, project_id: str, operation_id: str) -> object: ...

    def operations(self, project_id: str, *, cursor: str | None, limit: int) -> _Page: ...


_new: Callable[..., _Client] = import_module("neon_api").NeonAPI


class NeonApi(Contender):
    """A client for each thread: the session that it holds is not made to be shared."""

    name = NEON_API

    async def __aenter__(self) -> Self:
        self._clients = threading.local()
        self._threads = ThreadPoolExecutor(AT_ONCE)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._threads.shutdown()

    @property
    def _client(self) -> "_Client":
        if not hasattr(self._clients, "client"):
            self._clients.client = _new(KEY, base_url=f"{self.base_url}/")
        client: _Client = self._clients.client
        return client

    def get(self, _: int = 0) -> object:
        """One operation."""
        return self._client.operation(self.project_id, self.operation_id)

    def page(self, cursor: str | None = None) -> list[object]:
        """A page of 1,000 operations. It drops the cursor of the next."""
        page = self._client.operations(self.project_id, cursor=cursor, limit=PAGE)
        return page.operations

    async def held(self) -> Held:
        """See Contender. The cursors are known from elsewhere."""
        self.page()
        before = resident_megabytes()
        pages = map(self.page, map(cursor_of, itertools.count()))
        records = [record for page in itertools.takewhile(bool, pages) for record in page]
        return Held(len(records), resident_megabytes() - before)

    async def alone(self, count: int) -> float:
        """See Contender."""
        began = time.perf_counter()
        for _ in range(count):
            self.get()
        return time.perf_counter() - began

    async def at_once(self, count: int) -> float:
        """See Contender."""
        began = time.perf_counter()
        for _ in range(count):
            list(self._threads.map(self.get, range(AT_ONCE)))
        return time.perf_counter() - began

    async def pages(self, count: int) -> float:
        """See Contender."""
        began = time.perf_counter()
        for _ in range(count):
            self.page()
        return time.perf_counter() - began
