"""The number of operations that a poll reads by page, and those that it reads by id."""

import asyncio

import pytest

from neonctl_async import NeonClient, OperationRef, PollPolicy, RateBudget
from tests.support.fake_neon import FakeNeon
from tests.support.records import client_of, operation, ref
from tests.support.server import http_response

pytestmark = pytest.mark.virtual_time


def start(fake_neon: FakeNeon, name: str, count: int, ends: float = 0.0) -> list[OperationRef]:
    """Start operations, the newest last."""
    for number in range(count):
        fake_neon.start(f"{name}-{number}", ends=ends)
    return [ref(f"{name}-{number}") for number in range(count)]


async def poll_once(neon: NeonClient, refs: list[OperationRef]) -> None:
    await neon.operations.wait(refs, timeout=1)


async def poll_every_second(fake_neon: FakeNeon, refs: list[OperationRef]) -> None:
    """Wait until all operations are finished."""
    polls = PollPolicy.constant(1.0)
    async with fake_neon.server, client_of(fake_neon.server, polling=polls) as neon:
        await neon.operations.wait(refs)


async def test_page_size_is_limited_to_1000() -> None:
    fake_neon = FakeNeon()
    refs = start(fake_neon, "a", 995)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        await poll_once(neon, refs)
    assert fake_neon.pages == [1000]


async def test_2500_operations_are_read_by_page_and_none_by_id() -> None:
    fake_neon = FakeNeon()
    refs = start(fake_neon, "a", 2500)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        await poll_once(neon, refs)
    assert fake_neon.pages == [1000, 1000, 510]
    assert fake_neon.gets == 0


async def test_scan_stops_when_all_operations_are_found() -> None:
    fake_neon = FakeNeon()
    start(fake_neon, "older", 3000)
    refs = start(fake_neon, "a", 1100)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        await poll_once(neon, refs)
    assert fake_neon.pages == [1000, 110]


async def test_scan_depth_follows_the_oldest_pending_operation() -> None:
    fake_neon = FakeNeon()
    start(fake_neon, "older", 2000)
    refs = start(fake_neon, "a", 2, ends=20.0)
    newer = start(fake_neon, "newer", 1500)
    wait = asyncio.create_task(poll_every_second(fake_neon, refs))
    await asyncio.sleep(15.5)
    assert fake_neon.pages[-2:] == [1000, 512]
    fake_neon.hidden = {reference.id for reference in newer}
    await wait
    assert fake_neon.pages[-5:] == [1000, 12, 12, 12, 12]


async def test_scan_depth_doubles_until_missing_operations_are_found() -> None:
    fake_neon = FakeNeon()
    refs = start(fake_neon, "a", 3, ends=4.5)
    start(fake_neon, "newer", 60)
    await poll_every_second(fake_neon, refs)
    # Read by id until the pages, which double in size, contain them.
    assert fake_neon.pages[:3] == [13, 26, 52]
    assert fake_neon.gets == 9
    assert fake_neon.pages[3] == 104
    assert set(fake_neon.pages[4:]) == {63 + 10}


async def test_scan_reads_no_more_pages_than_operations_are_missing() -> None:
    fake_neon = FakeNeon()
    refs = start(fake_neon, "a", 2, ends=9.0)
    start(fake_neon, "newer", 5000)
    await poll_every_second(fake_neon, refs)
    assert fake_neon.pages[-4:] == [1000, 1000, 1000, 1000]
    polls = 10
    assert fake_neon.gets == 2 * polls
    assert len(fake_neon.pages) <= 2 * polls


async def test_failed_page_does_not_cause_reads_by_id() -> None:
    fake_neon = FakeNeon()
    refs = start(fake_neon, "a", 1500, ends=3.0)
    fake_neon.fault = lambda request: http_response(503) if "cursor=" in request.target else None
    async with (
        fake_neon.server,
        client_of(fake_neon.server, polling=PollPolicy.constant(1.0)) as neon,
    ):
        wait = asyncio.create_task(neon.operations.wait(refs))
        await asyncio.sleep(10)
        assert not wait.done()
        assert fake_neon.gets == 0
        fake_neon.fault = lambda _request: None
        await wait
    assert fake_neon.gets == 0


