"""What a contender is asked: GETs alone and at once, pages, a whole list."""

import asyncio
import gc
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import ClassVar, Self

import msgspec

KEY = "napi_benchmark"
AT_ONCE = 50


class Held(msgspec.Struct):
    """What a process takes more than before, for as many records."""

    records: int
    megabytes: float


class Contender(ABC):
    """A client in use; what is timed are seconds."""

    name: ClassVar[str]

    def __init__(self, base_url: str, project_id: str, operation_id: str) -> None:
        self.base_url = base_url
        self.project_id = project_id
        self.operation_id = operation_id

    async def __aenter__(self) -> Self:
        return self

    @abstractmethod
    async def __aexit__(self, *_: object) -> None:
        """Let go of the connections."""

    @abstractmethod
    async def alone(self, count: int) -> float:
        """What ``count`` GETs of an operation take, one after another."""

    @abstractmethod
    async def at_once(self, count: int) -> float:
        """What ``count`` times 50 GETs at once take."""

    @abstractmethod
    async def pages(self, count: int) -> float:
        """What ``count`` times the first page takes, until it is objects."""

    @abstractmethod
    async def held(self) -> Held:
        """What the whole list takes, in a process that has not had it before."""


class Pager(Contender):
    """One that can go through a whole list."""

    @abstractmethod
    async def paging(self, pause: float) -> float:
        """What all pages take where whoever consumes them takes ``pause`` for each."""


class Concurrent(Pager):
    """One that runs on the event loop."""

    @abstractmethod
    async def get(self) -> object:
        """One operation."""

    @abstractmethod
    async def page(self, cursor: str | None = None) -> tuple[Sequence[object], str | None]:
        """A page of 1,000 operations, and the cursor of the next."""

    async def all_pages(self) -> AsyncIterator[Sequence[object]]:
        """The pages of the list, each asked for when it is wanted."""
        operations, cursor = await self.page()
        while operations:
            yield operations
            operations, cursor = await self.page(cursor)

    async def held(self) -> Held:
        """See Contender."""
        await self.page()
        before = resident_megabytes()
        records = [record async for page in self.all_pages() for record in page]
        return Held(len(records), resident_megabytes() - before)

    async def paging(self, pause: float) -> float:
        """See Pager."""
        began = time.perf_counter()
        async for _ in self.all_pages():
            if pause:
                await asyncio.sleep(pause)
        return time.perf_counter() - began

    async def alone(self, count: int) -> float:
        """See Contender."""
        began = time.perf_counter()
        for _ in range(count):
            await self.get()
        return time.perf_counter() - began

    async def at_once(self, count: int) -> float:
        """See Contender."""
        began = time.perf_counter()
        for _ in range(count):
            await asyncio.gather(*(self.get() for _ in range(AT_ONCE)))
        return time.perf_counter() - began

    async def pages(self, count: int) -> float:
        """See Contender."""
        began = time.perf_counter()
        for _ in range(count):
            await self.page()
        return time.perf_counter() - began


def resident_megabytes() -> float:
    """What this process has in memory (Linux)."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
