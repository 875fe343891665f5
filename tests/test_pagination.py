"""Paginator, with a fetch in memory."""

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

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
    """Serves pages by the cursor that leads to them; an exception is raised in place of a page."""

    def __init__(self, pages: dict[str | None, Page[str] | Exception]) -> None:
        self._pages = pages
        self.asked: list[str | None] = []

    async def __call__(self, cursor: str | None) -> Page[str]:
        self.asked.append(cursor)
        await asyncio.sleep(0)
        found = self._pages[cursor]
        if isinstance(found, Exception):
            raise found
        return found

    @property
    def paginator(self) -> Paginator[str]:
        return Paginator(self, key=lambda item: item)


def three() -> Pages:
    return Pages({None: page("ab", "1"), "1": page("cd", "2"), "2": page("ef")})


async def settle() -> None:
    """Let everything run that can."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_records_come_in_order() -> None:
    assert [item async for item in three().paginator] == list("abcdef")


async def test_pages_come_as_lists() -> None:
    assert [items async for items in three().paginator.pages()] == [
        ["a", "b"],
        ["c", "d"],
        ["e", "f"],
    ]


async def test_making_a_paginator_sends_nothing() -> None:
    pages = three()
    pages.paginator.pages()
    await settle()
    assert pages.asked == []


async def test_each_iteration_begins_anew() -> None:
    pages = three()
    paginator = pages.paginator
    assert await paginator.collect() == await paginator.collect() == list("abcdef")
    assert pages.asked == [None, "1", "2"] * 2


async def test_iterations_at_the_same_time_do_not_disturb_each_other() -> None:
    paginator = three().paginator
    whole, part = await asyncio.gather(paginator.collect(), paginator.collect(3))
    assert (whole, part) == (list("abcdef"), list("abc"))


@pytest.mark.parametrize(
    "end",
    [
        None,
        Pagination(),
        Pagination(cursor=""),
        Pagination(cursor="", next=""),
        Pagination(sort_by="name"),
        Pagination(cursor="1"),
    ],
)
async def test_the_end_by_cursor(end: Pagination | None) -> None:
    pages = Pages({None: page("ab", "1"), "1": Page(["c"], end)})
    assert await pages.paginator.collect() == list("abc")
    assert pages.asked == [None, "1"]


async def test_the_end_by_an_empty_page_with_a_cursor() -> None:
    pages = Pages({None: page("ab", "1"), "1": page("", "2")})
    assert await pages.paginator.collect() == list("ab")
    assert pages.asked == [None, "1"]


async def test_nothing_at_all() -> None:
    pages = Pages({None: page("", "1")})
    assert await pages.paginator.collect() == []
    assert [items async for items in pages.paginator.pages()] == []
    assert pages.asked == [None, None]


async def test_a_cursor_that_comes_back_later_ends_the_list() -> None:
    pages = Pages({None: page("a", "1"), "1": page("b", "2"), "2": page("c", "1")})
    assert await pages.paginator.collect() == list("abc")
    assert pages.asked == [None, "1", "2"]


async def test_a_short_page_is_not_the_end() -> None:
    pages = Pages({None: page("abc", "1"), "1": page("d", "2"), "2": page("efg")})
    assert await pages.paginator.collect() == list("abcdefg")


async def test_either_style_of_cursor_leads_on() -> None:
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


async def test_a_page_of_repeats_is_neither_yielded_nor_the_end() -> None:
    pages = Pages({None: page("ab", "1"), "1": page("ba", "2"), "2": page("c")})
    assert [items async for items in pages.paginator.pages()] == [["a", "b"], ["c"]]


async def test_exactly_one_page_is_fetched_ahead() -> None:
    pages = three()
    async with aclosing(pages.paginator.pages()) as iterator:
        await anext(iterator)
        await settle()
        assert pages.asked == [None, "1"]
        await anext(iterator)
        await settle()
        assert pages.asked == [None, "1", "2"]


async def test_the_page_ahead_is_asked_for_while_this_one_is_consumed() -> None:
    pages = three()
    async with aclosing(pages.paginator.pages()) as iterator:
        await anext(iterator)
        for _ in range(2):
            await asyncio.sleep(0)
        assert pages.asked == [None, "1"]


@pytest.mark.parametrize(
    ("limit", "asked"),
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
async def test_collect_sends_no_request_beyond_need(limit: int, asked: list[str | None]) -> None:
    pages = three()
    assert await pages.paginator.collect(limit) == list("abcdef")[:limit]
    await settle()
    assert pages.asked == asked


async def test_repeats_do_not_count_towards_the_limit() -> None:
    pages = Pages({None: page("aa", "1"), "1": page("ab", "2"), "2": page("c")})
    assert await pages.paginator.collect(2) == list("ab")
    assert pages.asked == [None, "1"]


async def test_a_negative_limit_is_refused() -> None:
    pages = three()
    with pytest.raises(ValueError, match="limit is -1"):
        await pages.paginator.collect(-1)
    assert pages.asked == []


async def test_an_error_ahead_surfaces_only_when_it_is_reached() -> None:
    pages = Pages({None: page("ab", "1"), "1": LookupError("gone")})
    seen: list[str] = []
    with pytest.raises(LookupError, match="gone"):
        async for item in pages.paginator:
            await settle()
            seen.append(item)
    assert seen == ["a", "b"]


async def test_an_error_ahead_that_is_never_reached_is_of_no_interest() -> None:
    pages = Pages({None: page("ab", "1"), "1": LookupError("gone")})
    assert await pages.paginator.collect(2) == ["a", "b"]
    async with aclosing(pages.paginator.pages()) as iterator:
        assert await anext(iterator) == ["a", "b"]
        await settle()


async def test_an_error_ahead_that_nobody_asked_for_is_not_reported() -> None:
    reports: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, told: reports.append(told))
    paginator = Pages({None: page("ab", "1"), "1": LookupError("gone")}).paginator
    async with aclosing(paginator.pages()) as iterator:
        await anext(iterator)
        await settle()
    del iterator
    gc.collect()
    await settle()
    assert reports == []


async def test_after_an_error_a_new_iteration_may_succeed() -> None:
    found: dict[str | None, Page[str] | Exception] = {None: LookupError("gone")}
    paginator = Pages(found).paginator
    with pytest.raises(LookupError):
        await paginator.collect()
    found[None] = page("a")
    assert await paginator.collect() == ["a"]


class Stuck:
    """Serves one page, and never the next."""

    def __init__(self) -> None:
        self.under_way = 0

    async def __call__(self, cursor: str | None) -> Page[str]:
        if cursor is None:
            return page("ab", "1")
        self.under_way += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.under_way -= 1
        raise AssertionError


async def test_closing_the_pages_ends_the_request_under_way() -> None:
    stuck = Stuck()
    async with aclosing(Paginator(stuck, key=str).pages()) as iterator:
        await anext(iterator)
        await settle()
        assert stuck.under_way == 1
    assert stuck.under_way == 0


async def test_breaking_out_leaves_no_request_and_no_task() -> None:
    stuck = Stuck()
    async for _ in Paginator(stuck, key=str):
        await settle()
        assert stuck.under_way == 1
        break
    await settle()
    assert stuck.under_way == 0
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_cancelling_the_consumer_ends_the_request_under_way() -> None:
    stuck = Stuck()
    consumer = asyncio.create_task(Paginator(stuck, key=str).collect())
    await settle()
    assert stuck.under_way == 1
    consumer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await consumer
    assert stuck.under_way == 0


@pytest.mark.virtual_time
async def test_a_timeout_around_works() -> None:
    stuck = Stuck()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(5):
            await Paginator(stuck, key=str).collect()
    assert stuck.under_way == 0


Record = tuple[int, str]
"""When it was made, and its id."""


class Growing:
    """A list, newest first, to whose front records are added before each answer.

    The cursor is the position of the last record: its time and id, or its time alone, in which
    case those of the same time come again.
    """

    def __init__(self, times: Sequence[int], limit: int, arriving: Sequence[int]) -> None:
        self._limit = limit
        self._arriving = list(arriving)
        self.records = sorted(((at, f"old-{n}") for n, at in enumerate(times)), reverse=True)
        self.initial = list(self.records)
        self.requests = 0

    async def __call__(self, cursor: str | None) -> Page[Record]:
        newest = self.records[0][0] if self.records else 0
        if cursor is not None and self._arriving:
            for number in range(self._arriving.pop()):
                # Some in the very instant of the newest, as a create-branch request does.
                self.records.insert(0, (newest + number % 2, f"young-{self.requests}-{number}"))
            self.records.sort(reverse=True)
        self.requests += 1
        rest = self.records
        if cursor is not None:
            at, id = json.loads(cursor)
            rest = [record for record in rest if record < (at, id)]
        items = rest[: self._limit]
        last = json.dumps(items[-1]) if items else None
        return Page(items, Pagination(cursor=last))


@given(
    times=st.lists(st.integers(0, 5), max_size=25),
    limit=st.integers(1, 7),
    arriving=st.lists(st.integers(0, 5), max_size=10),
)
async def test_what_existed_at_the_start_comes_once_and_newest_first(
    times: list[int], limit: int, arriving: list[int]
) -> None:
    growing = Growing(times, limit, arriving)
    seen = [record async for record in Paginator(growing, key=lambda record: record[1])]
    assert [record for record in seen if record[1].startswith("old")] == growing.initial
    assert len(seen) == len(set(seen))
    assert growing.requests <= len(growing.records) // limit + 2


@given(
    count=st.integers(0, 25),
    limit=st.integers(1, 7),
    arriving=st.lists(st.integers(0, 3), max_size=10),
)
async def test_pages_counted_by_place_repeat_nothing_and_skip_nothing(
    count: int, limit: int, arriving: list[int]
) -> None:
    initial = [f"old-{number}" for number in range(count)]
    records = list(initial)
    remaining = list(arriving)

    async def fetch(cursor: str | None) -> Page[str]:
        if cursor is not None and remaining:
            records[:0] = [f"new-{len(remaining)}-{n}" for n in range(remaining.pop())]
        start = int(cursor or 0)
        return Page(records[start : start + limit], Pagination(cursor=str(start + limit)))

    seen = await Paginator(fetch, key=str).collect()
    assert [record for record in seen if record.startswith("old")] == initial
    assert len(seen) == len(set(seen))
