"""neon-api, a synchronous client: it runs in this thread, or in 50 threads for 50 requests."""

import itertools
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Protocol, Self

from benchmarks.harness.results import NEON_API
from benchmarks.peers.base import API_KEY, CONCURRENCY, Contender, ListMemory, resident_megabytes
from benchmarks.servers.fixed_responses import PAGE, cursor_of


class _Page(Protocol):
    operations: list[object]


class _Client(Protocol):
    """The used part of the client, which has no types."""

    def operation(self, project_id: str, operation_id: str) -> object: ...

    def operations(self, project_id: str, *, cursor: str | None, limit: int) -> _Page: ...


_new: Callable[..., _Client] = import_module("neon_api").NeonAPI


class NeonApi(Contender):
    """neon-api with one client per thread, because its session cannot be shared."""

    name = NEON_API

    async def __aenter__(self) -> Self:
        self._clients = threading.local()
        self._threads = ThreadPoolExecutor(CONCURRENCY)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._threads.shutdown()

    @property
    def _client(self) -> _Client:
        if not hasattr(self._clients, "client"):
            self._clients.client = _new(API_KEY, base_url=f"{self.base_url}/")
        client: _Client = self._clients.client
        return client

    def get(self, _: int = 0) -> object:
        """Return one operation."""
        return self._client.operation(self.project_id, self.operation_id)

    def page(self, cursor: str | None = None) -> list[object]:
        """Return a page of 1,000 operations. neon-api drops the cursor of the next page."""
        page = self._client.operations(self.project_id, cursor=cursor, limit=PAGE)
        return page.operations

    async def list_memory(self) -> ListMemory:
        """Implement Contender. The cursors are computed, because neon-api drops them."""
        self.page()
        before = resident_megabytes()
        pages = map(self.page, map(cursor_of, itertools.count()))
        records = [record for page in itertools.takewhile(bool, pages) for record in page]
        return ListMemory(len(records), resident_megabytes() - before)

    async def sequential_gets(self, count: int) -> float:
        """Implement Contender."""
        return _seconds(count, self.get)

    async def concurrent_gets(self, count: int) -> float:
        """Implement Contender."""
        return _seconds(count, lambda: list(self._threads.map(self.get, range(CONCURRENCY))))

    async def pages(self, count: int) -> float:
        """Implement Contender."""
        return _seconds(count, self.page)


def _seconds(count: int, once: Callable[[], object]) -> float:
    started = time.perf_counter()
    for _ in range(count):
        once()
    return time.perf_counter() - started
