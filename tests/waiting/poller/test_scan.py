"""The number of operations that a poll reads by page, and those that it reads by id."""

import asyncio

import pytest

from neonctl_async import NeonClient, OperationRef, PollPolicy, RateBudget
from tests.support.platform import Platform
from tests.support.records import client_of, operation, ref
from tests.support.server import http_response

pytestmark = pytest.mark.virtual_time


def start(platform: Platform, name: str, count: int, ends: float = 0.0) -> list[OperationRef]:
    """Start operations, the newest last."""
    for number in range(count):
        platform.start(f"{name}-{number}", ends=ends)
    return [ref(f"{name}-{number}") for number in range(count)]


async def poll_once(neon: NeonClient, refs: list[OperationRef]) -> None:
    await neon.operations.wait(refs, timeout=1)


async def poll_every_second(platform: Platform, refs: list[OperationRef]) -> None:
    """Wait until all operations are finished."""
    polls = PollPolicy.constant(1.0)
    async with platform.server, client_of(platform.server, polling=polls) as neon:
        await neon.operations.wait(refs)


async def test_page_size_is_limited_to_1000() -> None:
    platform = Platform()
    refs = start(platform, "a", 995)
    async with platform.server, client_of(platform.server) as neon:
        await poll_once(neon, refs)
    assert platform.pages == [1000]


async def test_2500_operations_are_read_by_page_and_none_by_id() -> None:
    platform = Platform()
    refs = start(platform, "a", 2500)
    async with platform.server, client_of(platform.server) as neon:
        await poll_once(neon, refs)
    assert platform.pages == [1000, 1000, 510]
    assert platform.gets == 0


async def test_scan_stops_when_all_operations_are_found() -> None:
    platform = Platform()
    start(platform, "older", 3000)
    refs = start(platform, "a", 1100)
    async with platform.server, client_of(platform.server) as neon:
        await poll_once(neon, refs)
    assert platform.pages == [1000, 110]


async def test_scan_depth_follows_the_oldest_pending_operation() -> None:
    platform = Platform()
    start(platform, "older", 2000)
    refs = start(platform, "a", 2, ends=20.0)
    newer = start(platform, "newer", 1500)
    wait = asyncio.create_task(poll_every_second(platform, refs))
    await asyncio.sleep(15.5)
    assert platform.pages[-2:] == [1000, 512]
    platform.hidden = {reference.id for reference in newer}
    await wait
    assert platform.pages[-5:] == [1000, 12, 12, 12, 12]


async def test_scan_depth_doubles_until_missing_operations_are_found() -> None:
    platform = Platform()
    refs = start(platform, "a", 3, ends=4.5)
    start(platform, "newer", 60)
    await poll_every_second(platform, refs)
    # Read by id until the pages, which double in size, contain them.
    assert platform.pages[:3] == [13, 26, 52]
    assert platform.gets == 9
    assert platform.pages[3] == 104
    assert set(platform.pages[4:]) == {63 + 10}


async def test_scan_reads_no_more_pages_than_operations_are_missing() -> None:
    platform = Platform()
    refs = start(platform, "a", 2, ends=9.0)
    start(platform, "newer", 5000)
    await poll_every_second(platform, refs)
    assert platform.pages[-4:] == [1000, 1000, 1000, 1000]
    polls = 10
    assert platform.gets == 2 * polls
    assert len(platform.pages) <= 2 * polls


async def test_failed_page_does_not_cause_reads_by_id() -> None:
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


async def test_operations_finished_on_one_page_are_yielded_soonest_first() -> None:
    platform = Platform()
    for id, finished_at in {"a": 3.0, "b": 1.0, "c": 2.0}.items():
        platform.start(id, ends=finished_at)
    async with (
        platform.server,
        client_of(platform.server, polling=PollPolicy.constant(5.0)) as neon,
    ):
        targets = [operation(id) for id in ("a", "b", "c")]
        seen = [record.id async for record in neon.operations.as_completed(targets)]
    assert seen == ["b", "c", "a"]
    assert platform.pages == [13]


async def test_record_repeated_on_a_page_is_used_once() -> None:
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
    assert [record.id for record in done] == ["a-0", "a-1"]
    assert platform.gets == 1


@pytest.mark.parametrize(("newer", "pages"), [(900, [912]), (1100, [1000, 112])])
async def test_scan_depth_covers_found_operations_even_if_one_is_unlisted(
    newer: int, pages: list[int]
) -> None:
    platform = Platform()
    start(platform, "older", 1000)
    refs = start(platform, "a", 2, ends=20.0)
    platform.start("hidden", ends=20.0)
    platform.hidden = {"hidden"}
    start(platform, "newer", newer)
    await poll_every_second(platform, [*refs, ref("hidden")])
    assert platform.pages[-10:] == pages * (10 // len(pages))


async def test_first_poll_reads_more_pages_for_1000_operations_far_back() -> None:
    platform = Platform()
    refs = start(platform, "a", 1000)
    start(platform, "newer", 3000)
    async with platform.server, client_of(platform.server) as neon:
        await poll_once(neon, refs)
    assert platform.pages == [1000, 10, 1000, 1000, 1000]
    assert platform.gets == 0


async def test_new_operations_do_not_reset_the_scan_depth() -> None:
    platform = Platform()
    refs = start(platform, "old", 20, ends=12.0)
    start(platform, "newer", 600)

    async def respond_late(writer: asyncio.StreamWriter) -> None:
        # Two operations are added during this poll. The next poll is only for them.
        await asyncio.sleep(0.5)
        await http_response(503)(writer)

    async with (
        platform.server,
        client_of(platform.server, polling=PollPolicy.constant(1.0)) as neon,
    ):
        waits = [asyncio.create_task(neon.operations.wait(refs))]
        await asyncio.sleep(6.5)
        gets = platform.gets
        platform.fault = lambda _request: respond_late
        await asyncio.sleep(0.6)
        platform.fault = lambda _request: None
        for id in ("new", "newest"):
            platform.start(id, ends=12.0)
            waits.append(asyncio.create_task(neon.operations.wait(ref(id))))
        await asyncio.gather(*waits)
    assert platform.gets == gets


async def test_at_most_16_operations_are_read_by_id_at_a_time() -> None:
    platform = Platform()
    refs = start(platform, "hidden", 50)
    platform.hidden = {reference.id for reference in refs}
    in_progress = maximum = 0

    async def respond(writer: asyncio.StreamWriter) -> None:
        nonlocal in_progress, maximum
        in_progress += 1
        maximum = max(maximum, in_progress)
        await asyncio.sleep(0.1)
        in_progress -= 1
        await http_response(content={"operation": platform.record("hidden-0")})(writer)

    platform.fault = lambda request: None if request.path.endswith("/operations") else respond
    async with platform.server, client_of(platform.server) as neon:
        await poll_once(neon, refs)
    assert maximum == 16


async def test_dropped_operations_are_not_read_by_id() -> None:
    platform = Platform()
    refs = start(platform, "hidden", 100)
    platform.hidden = {reference.id for reference in refs}
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
