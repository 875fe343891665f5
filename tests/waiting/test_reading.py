"""How far back the list is read for the operations that are awaited, and what is read by id."""

import asyncio

import pytest

from neonctl_async import NeonClient, OperationRef, PollPolicy, RateBudget
from tests.support.platform import Platform
from tests.support.records import client_of, operation, ref
from tests.support.server import http_response

pytestmark = pytest.mark.virtual_time


def start(platform: Platform, name: str, count: int, ends: float = 0.0) -> list[OperationRef]:
    """Add so many operations, the newest last."""
    for number in range(count):
        platform.start(f"{name}-{number}", ends=ends)
    return [ref(f"{name}-{number}") for number in range(count)]


async def look_once(neon: NeonClient, refs: list[OperationRef]) -> None:
    await neon.operations.wait(refs, timeout=1)


async def look_each_second(platform: Platform, refs: list[OperationRef]) -> None:
    """Wait until all have ended."""
    polls = PollPolicy.constant(1.0)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        await neon.operations.wait(refs)


async def test_a_page_holds_a_thousand_at_the_most() -> None:
    platform = Platform()
    refs = start(platform, "a", 995)
    async with platform.server, client_of(platform.server) as neon:
        await look_once(neon, refs)
    assert platform.pages == [1000]


async def test_more_than_a_page_holds_are_read_page_by_page_and_none_by_id() -> None:
    platform = Platform()
    refs = start(platform, "a", 2500)
    async with platform.server, client_of(platform.server) as neon:
        await look_once(neon, refs)
    assert platform.pages == [1000, 1000, 510]
    assert platform.gets == 0


async def test_reading_stops_where_all_have_been_found() -> None:
    platform = Platform()
    start(platform, "older", 3000)
    refs = start(platform, "a", 1100)
    async with platform.server, client_of(platform.server) as neon:
        await look_once(neon, refs)
    assert platform.pages == [1000, 110]


async def test_no_page_is_read_past_the_one_that_held_the_last() -> None:
    platform = Platform()
    start(platform, "older", 2000)
    refs = start(platform, "a", 2, ends=20.0)
    newer = start(platform, "newer", 1500)
    reading = asyncio.create_task(look_each_second(platform, refs))
    await asyncio.sleep(15.5)
    assert platform.pages[-2:] == [1000, 512]
    platform.hidden = {one.id for one in newer}
    await reading
    assert platform.pages[-5:] == [1000, 12, 12, 12, 12]


async def test_those_pushed_back_by_others_are_reached_by_reading_deeper() -> None:
    platform = Platform()
    refs = start(platform, "a", 3, ends=4.5)
    start(platform, "newer", 60)
    await look_each_second(platform, refs)
    # By id until the pages, twice as long each time, reach them.
    assert platform.pages[:3] == [13, 26, 52]
    assert platform.gets == 9
    assert platform.pages[3] == 104
    assert set(platform.pages[4:]) == {63 + 10}


async def test_no_more_pages_are_read_than_reading_by_id_would_cost() -> None:
    platform = Platform()
    refs = start(platform, "a", 2, ends=9.0)
    start(platform, "newer", 5000)
    await look_each_second(platform, refs)
    assert platform.pages[-4:] == [1000, 1000, 1000, 1000]
    polls = 10
    assert platform.gets == 2 * polls
    assert len(platform.pages) <= 2 * polls


async def test_a_page_that_fails_is_no_reason_to_read_by_id() -> None:
    platform = Platform()
    refs = start(platform, "a", 1500, ends=3.0)
    platform.fault = lambda request: http_response(503) if "cursor=" in request.target else None
    async with (
        platform.server,
        client_of(platform.server, polling=PollPolicy.constant(1.0)) as neon,
    ):
        wait = asyncio.create_task(neon.operations.wait(refs))
        await asyncio.sleep(10)
        assert not wait.done()
        assert platform.gets == 0
        platform.fault = lambda _request: None
        await wait
    assert platform.gets == 0


