"""The interface of a compared client: GETs, pages and a whole list."""

import asyncio
import gc
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import ClassVar, Self

import msgspec

API_KEY = "napi_benchmark"
CONCURRENCY = 50


class ListMemory(msgspec.Struct):
    """The memory that a process needs for a list of records."""

    records: int
    megabytes: float


class Contender(ABC):
    """A client in use. Times are in seconds."""

    name: ClassVar[str]

    def __init__(self, base_url: str, project_id: str, operation_id: str) -> None:
        self.base_url = base_url
        self.project_id = project_id
        self.operation_id = operation_id

    async def __aenter__(self) -> Self:
        return self

    @abstractmethod
    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""

    @abstractmethod
    async def sequential_gets(self, count: int) -> float:
        """Return the time of ``count`` GETs of an operation, one after another."""

    @abstractmethod
    async def concurrent_gets(self, count: int) -> float:
        """Return the time of ``count`` batches of 50 concurrent GETs."""

    @abstractmethod
    async def pages(self, count: int) -> float:
        """Return the time of fetching and decoding the first page ``count`` times."""

    @abstractmethod
    async def list_memory(self) -> ListMemory:
        """Return the memory of the whole list, measured in a process that has not read it yet."""


class Pager(Contender):
    """A client that can read a whole list."""

    @abstractmethod
    async def paging(self, pause: float) -> float:
        """Return the time of reading all pages, with a pause of ``pause`` seconds per page."""


class AsyncContender(Pager):
    """A client that runs on the event loop."""

    @abstractmethod
    async def get(self) -> object:
        """Return one operation."""

    @abstractmethod
    async def page(self, cursor: str | None = None) -> tuple[Sequence[object], str | None]:
        """Return a page of 1,000 operations and the cursor of the next page."""

    async def all_pages(self) -> AsyncIterator[Sequence[object]]:
        """Yield the pages of the list, each requested when it is needed."""
        operations, cursor = await self.page()
        while operations:
            yield operations
            operations, cursor = await self.page(cursor)

    async def list_memory(self) -> ListMemory:
        """Implement Contender."""
        await self.page()
        before = resident_megabytes()
        records = [record async for page in self.all_pages() for record in page]
        return ListMemory(len(records), resident_megabytes() - before)

    async def paging(self, pause: float) -> float:
        """Implement Pager."""
        started = time.perf_counter()
        async for _ in self.all_pages():
            await asyncio.sleep(pause)
        return time.perf_counter() - started

    async def sequential_gets(self, count: int) -> float:
        """Implement Contender."""
        return await _seconds(count, self.get)

    async def concurrent_gets(self, count: int) -> float:
        """Implement Contender."""
        return await _seconds(
            count, lambda: asyncio.gather(*(self.get() for _ in range(CONCURRENCY)))
        )

    async def pages(self, count: int) -> float:
        """Implement Contender."""
        return await _seconds(count, self.page)


async def _seconds(count: int, once: Callable[[], Awaitable[object]]) -> float:
    started = time.perf_counter()
    for _ in range(count):
        await once()
    return time.perf_counter() - started


def resident_megabytes() -> float:
    """Return the resident memory of this process (Linux only)."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
