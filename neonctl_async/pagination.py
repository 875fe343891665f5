"""Paginator: a list endpoint as an async iterable."""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import aclosing
from typing import Generic, TypeVar

import msgspec

from neonctl_async.models.base import Pagination

T = TypeVar("T")


class Page(msgspec.Struct, Generic[T], frozen=True):
    """What one request of a listing brought, and where the next page begins."""

    items: list[T]
    pagination: Pagination | None

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page: ``cursor`` or ``next``, by endpoint. None at the end."""
        if self.pagination is None or not self.items:
            return None
        return self.pagination.following


class Paginator(Generic[T]):
    """All records of a list endpoint, page by page as they are consumed.

    ``async for record in paginator`` yields each record once, even if records arrive at the front
    meanwhile or the platform repeats some at the seam of two pages. Each iteration begins anew.
    The page after the one being consumed is fetched ahead, never more than one.

    The end is an empty page, a missing or empty cursor, or a cursor seen before; a page shorter
    than asked for is not the end. Raises what the request raises.

    Leaving a loop early drops the request under way as soon as the iterator is collected; to wait
    until it is gone, iterate within ``contextlib.aclosing(paginator.pages())``.
    """

    def __init__(
        self,
        fetch: Callable[[str | None], Awaitable[Page[T]]],
        key: Callable[[T], Hashable],
    ) -> None:
        self._fetch = fetch
        self._key = key

    async def __aiter__(self) -> AsyncGenerator[T]:
        async with aclosing(self.pages()) as pages:
            async for page in pages:
                for record in page:
                    yield record

    def pages(self) -> AsyncGenerator[list[T]]:
        """The records as they come, a list a page; no list is empty."""
        return self._pages(math.inf)

    async def collect(self, limit: int | None = None) -> list[T]:
        """The records as a list, at most ``limit`` of them, with no request beyond those needed.

        Raises ValueError for a negative ``limit``.
        """
        if limit is not None and limit < 0:
            raise ValueError(f"limit is {limit}: expected 0 or more, or None for all")
        if limit == 0:
            return []
        records: list[T] = []
        async with aclosing(self._pages(math.inf if limit is None else limit)) as pages:
            async for page in pages:
                records += page
        return records[:limit]

    async def _pages(self, wanted: float) -> AsyncGenerator[list[T]]:
        seen: set[Hashable] = set()
        cursors: set[str] = set()
        page = await self._fetch(None)
        while True:
            fresh = self._unseen(page.items, seen)
            cursor = page.next_cursor
            if cursor is None or cursor in cursors or len(seen) >= wanted:
                if fresh:
                    yield fresh
                return
            cursors.add(cursor)
            ahead = asyncio.ensure_future(self._fetch(cursor))
            try:
                if fresh:
                    yield fresh
                page = await ahead
            finally:
                await _drop(ahead)

    def _unseen(self, records: list[T], seen: set[Hashable]) -> list[T]:
        fresh: list[T] = []
        for record in records:
            key = self._key(record)
            if key not in seen:
                seen.add(key)
                fresh.append(record)
        return fresh


async def _drop(task: "asyncio.Future[Page[T]]") -> None:
    """End a request that nobody waits for any more; its outcome is of no interest."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