async def test_ends_that_one_page_tells_are_told_soonest_first() -> None:
    platform = Platform()
    for id, ends in {"a": 3.0, "b": 1.0, "c": 2.0}.items():
        platform.start(id, ends=ends)
    async with (
        platform.server,
        client_of(platform.server, polling=PollPolicy.constant(5.0)) as neon,
    ):
        what = [operation(id) for id in ("a", "b", "c")]
        seen = [one.id async for one in neon.operations.as_completed(what)]
    assert seen == ["b", "c", "a"]
    assert platform.pages == [13]


async def test_what_repeats_on_a_page_that_shifts_is_taken_once() -> None:
    platform = Platform()
    refs = start(platform, "a", 2)
    record = platform.record("a-0")
    platform.fault = lambda request: (
        http_response(200, {"operations": [record, record]})
        if request.path.endswith("/operations")
        else None
    )
    async with platform.server, client_of(platform.server) as neon:
        done = await neon.operations.wait(refs)
    assert [one.id for one in done] == ["a-0", "a-1"]
    assert platform.gets == 1


@pytest.mark.parametrize(("newer", "pages"), [(900, [912]), (1100, [1000, 112])])
async def test_pages_reach_as_deep_as_some_were_found_though_one_is_on_none(
    newer: int, pages: list[int]
) -> None:
    platform = Platform()
    start(platform, "older", 1000)
    refs = start(platform, "a", 2, ends=20.0)
    platform.start("hidden", ends=20.0)
    platform.hidden = {"hidden"}
    start(platform, "newer", newer)
    await look_each_second(platform, [*refs, ref("hidden")])
    assert platform.pages[-10:] == pages * (10 // len(pages))


async def test_a_great_many_far_back_are_read_by_page_in_the_first_look_already() -> None:
    platform = Platform()
    refs = start(platform, "a", 1000)
    start(platform, "newer", 3000)
    async with platform.server, client_of(platform.server) as neon:
        await look_once(neon, refs)
    assert platform.pages == [1000, 10, 1000, 1000, 1000]
    assert platform.gets == 0


async def test_new_ones_do_not_make_it_forget_how_far_back_the_old_reach() -> None:
    platform = Platform()
    refs = start(platform, "old", 20, ends=12.0)
    start(platform, "newer", 600)

    async def answer_late(writer: asyncio.StreamWriter) -> None:
        # While this look is under way, two more come: another look is for them alone.
        await asyncio.sleep(0.5)
        await http_response(503)(writer)

    async with (
        platform.server,
        client_of(platform.server, polling=PollPolicy.constant(1.0)) as neon,
    ):
        waits = [asyncio.create_task(neon.operations.wait(refs))]
        await asyncio.sleep(6.5)
        gets = platform.gets
        platform.fault = lambda _request: answer_late
        await asyncio.sleep(0.6)
        platform.fault = lambda _request: None
        for id in ("new", "newest"):
            platform.start(id, ends=12.0)
            waits.append(asyncio.create_task(neon.operations.wait(ref(id))))
        await asyncio.gather(*waits)
    assert platform.gets == gets


async def test_no_more_than_a_few_are_read_by_id_at_a_time() -> None:
    platform = Platform()
    refs = start(platform, "hidden", 50)
    platform.hidden = {one.id for one in refs}
    under_way = most = 0

    async def respond(writer: asyncio.StreamWriter) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.1)
        under_way -= 1
        await http_response(content={"operation": platform.record("hidden-0")})(writer)

    platform.fault = lambda request: None if request.path.endswith("/operations") else respond
    async with platform.server, client_of(platform.server) as neon:
        await look_once(neon, refs)
    assert most == 16


async def test_what_is_awaited_no_more_is_not_read_by_id() -> None:
    platform = Platform()
    refs = start(platform, "hidden", 100)
    platform.hidden = {one.id for one in refs}
    platform.start("other", ends=100)
    async with (
        platform.server,
        client_of(platform.server, budget=RateBudget(per_route_per_second=4)) as neon,
    ):
        other = asyncio.create_task(neon.operations.wait(operation("other")))
        many = asyncio.create_task(neon.operations.wait(refs))
        await asyncio.sleep(2)
        gets = platform.gets
        many.cancel()
        await asyncio.sleep(5)
        assert platform.gets <= gets + 8
        other.cancel()
        await asyncio.wait([other, many])
