"""Paginator: the records of a list endpoint as an async iterable."""

import asyncio
import logging
import math
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Hashable,
    Iterator,
    Sequence,
)
from collections.abc import Set as AbstractSet
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, Generic, NoReturn, Self, TypeVar

import anyio
import msgspec

from neonctl_async._internal import shorten
from neonctl_async.models.base import Pagination

T = TypeVar("T")

_LOGGED: Final = 10
"""The maximum number of ids in a log message."""
MAX_REPEATED: Final = 100
"""After this many pages in a row without a new record, the API is assumed to ignore the cursor."""

_logger = logging.getLogger(__name__)

_USAGE = (
    "write `async for record in …` for one record after another, or `await ….collect()` for a list "
    "of all records; `…` is the call of the method, such as neon.projects.list()"
)


class Page(msgspec.Struct, Generic[T], frozen=True):
    """The records of one list request, and the cursor of the next page."""

    items: list[T]
    pagination: Pagination | None
    unavailable_project_ids: Sequence[str] = ()
    """The projects of this page that Neon could not read in time."""
    is_truncated: bool = False
    """True if the API states that there are more records, even after an empty page."""

    @property
    def next_cursor(self) -> str | None:
        """The cursor of the next page (``cursor`` or ``next``), or None at the end."""
        has_more = self.is_truncated or self.items or self.unavailable_project_ids
        if self.pagination is None or not has_more:
            return None
        return self.pagination.next_cursor


class Paginator(Generic[T]):
    """All records of a list endpoint, fetched page by page during iteration.

    ``async for record in paginator`` yields each record once, even if new records arrive at the
    front or the API repeats records on the next page. Each iteration starts at the first page.
    While you process a page, the next one is fetched, but no more than that.

    Iteration stops at an empty page, at a missing or empty cursor, or at a cursor that was already
    used. It also stops after 100 pages in a row without a new record, because the API is then
    assumed to ignore the cursor. A short page is not necessarily the last one. If fetching a page
    fails, the error is raised when iteration reaches that page.

    If you leave a loop early, the pending request is cancelled when Python collects the iterator.
    To cancel it at once, iterate within ``contextlib.aclosing(paginator.pages())``.
    """

    def __init__(
        self,
        fetch: Callable[[str | None], Awaitable[Page[T]]],
        key: Callable[[T], Hashable],
    ) -> None:
        self._fetch = fetch
        self._key = key
        self._unavailable: dict[str, None] = {}

    @property
    def unavailable_project_ids(self) -> Sequence[str]:
        """The ids of the projects that are missing from the pages read so far.

        Neon could not read them in time. Call ``projects.get`` for each, or list again with a
        longer ``timeout``. The ids come from the latest iteration. Only lists of projects can be
        incomplete in this way.
        """
        return tuple(self._unavailable)

    def __aiter__(self) -> AsyncIterator[T]:
        return _Records(self.pages())

    def pages(self) -> AsyncGenerator[list[T]]:
        """Yield one non-empty list per page."""
        return self._pages(math.inf)

    async def collect(self, limit: int | None = None) -> list[T]:
        """Return up to ``limit`` records as a list, with no more requests than needed.

        Raises ValueError for a negative ``limit``, and TypeError unless it is an int or None.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
            raise TypeError(f"limit is {shorten(limit)}: expected an int, or None for all")
        if limit is not None and limit < 0:
            raise ValueError(f"limit is {limit}: expected 0 or more, or None for all")
        if limit == 0:
            return []
        records: list[T] = []
        async with aclosing(self._pages(math.inf if limit is None else limit)) as pages:
            async for page in pages:
                records += page
        return records[:limit]

    if not TYPE_CHECKING:  # a type checker reports these mistakes itself

        def __await__(self) -> NoReturn:
            raise TypeError(f"a list is not awaited: {_USAGE}")

        def __iter__(self) -> NoReturn:
            raise TypeError(f"a plain 'for' cannot iterate over a list: {_USAGE}")

        def __getitem__(self, index: object) -> NoReturn:
            raise TypeError(f"a list has no index: {_USAGE}")

        async def __aenter__(self) -> NoReturn:
            raise TypeError(f"a list is not entered with 'async with': {_USAGE}")

        async def __aexit__(self, *_: object) -> None: ...

    async def _pages(self, limit: float) -> AsyncGenerator[list[T]]:
        seen: set[Hashable] = set()
        cursors: set[str] = set()
        unavailable = self._unavailable = {}
        repeated = 0
        page = await self._fetch(None)
        if page.items and page.next_cursor is None:
            _note_unavailable(page, seen, unavailable)
            yield page.items  # a single page does not repeat records
            return
        while True:
            records = self._unseen(page.items, seen)
            _note_unavailable(page, seen, unavailable)
            repeated = 0 if records else repeated + 1
            cursor = page.next_cursor
            is_last = cursor is None or cursor in cursors or repeated == MAX_REPEATED
            if cursor is None or is_last or len(seen) >= limit:
                if records:
                    yield records
                return
            cursors.add(cursor)
            next_page = asyncio.ensure_future(self._prefetch(cursor))
            try:
                if records:
                    yield records
                page = await next_page
            finally:
                await _discard(next_page)

    async def _prefetch(self, cursor: str) -> Page[T]:
        # A caller that stops at a page causes no further request, even with an eager task factory.
        await asyncio.sleep(0)
        return await self._fetch(cursor)

    def _unseen(self, records: list[T], seen: set[Hashable]) -> list[T]:
        keys = {self._key(record) for record in records}
        if len(keys) == len(records) and seen.isdisjoint(keys):
            seen |= keys
            return records
        unseen: list[T] = []
        for record in records:
            key = self._key(record)
            if key not in seen:
                seen.add(key)
                unseen.append(record)
        return unseen


def _note_unavailable(
    page: Page[T], seen: AbstractSet[Hashable], unavailable: dict[str, None]
) -> None:
    """Add the projects missing from ``page``, and remove those that any page has contained."""
    ids = page.unavailable_project_ids
    if ids:
        shown = ", ".join(ids[:_LOGGED]) + (", …" if len(ids) > _LOGGED else "")
        _logger.warning(
            "a list lacks %d projects that Neon could not read in time: %s", len(ids), shown
        )
        unavailable |= dict.fromkeys(ids)
    for id in [id for id in unavailable if id in seen]:
        del unavailable[id]


class _Records(Generic[T]):
    """Iterates over the records of all pages. A generator would take 70 % longer per record."""

    __slots__ = ("_page", "_pages")

    def __init__(self, pages: AsyncGenerator[list[T]]) -> None:
        self._pages = pages
        self._page: Iterator[T] = iter(())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        while True:
            for record in self._page:
                return record
            self._page = iter(await anext(self._pages))

    async def aclose(self) -> None:
        """Cancel the pending request, if any."""
        self._page = iter(())
        await self._pages.aclose()


async def _discard(task: "asyncio.Future[Page[T]]") -> None:
    """Cancel a request that is no longer needed, and ignore its result."""
    if not task.done():
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
    if not task.cancelled():
        task.exception()  # else asyncio reports an exception that was never retrieved
