"""The number of operations that a poll reads by page, and those that it reads by id."""

import asyncio
from contextlib import aclosing

import pytest

from neonctl_async import OperationRef, PollPolicy, RateBudget, WaitTimeoutError
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of, operation, ref
from tests.support.server import Received, Respond, hang, http_response
from tests.support.tasks import cancel

pytestmark = pytest.mark.virtual_time


def start(fake_neon: FakeNeon, name: str, count: int, ends: float = 0.0) -> list[OperationRef]:
    """Start operations, the newest last."""
    for number in range(count):
        fake_neon.start(f"{name}-{number}", ends=ends)
    return [ref(f"{name}-{number}") for number in range(count)]


async def poll_once(fake_neon: FakeNeon, refs: list[OperationRef]) -> None:
    await fake_neon.client.operations.wait(refs, timeout=1)


async def poll_every_second(fake_neon: FakeNeon, refs: list[OperationRef]) -> None:
    """Wait until all operations are finished."""
    async with client_of(fake_neon, polling=PollPolicy.constant(1.0)) as neon:
        await neon.operations.wait(refs)


async def test_page_size_is_limited_to_1000(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "a", 995)
    await poll_once(fake_neon, refs)
    assert fake_neon.pages == [1000]


async def test_2500_operations_are_read_by_page_and_none_by_id(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "a", 2500)
    await poll_once(fake_neon, refs)
    assert fake_neon.pages == [1000, 1000, 510]
    assert fake_neon.gets == 0


async def test_scan_stops_when_all_operations_are_found(fake_neon: FakeNeon) -> None:
    start(fake_neon, "older", 3000)
    refs = start(fake_neon, "a", 1100)
    await poll_once(fake_neon, refs)
    assert fake_neon.pages == [1000, 110]


async def test_scan_depth_follows_the_oldest_pending_operation(fake_neon: FakeNeon) -> None:
    start(fake_neon, "older", 2000)
    refs = start(fake_neon, "a", 2, ends=20.0)
    newer = start(fake_neon, "newer", 700)
    wait = asyncio.create_task(poll_every_second(fake_neon, refs))
    await asyncio.sleep(15.5)
    assert fake_neon.pages[-2:] == [712, 712]
    fake_neon.hidden = {reference.id for reference in newer}
    await wait
    assert fake_neon.pages[-5:] == [712, 12, 12, 12, 12]


async def test_scan_gets_deeper_until_it_finds_the_missing_operations(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "a", 3, ends=4.5)
    start(fake_neon, "newer", 60)
    await poll_every_second(fake_neon, refs)
    assert fake_neon.pages == [13, 104, *[63 + 10] * 4]
    assert fake_neon.gets == 3


async def test_old_operations_are_read_by_id_if_pages_would_cost_more(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "a", 2, ends=9.0)
    start(fake_neon, "newer", 5000)
    await poll_every_second(fake_neon, refs)
    polls = 10
    assert fake_neon.gets == 2 * polls
    assert fake_neon.pages == [12, 96, 768, 1000, 12, 12]


async def test_failed_page_does_not_cause_reads_by_id(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "a", 1500, ends=3.0)
    fake_neon.fault = lambda request: http_response(503) if "cursor=" in request.target else None
    async with client_of(fake_neon, polling=PollPolicy.constant(1.0)) as neon:
        wait = asyncio.create_task(neon.operations.wait(refs))
        await asyncio.sleep(10)
        assert not wait.done()
        assert fake_neon.gets == 0
        fake_neon.fault = lambda _request: None
        await wait
    assert fake_neon.gets == 0


async def test_operations_of_one_page_are_yielded_soonest_first(fake_neon: FakeNeon) -> None:
    for id, finished_at in {"a": 3.0, "b": 1.0, "c": 2.0}.items():
        fake_neon.start(id, ends=finished_at)
    async with client_of(fake_neon, polling=PollPolicy.constant(5.0)) as neon:
        targets = [operation(id) for id in ("a", "b", "c")]
        seen = [record.id async for record in neon.operations.as_completed(targets)]
    assert seen == ["b", "c", "a"]
    assert fake_neon.pages == [13]