async def test_operations_finished_on_one_page_are_yielded_soonest_first() -> None:
    fake_neon = FakeNeon()
    for id, finished_at in {"a": 3.0, "b": 1.0, "c": 2.0}.items():
        fake_neon.start(id, ends=finished_at)
    async with (
        fake_neon.server,
        client_of(fake_neon.server, polling=PollPolicy.constant(5.0)) as neon,
    ):
        targets = [operation(id) for id in ("a", "b", "c")]
        seen = [record.id async for record in neon.operations.as_completed(targets)]
    assert seen == ["b", "c", "a"]
    assert fake_neon.pages == [13]


async def test_record_repeated_on_a_page_is_used_once() -> None:
    fake_neon = FakeNeon()
    refs = start(fake_neon, "a", 2)
    record = fake_neon.record("a-0")
    fake_neon.fault = lambda request: (
        http_response(200, {"operations": [record, record]})
        if request.path.endswith("/operations")
        else None
    )
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        done = await neon.operations.wait(refs)
    assert [record.id for record in done] == ["a-0", "a-1"]
    assert fake_neon.gets == 1


@pytest.mark.parametrize(("newer", "pages"), [(900, [912]), (1100, [1000, 112])])
async def test_scan_depth_covers_found_operations_even_if_one_is_unlisted(
    newer: int, pages: list[int]
) -> None:
    fake_neon = FakeNeon()
    start(fake_neon, "older", 1000)
    refs = start(fake_neon, "a", 2, ends=20.0)
    fake_neon.start("hidden", ends=20.0)
    fake_neon.hidden = {"hidden"}
    start(fake_neon, "newer", newer)
    await poll_every_second(fake_neon, [*refs, ref("hidden")])
    assert fake_neon.pages[-10:] == pages * (10 // len(pages))


async def test_first_poll_reads_more_pages_for_1000_operations_far_back() -> None:
    fake_neon = FakeNeon()
    refs = start(fake_neon, "a", 1000)
    start(fake_neon, "newer", 3000)
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        await poll_once(neon, refs)
    assert fake_neon.pages == [1000, 10, 1000, 1000, 1000]
    assert fake_neon.gets == 0


async def test_new_operations_do_not_reset_the_scan_depth() -> None:
    fake_neon = FakeNeon()
    refs = start(fake_neon, "old", 20, ends=12.0)
    start(fake_neon, "newer", 600)

    async def respond_late(writer: asyncio.StreamWriter) -> None:
        # Two operations are added during this poll. The next poll is only for them.
        await asyncio.sleep(0.5)
        await http_response(503)(writer)

    async with (
        fake_neon.server,
        client_of(fake_neon.server, polling=PollPolicy.constant(1.0)) as neon,
    ):
        waits = [asyncio.create_task(neon.operations.wait(refs))]
        await asyncio.sleep(6.5)
        gets = fake_neon.gets
        fake_neon.fault = lambda _request: respond_late
        await asyncio.sleep(0.6)
        fake_neon.fault = lambda _request: None
        for id in ("new", "newest"):
            fake_neon.start(id, ends=12.0)
            waits.append(asyncio.create_task(neon.operations.wait(ref(id))))
        await asyncio.gather(*waits)
    assert fake_neon.gets == gets


async def test_at_most_16_operations_are_read_by_id_at_a_time() -> None:
    fake_neon = FakeNeon()
    refs = start(fake_neon, "hidden", 50)
    fake_neon.hidden = {reference.id for reference in refs}
    in_progress = maximum = 0

    async def respond(writer: asyncio.StreamWriter) -> None:
        nonlocal in_progress, maximum
        in_progress += 1
        maximum = max(maximum, in_progress)
        await asyncio.sleep(0.1)
        in_progress -= 1
        await http_response(content={"operation": fake_neon.record("hidden-0")})(writer)

    fake_neon.fault = lambda request: None if request.path.endswith("/operations") else respond
    async with fake_neon.server, client_of(fake_neon.server) as neon:
        await poll_once(neon, refs)
    assert maximum == 16


async def test_dropped_operations_are_not_read_by_id() -> None:
    fake_neon = FakeNeon()
    refs = start(fake_neon, "hidden", 100)
    fake_neon.hidden = {reference.id for reference in refs}
    fake_neon.start("other", ends=100)
    async with (
        fake_neon.server,
        client_of(fake_neon.server, budget=RateBudget(per_route_per_second=4)) as neon,
    ):
        other = asyncio.create_task(neon.operations.wait(operation("other")))
        many = asyncio.create_task(neon.operations.wait(refs))
        await asyncio.sleep(2)
        gets = fake_neon.gets
        many.cancel()
        await asyncio.sleep(5)
        assert fake_neon.gets <= gets + 8
        other.cancel()
        await asyncio.wait([other, many])
