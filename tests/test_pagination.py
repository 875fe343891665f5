"""Paginator, with pages in memory."""

import asyncio
import gc
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import Paginator
from neonctl_async.pagination import Page
from neonctl_async.types import Pagination

Fetch = Callable[[str | None], Awaitable[Page[str]]]


def page(items: str, cursor: str | None = None) -> Page[str]:
    return Page(list(items), Pagination(cursor=cursor))


class Pages:
    """Returns pages by cursor, and records the cursors. Raises an exception in place of a page."""

    def __init__(self, pages: dict[str | None, Page[str] | Exception]) -> None:
        self._pages = pages
        self.cursors: list[str | None] = []

    async def __call__(self, cursor: str | None) -> Page[str]:
        self.cursors.append(cursor)
        await asyncio.sleep(0)
        page = self._pages[cursor]
        if isinstance(page, Exception):
            raise page
        return page

    @property
    def paginator(self) -> Paginator[str]:
        return Paginator(self, key=lambda item: item)


def three_pages() -> Pages:
    return Pages({None: page("ab", "1"), "1": page("cd", "2"), "2": page("ef")})


async def run_ready_tasks() -> None:
    """Let all ready tasks run."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_records_are_yielded_in_order() -> None:
    assert [item async for item in three_pages().paginator] == list("abcdef")


async def test_pages_are_yielded_as_lists() -> None:
    pages = [items async for items in three_pages().paginator.pages()]
    assert pages == [["a", "b"], ["c", "d"], ["e", "f"]]


async def test_paginator_sends_no_request_before_iteration() -> None:
    pages = three_pages()
    pages.paginator.pages()
    await run_ready_tasks()
    assert pages.cursors == []


async def test_each_iteration_starts_at_the_first_page() -> None:
    pages = three_pages()
    paginator = pages.paginator
    assert await paginator.collect() == await paginator.collect() == list("abcdef")
    assert pages.cursors == [None, "1", "2"] * 2


async def test_concurrent_iterations_are_independent() -> None:
    paginator = three_pages().paginator
    whole, part = await asyncio.gather(paginator.collect(), paginator.collect(3))
    assert (whole, part) == (list("abcdef"), list("abc"))


@pytest.mark.parametrize(
    "last",
    [
        None,
        Pagination(),
        Pagination(cursor=""),
        Pagination(cursor="", next=""),
        Pagination(sort_by="name"),
        Pagination(cursor="1"),
    ],
)
async def test_missing_empty_or_repeated_cursor_ends_the_list(last: Pagination | None) -> None:
    pages = Pages({None: page("ab", "1"), "1": Page(["c"], last)})
    assert await pages.paginator.collect() == list("abc")
    assert pages.cursors == [None, "1"]


async def test_empty_page_with_a_cursor_ends_the_list() -> None:
    pages = Pages({None: page("ab", "1"), "1": page("", "2")})
    assert await pages.paginator.collect() == list("ab")
    assert pages.cursors == [None, "1"]


async def test_empty_list_has_no_pages() -> None:
    pages = Pages({None: page("", "1")})
    assert await pages.paginator.collect() == []
    assert [items async for items in pages.paginator.pages()] == []
    assert pages.cursors == [None, None]


async def test_cursor_that_was_already_used_ends_the_list() -> None:
    pages = Pages({None: page("a", "1"), "1": page("b", "2"), "2": page("c", "1")})
    assert await pages.paginator.collect() == list("abc")
    assert pages.cursors == [None, "1", "2"]


async def test_short_page_does_not_end_the_list() -> None:
    pages = Pages({None: page("abc", "1"), "1": page("d", "2"), "2": page("efg")})
    assert await pages.paginator.collect() == list("abcdefg")


async def test_cursor_and_next_both_lead_to_the_next_page() -> None:
    pages = Pages(
        {
            None: Page(["a"], Pagination(next="n")),
            "n": Page(["b"], Pagination(cursor="", next="m")),
            "m": Page(["c"], Pagination(cursor="c", next="")),
            "c": page("d"),
        }
    )
    assert await pages.paginator.collect() == list("abcd")


async def test_repeated_records_are_yielded_once() -> None:
    pages = Pages({None: page("aba", "1"), "1": page("bc", "2"), "2": page("cad")})
    assert await pages.paginator.collect() == list("abcd")


async def test_only_page_is_yielded_without_comparing_its_records() -> None:
    async def fetch(_cursor: str | None) -> Page[str]:
        return page("abc")

    def fail(_item: str) -> str:
        raise AssertionError

    assert await Paginator(fetch, key=fail).collect() == ["a", "b", "c"]


async def test_page_of_repeated_records_is_skipped() -> None:
    pages = Pages({None: page("ab", "1"), "1": page("ba", "2"), "2": page("c")})
    assert [items async for items in pages.paginator.pages()] == [["a", "b"], ["c"]]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="new in Python 3.12")
@pytest.mark.virtual_time  # uvloop 0.23 cannot create eager tasks
async def test_caller_that_stops_causes_no_further_request_even_with_eager_tasks() -> None:
    if sys.version_info >= (3, 12):  # for the type checkers
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    pages = three_pages()
    async with aclosing(pages.paginator.pages()) as iterator:
        await anext(iterator)
    await run_ready_tasks()
    assert pages.cursors == [None]


async def test_exactly_one_page_is_fetched_ahead() -> None:
    pages = three_pages()
    async with aclosing(pages.paginator.pages()) as iterator:
        await anext(iterator)
        await run_ready_tasks()
        assert pages.cursors == [None, "1"]
        await anext(iterator)
        await run_ready_tasks()
        assert pages.cursors == [None, "1", "2"]


async def test_next_page_is_requested_while_the_current_one_is_processed() -> None:
    pages = three_pages()
    async with aclosing(pages.paginator.pages()) as iterator:
        await anext(iterator)
        for _ in range(2):
            await asyncio.sleep(0)
        assert pages.cursors == [None, "1"]


@pytest.mark.parametrize(
    ("limit", "cursors"),
    [
        (0, []),
        (1, [None]),
        (2, [None]),
        (3, [None, "1"]),
        (4, [None, "1"]),
        (5, [None, "1", "2"]),
        (6, [None, "1", "2"]),
        (99, [None, "1", "2"]),
    ],
)
async def test_collect_sends_only_the_requests_it_needs(
    limit: int, cursors: list[str | None]
) -> None:
    pages = three_pages()
    assert await pages.paginator.collect(limit) == list("abcdef")[:limit]
    await run_ready_tasks()
    assert pages.cursors == cursors


async def test_repeated_records_do_not_count_towards_the_limit() -> None:
    pages = Pages({None: page("aa", "1"), "1": page("ab", "2"), "2": page("c")})
    assert await pages.paginator.collect(2) == list("ab")
    assert pages.cursors == [None, "1"]


async def test_negative_limit_is_refused() -> None:
    pages = three_pages()
    with pytest.raises(ValueError, match="limit is -1"):
        await pages.paginator.collect(-1)
    assert pages.cursors == []


async def test_error_of_the_next_page_is_raised_when_that_page_is_due() -> None:
    pages = Pages({None: page("ab", "1"), "1": LookupError("gone")})
    seen: list[str] = []
    with pytest.raises(LookupError, match="gone"):
        async for item in pages.paginator:
            await run_ready_tasks()
            seen.append(item)
    assert seen == ["a", "b"]


async def test_error_of_a_page_that_is_not_needed_is_not_raised() -> None:
    pages = Pages({None: page("ab", "1"), "1": LookupError("gone")})
    assert await pages.paginator.collect(2) == ["a", "b"]
    async with aclosing(pages.paginator.pages()) as iterator:
        assert await anext(iterator) == ["a", "b"]
        await run_ready_tasks()


async def test_error_of_a_page_that_is_not_needed_is_not_logged_by_asyncio() -> None:
    reports: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: reports.append(context))
    paginator = Pages({None: page("ab", "1"), "1": LookupError("gone")}).paginator
    async with aclosing(paginator.pages()) as iterator:
        await anext(iterator)
        await run_ready_tasks()
    del iterator
    gc.collect()
    await run_ready_tasks()
    assert reports == []


async def test_iteration_after_an_error_can_succeed() -> None:
    responses: dict[str | None, Page[str] | Exception] = {None: LookupError("gone")}
    paginator = Pages(responses).paginator
    with pytest.raises(LookupError):
        await paginator.collect()
    responses[None] = page("a")
    assert await paginator.collect() == ["a"]


class Hanging:
    """Returns the first page, and hangs on the second."""

    def __init__(self) -> None:
        self.in_flight = 0

    async def __call__(self, cursor: str | None) -> Page[str]:
        if cursor is None:
            return page("ab", "1")
        self.in_flight += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.in_flight -= 1
        raise AssertionError


async def test_closing_the_iterator_cancels_the_pending_request() -> None:
    hanging = Hanging()
    async with aclosing(Paginator(hanging, key=str).pages()) as iterator:
        await anext(iterator)
        await run_ready_tasks()
        assert hanging.in_flight == 1
    assert hanging.in_flight == 0


async def test_closing_the_iterator_of_records_cancels_the_pending_request() -> None:
    hanging = Hanging()
    records: Any = aiter(Paginator(hanging, key=str))
    async with aclosing(records):
        assert await anext(records) == "a"
        await run_ready_tasks()
        assert hanging.in_flight == 1
    assert hanging.in_flight == 0
    with pytest.raises(StopAsyncIteration):
        await anext(records)


async def test_leaving_the_loop_leaves_no_request_and_no_task() -> None:
    hanging = Hanging()
    async for _ in Paginator(hanging, key=str):
        await run_ready_tasks()
        assert hanging.in_flight == 1
        break
    await run_ready_tasks()
    assert hanging.in_flight == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_cancelling_the_consumer_cancels_the_pending_request() -> None:
    hanging = Hanging()
    consumer = asyncio.create_task(Paginator(hanging, key=str).collect())
    await run_ready_tasks()
    assert hanging.in_flight == 1
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert hanging.in_flight == 0


async def test_closing_the_iterator_in_a_cancelled_scope_leaves_no_request() -> None:
    is_sent, is_over = asyncio.Event(), asyncio.Event()

    async def fetch(cursor: str | None) -> Page[str]:
        if cursor is None:
            return page("ab", "1")
        is_sent.set()
        try:
            await asyncio.Event().wait()
        finally:
            await run_ready_tasks()
            is_over.set()
        raise AssertionError("the request is never answered")

    with anyio.CancelScope() as scope:
        async with aclosing(Paginator(fetch, key=lambda item: item).pages()) as pages:
            async for _ in pages:
                await is_sent.wait()
                scope.cancel()
                await anyio.sleep_forever()
    assert is_over.is_set()


@pytest.mark.virtual_time
async def test_timeout_around_an_iteration_cancels_the_pending_request() -> None:
    hanging = Hanging()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await Paginator(hanging, key=str).collect()
    assert hanging.in_flight == 0


Record = tuple[int, str]
"""The creation time of a record, and its id."""


class GrowingList:
    """A list, newest first, that gets new records at its front before each response.

    The cursor is the creation time and the id of the last record of a page.
    """

    def __init__(self, times: Sequence[int], limit: int, new_counts: Sequence[int]) -> None:
        self._limit = limit
        self._new_counts = list(new_counts)
        self.records = sorted(((at, f"old-{n}") for n, at in enumerate(times)), reverse=True)
        self.initial = list(self.records)
        self.requests = 0

    async def __call__(self, cursor: str | None) -> Page[Record]:
        newest = self.records[0][0] if self.records else 0
        if cursor is not None and self._new_counts:
            for number in range(self._new_counts.pop()):
                # Every second record has the same time as the newest one, as for a new branch.
                self.records.insert(0, (newest + number % 2, f"recent-{self.requests}-{number}"))
            self.records.sort(reverse=True)
        self.requests += 1
        remaining = self.records
        if cursor is not None:
            at, id = json.loads(cursor)
            remaining = [record for record in remaining if record < (at, id)]
        items = remaining[: self._limit]
        last = json.dumps(items[-1]) if items else None
        return Page(items, Pagination(cursor=last))


@given(
    times=st.lists(st.integers(0, 5), max_size=25),
    limit=st.integers(1, 7),
    new_counts=st.lists(st.integers(0, 5), max_size=10),
)
async def test_records_that_existed_at_the_start_are_yielded_once_and_in_order(
    times: list[int], limit: int, new_counts: list[int]
) -> None:
    growing = GrowingList(times, limit, new_counts)
    seen = [record async for record in Paginator(growing, key=lambda record: record[1])]
    assert [record for record in seen if record[1].startswith("old")] == growing.initial
    assert len(seen) == len(set(seen))
    assert growing.requests <= len(growing.records) // limit + 2


@given(st.integers(0, 25), st.integers(1, 7), st.lists(st.integers(0, 3), max_size=10))
async def test_list_with_offset_cursors_repeats_and_skips_no_record(
    count: int, limit: int, new_counts: list[int]
) -> None:
    initial = [f"old-{number}" for number in range(count)]
    records = list(initial)
    remaining = list(new_counts)

    async def fetch(cursor: str | None) -> Page[str]:
        if cursor is not None and remaining:
            records[:0] = [f"new-{len(remaining)}-{n}" for n in range(remaining.pop())]
        start = int(cursor or 0)
        return Page(records[start : start + limit], Pagination(cursor=str(start + limit)))

    seen = await Paginator(fetch, key=str).collect()
    assert [record for record in seen if record.startswith("old")] == initial
    assert len(seen) == len(set(seen))