async def test_record_repeated_on_a_page_is_used_once(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "a", 2)
    record = fake_neon.record("a-0")
    fake_neon.fault = lambda request: (
        http_response(200, {"operations": [record, record]})
        if request.path.endswith("/operations")
        else None
    )
    done = await fake_neon.client.operations.wait(refs)
    assert [record.id for record in done] == ["a-0", "a-1"]
    assert fake_neon.gets == 1


@pytest.mark.parametrize(("newer", "pages"), [(400, [412]), (900, [912])])
async def test_scan_depth_covers_found_operations_even_if_one_is_unlisted(
    fake_neon: FakeNeon, newer: int, pages: list[int]
) -> None:
    start(fake_neon, "older", 1000)
    refs = start(fake_neon, "a", 2, ends=20.0)
    fake_neon.start("hidden", ends=20.0)
    fake_neon.hidden = {"hidden"}
    start(fake_neon, "newer", newer)
    await poll_every_second(fake_neon, [*refs, ref("hidden")])
    assert fake_neon.pages[-10:] == pages * (10 // len(pages))


async def test_first_poll_reads_more_pages_for_1000_old_operations(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "a", 1000)
    start(fake_neon, "newer", 3000)
    await poll_once(fake_neon, refs)
    assert fake_neon.pages == [1000, 10, 1000, 1000, 1000]
    assert fake_neon.gets == 0


async def test_new_operations_do_not_reset_the_scan_depth(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "old", 20, ends=12.0)
    start(fake_neon, "newer", 600)

    async def respond_late(writer: asyncio.StreamWriter) -> None:
        # Two operations are added during this poll. The next poll is only for them.
        await asyncio.sleep(0.5)
        await http_response(503)(writer)

    async with client_of(fake_neon, polling=PollPolicy.constant(1.0)) as neon:
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


async def test_at_most_16_operations_are_read_by_id_at_a_time(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "hidden", 50)
    fake_neon.hidden = {reference.id for reference in refs}
    in_progress = maximum = 0

    def respond_later(request: Received) -> Respond:
        async def respond(writer: asyncio.StreamWriter) -> None:
            nonlocal in_progress, maximum
            in_progress += 1
            maximum = max(maximum, in_progress)
            await asyncio.sleep(0.1)
            in_progress -= 1
            record = fake_neon.record(request.path.rpartition("/")[2])
            await http_response(content={"operation": record})(writer)

        return respond

    fake_neon.fault = lambda request: (
        None if request.path.endswith("/operations") else respond_later(request)
    )
    await poll_once(fake_neon, refs)
    assert maximum == 16


async def test_20_unlisted_operations_cost_a_few_requests_per_poll(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "hidden", 20, ends=3.4)
    fake_neon.hidden = {reference.id for reference in refs}
    await fake_neon.client.operations.wait([operation(reference.id) for reference in refs])
    assert now() < 6
    assert len(fake_neon.received) <= 40


async def test_unlisted_operations_are_all_found_whenever_they_finish(fake_neon: FakeNeon) -> None:
    refs = [ref(f"hidden-{number}") for number in range(20)]
    for number, reference in enumerate(refs):
        fake_neon.start(reference.id, ends=number * 7 % 20)
    fake_neon.hidden = {reference.id for reference in refs}
    async with client_of(fake_neon, polling=PollPolicy.constant(1.0)) as neon:
        async with aclosing(neon.operations.as_completed(refs)) as completed:
            late = [now() - int(record.id.split("-")[1]) * 7 % 20 async for record in completed]
    assert len(late) == 20
    assert max(late) <= 10
    assert len(fake_neon.received) <= 21 * 4 + 20


async def test_last_poll_before_a_deadline_reads_all_unlisted_operations(
    fake_neon: FakeNeon,
) -> None:
    refs = start(fake_neon, "hidden", 40, ends=1000)
    fake_neon.start("hidden-39", ends=2.5)
    fake_neon.hidden = {reference.id for reference in refs}
    with pytest.raises(WaitTimeoutError) as caught:
        await fake_neon.client.operations.wait(refs, timeout=3)
    assert [record.id for record in caught.value.settled] == ["hidden-39"]


async def test_unlisted_operations_and_a_history_of_50000_cost_few_requests(
    fake_neon: FakeNeon,
) -> None:
    start(fake_neon, "history", 50_000)
    refs = start(fake_neon, "a", 20, ends=60)
    fake_neon.hidden = {reference.id for reference in refs[:10]}
    async with client_of(fake_neon, polling=PollPolicy.constant(5.0)) as neon:
        done = await neon.operations.wait(refs)
    assert {record.status for record in done} == {"finished"}
    assert now() <= 66
    assert fake_neon.gets <= 12 * 3 + 10
    assert sum(fake_neon.pages) <= 3000
    assert len(fake_neon.pages) <= 14


async def test_operations_started_during_a_scan_hide_no_tracked_one(fake_neon: FakeNeon) -> None:
    start(fake_neon, "older", 100)
    refs = start(fake_neon, "a", 1200, ends=5)

    def start_more(request: Received) -> None:
        if request.path.endswith("/operations"):
            start(fake_neon, f"new-{len(fake_neon.received)}", 50, ends=100)

    fake_neon.fault = start_more
    await poll_every_second(fake_neon, refs)
    assert now() <= 6
    assert fake_neon.gets <= 50


async def test_hanging_read_of_an_unlisted_operation_delays_no_other(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "hidden", 12, ends=2)
    fake_neon.start("hidden-0", ends=1000)
    fake_neon.hidden = {reference.id for reference in refs}
    fake_neon.fault = lambda request: hang if request.path.endswith("/hidden-0") else None
    async with client_of(fake_neon, polling=PollPolicy.constant(1.0)) as neon:
        finished_at: list[float] = []
        async with aclosing(neon.operations.as_completed(refs)) as completed:
            async for _ in completed:
                finished_at.append(now())
                if len(finished_at) == 11:
                    break
    assert max(finished_at) <= 5


async def test_dropped_operations_are_not_read_by_id(fake_neon: FakeNeon) -> None:
    refs = start(fake_neon, "hidden", 100)
    fake_neon.hidden = {reference.id for reference in refs}
    fake_neon.start("other", ends=100)
    async with client_of(fake_neon, budget=RateBudget(per_route_per_second=4)) as neon:
        other = asyncio.create_task(neon.operations.wait(operation("other")))
        many = asyncio.create_task(neon.operations.wait(refs))
        await asyncio.sleep(2)
        gets = fake_neon.gets
        many.cancel()
        await asyncio.sleep(5)
        assert fake_neon.gets <= gets + 9
        other.cancel()
        await asyncio.wait([other, many])


async def test_failed_list_does_not_count_as_a_read_of_the_missing_operations(
    fake_neon: FakeNeon,
) -> None:
    refs = start(fake_neon, "hidden", 5, ends=1000)
    fake_neon.hidden = {reference.id for reference in refs}
    polls: dict[int, set[str]] = {}

    def fault(request: Received) -> Respond | None:
        name = request.path.rpartition("/")[2]
        polls.setdefault(round(now()), set()).add(name)
        return http_response(503) if round(now()) == 2 and name == "operations" else None

    fake_neon.fault = fault
    async with client_of(fake_neon, polling=PollPolicy.constant(1.0)) as neon:
        wait = asyncio.create_task(
            neon.operations.wait([operation(reference.id) for reference in refs])
        )
        await asyncio.sleep(3.5)
        await cancel(wait)
    read = {at: names - {"operations"} for at, names in polls.items()}
    assert (len(read[1]), read[2]) == (3, set())
    assert fake_neon.hidden - read[1] <= read[3]


@pytest.mark.parametrize(
    ("count", "busy", "free"), [(1, "operations", "op-0"), (2, "op-0", "operations")]
)
async def test_poll_waits_for_no_slot_of_a_route_that_it_does_not_need(
    fake_neon: FakeNeon, count: int, busy: str, free: str
) -> None:
    records = [operation(f"op-{number}") for number in range(count)]
    for record in records:
        fake_neon.start(record.id, ends=0.5)
    arrivals: list[tuple[float, str]] = []

    def fault(request: Received) -> None:
        arrivals.append((round(now(), 2), request.path.rpartition("/")[2]))

    fake_neon.fault = fault
    budget = RateBudget(per_minute=None, per_route_per_second=1)
    async with client_of(fake_neon, budget=budget, polling=PollPolicy.constant(0.5)) as neon:
        wait = asyncio.create_task(neon.operations.wait(records))
        await asyncio.sleep(0.4)
        if busy == "operations":
            await neon.operations.list(PROJECT, limit=1).collect(limit=1)
        else:
            await neon.operations.get(PROJECT, busy)
        await wait
    assert arrivals[1] == (0.5, free)
