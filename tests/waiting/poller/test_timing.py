"""The times of polls, and the operations that each one reads."""

import asyncio
import sys
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import msgspec
import pytest

from neonctl_async import Operation, OperationStatus, PollPolicy, RateBudget, WaitTimeoutError
from neonctl_async.transport.protocol import HOLDS_READS
from neonctl_async.waiting.timing.pace import MIN_STRETCH
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon, Fault
from tests.support.records import PROJECT, client_of, operation, ref
from tests.support.server import Received, Respond, hang, http_response, in_sequence
from tests.support.tasks import cancel

pytestmark = pytest.mark.virtual_time

MAXIMUM = PollPolicy().maximum


def record_arrivals(
    fake_neon: FakeNeon, fault: Fault = lambda _request: None
) -> list[tuple[float, str]]:
    """Record the time of each request and the last segment of its path."""
    arrivals: list[tuple[float, str]] = []

    def respond(request: Received) -> Respond | None:
        arrivals.append((round(now(), 3), request.path.rpartition("/")[2]))
        return fault(request)

    fake_neon.fault = respond
    return arrivals


def stuck_hangs(request: Received) -> Respond | None:
    """Never respond to a poll of the operation ``stuck`` by id."""
    return hang if request.path.endswith("/stuck") else None


def after(seconds: float, response: Callable[[], Respond]) -> Respond:
    """Respond later, with the ``response`` of that time."""

    async def respond(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await response()(writer)

    return respond


def slow(fake_neon: FakeNeon, seconds: float, *listed: str) -> Fault:
    """Respond later; a page contains the operations ``listed``."""

    def response(request: Received) -> Respond:
        id = request.path.rpartition("/")[2]
        if id == "operations":
            return http_response(content={"operations": [fake_neon.record(id) for id in listed]})
        return http_response(content={"operation": fake_neon.record(id)})

    return lambda request: after(seconds, lambda: response(request))


async def test_failed_poll_is_followed_by_the_next_scheduled_poll(fake_neon: FakeNeon) -> None:
    arrivals = record_arrivals(fake_neon, lambda _request: http_response(503))
    async with client_of(fake_neon, polling=PollPolicy.constant(5.0)) as neon:
        with pytest.raises(WaitTimeoutError):
            await neon.operations.wait(ref("a"), timeout=18)
    assert arrivals == [(0, "a"), (5, "a"), (10, "a"), (15, "a"), (17.75, "a")]


async def test_missing_operations_are_read_by_id_at_the_same_time(fake_neon: FakeNeon) -> None:
    ids = ["a", "b", "c"]
    for id in ids:
        fake_neon.start(id, ends=0)
    arrivals = record_arrivals(fake_neon, slow(fake_neon, 1.0))
    await fake_neon.client.operations.wait([ref(id) for id in ids])
    assert now() == pytest.approx(2)
    assert arrivals[0] == (0, "operations")
    assert sorted(arrivals[1:]) == [(1, id) for id in ids]


@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
async def test_failed_poll_is_not_repeated_at_once(fake_neon: FakeNeon, ids: list[str]) -> None:
    for id in ids:
        fake_neon.start(id, ends=1)
    arrivals = record_arrivals(
        fake_neon, lambda _request: http_response(503) if now() < 12 else None
    )
    async with client_of(fake_neon, polling=PollPolicy.constant(5.0)) as neon:
        await neon.operations.wait([ref(id) for id in ids])
    polled = "a" if ids == ["a"] else "operations"
    assert arrivals == [(at, polled) for at in (0, 5, 10, 15)]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="new in Python 3.12")
async def test_first_poll_covers_all_operations_even_with_eager_tasks(fake_neon: FakeNeon) -> None:
    if sys.version_info >= (3, 12):  # for the type checkers
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    for id in ("a", "b"):
        fake_neon.start(id, ends=0)
    arrivals = record_arrivals(fake_neon)
    await fake_neon.client.operations.wait([ref("a"), ref("b")])
    assert arrivals == [(0, "operations")]


async def test_new_wait_wakes_a_sleeping_poller(fake_neon: FakeNeon) -> None:
    fake_neon.start("old", ends=1500)
    fake_neon.start("new", ends=1)
    async with client_of(fake_neon, polling=PollPolicy.constant(1000)) as neon:
        old = asyncio.create_task(neon.operations.wait(operation("old"), timeout=2000))
        await asyncio.sleep(10)
        await neon.operations.wait(ref("new"))
        assert now() == pytest.approx(10)
        await old


@pytest.mark.parametrize(
    ("headers", "policy", "polled_at"),
    [
        ({}, PollPolicy(jitter=0), PollPolicy().initial),
        ({HOLDS_READS: "?1"}, PollPolicy(jitter=0), 0),
        ({HOLDS_READS: "?1"}, PollPolicy.constant(5.0), 5),
    ],
)
async def test_server_that_holds_reads_is_polled_at_once(
    fake_neon: FakeNeon, headers: dict[str, str], policy: PollPolicy, polled_at: float
) -> None:
    for id in ("old", "new"):
        fake_neon.start(id, ends=0)
    fake_neon.headers = headers
    async with client_of(fake_neon, polling=policy) as neon:
        await neon.operations.get(PROJECT, "old")
        arrivals = record_arrivals(fake_neon)
        await neon.operations.wait(operation("new"))
    assert [at for at, _ in arrivals] == [pytest.approx(polled_at)]


async def test_server_that_holds_reads_is_not_polled_at_once_when_the_minute_is_used(
    fake_neon: FakeNeon,
) -> None:
    for id in ("old", "new"):
        fake_neon.start(id, ends=0)
    fake_neon.headers = {HOLDS_READS: "?1"}
    async with client_of(fake_neon, budget=RateBudget(per_minute=60)) as neon:
        for _ in range(40):
            await neon.operations.get(PROJECT, "old")
        arrivals = record_arrivals(fake_neon)
        await neon.operations.wait(operation("new"))
    assert arrivals[0][0] > 0.2


async def test_server_that_holds_reads_is_polled_at_once_for_a_part_of_the_minute_only(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("old", ends=0)
    for number in range(60):
        fake_neon.start(f"new-{number}", ends=3, project_id=f"project-{number}")
    fake_neon.headers = {HOLDS_READS: "?1"}
    async with client_of(fake_neon, budget=RateBudget(per_minute=700)) as neon:
        await neon.operations.get(PROJECT, "old")
        arrivals = record_arrivals(fake_neon)
        waits = [
            neon.operations.wait(operation(f"new-{number}", project_id=f"project-{number}"))
            for number in range(60)
        ]
        await asyncio.gather(*waits)
    assert 10 < sum(at < 2 for at, _ in arrivals) < 50


async def test_operation_added_during_a_poll_keeps_its_own_schedule(fake_neon: FakeNeon) -> None:
    fake_neon.start("slow", ends=100)
    fake_neon.start("new", ends=2)
    arrivals = record_arrivals(fake_neon, slow(fake_neon, 3.0, "new", "slow"))
    async with client_of(fake_neon, polling=PollPolicy.constant(5.0)) as neon:
        first = asyncio.create_task(neon.operations.wait(ref("slow")))
        await asyncio.sleep(1)
        await neon.operations.wait(operation("new"))
        await cancel(first)
    assert arrivals == [(0, "slow"), (6, "operations")]


async def test_operation_that_was_read_waits_for_no_other_request_of_its_poll(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("a", ends=2.5)
    fake_neon.start("stuck", ends=1000)
    fake_neon.hidden |= {"a", "stuck"}
    fake_neon.fault = stuck_hangs
    async with client_of(fake_neon, polling=PollPolicy.constant(2.0)) as neon:
        stuck = asyncio.create_task(neon.operations.wait(operation("stuck")))
        await neon.operations.wait(operation("a"))
        assert now() == pytest.approx(4)
        await cancel(stuck)


async def test_reference_added_during_a_poll_is_polled_at_once(fake_neon: FakeNeon) -> None:
    fake_neon.start("new", ends=0)
    arrivals = record_arrivals(fake_neon, stuck_hangs)
    stuck = asyncio.create_task(fake_neon.client.operations.wait(ref("stuck")))
    await asyncio.sleep(1)
    await fake_neon.client.operations.wait(ref("new"))
    await cancel(stuck)
    assert arrivals == [(0, "operations"), (0, "stuck"), (1, "new")]


@pytest.mark.parametrize("old_poll", ["finished", "fails"])
async def test_result_of_an_earlier_poll_does_not_end_a_later_wait(
    fake_neon: FakeNeon, old_poll: str
) -> None:
    fake_neon.start("other", ends=1000)
    fake_neon.start("a", ends=0)

    def current() -> Respond:
        return http_response(content={"operation": fake_neon.record("a")})

    polls = in_sequence(
        after(3, current if old_poll == "finished" else lambda: http_response(404)),
        after(3, current),
    )
    fake_neon.hidden = {"a"}
    fake_neon.fault = lambda request: polls(request) if request.path.endswith("/a") else None
    other = asyncio.create_task(fake_neon.client.operations.wait(ref("other")))
    dropped = asyncio.create_task(fake_neon.client.operations.wait(ref("a")))
    await asyncio.sleep(1)
    await cancel(dropped)
    [done] = await fake_neon.client.operations.wait(ref("a"), timeout=60)
    assert done.status == OperationStatus.FINISHED
    assert now() == pytest.approx(4, abs=0.5)
    await cancel(other)


def later(record: Operation) -> Operation:
    return msgspec.structs.replace(record, updated_at=record.updated_at + timedelta(seconds=5))


@pytest.mark.parametrize("reverse", [False, True])
async def test_newest_of_two_records_in_one_wait_is_used(
    fake_neon: FakeNeon, reverse: bool
) -> None:
    newest = later(operation("a", "finished"))
    records = [operation("a", "running"), newest]
    done = await fake_neon.client.operations.wait(records[::-1] if reverse else records)
    assert done == [newest, newest]
    assert fake_neon.received == []


@pytest.mark.parametrize("reverse", [False, True])
async def test_newest_record_of_two_waits_is_used_by_both(
    fake_neon: FakeNeon, reverse: bool
) -> None:
    newest = later(operation("a", "running"))
    records = [operation("a", "scheduling"), newest]
    if reverse:
        records.reverse()
    fake_neon.fault = lambda _request: hang
    waits = [
        asyncio.create_task(fake_neon.client.operations.wait(record, timeout=1))
        for record in records
    ]
    await asyncio.wait(waits)
    for wait in waits:
        error = wait.exception()
        assert isinstance(error, WaitTimeoutError)
        assert error.pending == [newest]


@pytest.mark.parametrize(("draw", "interval"), [(0.0, 0.5), (0.5, 1.0), (1.0, 1.5)])
async def test_jitter_is_drawn_for_each_poll(
    fake_neon: FakeNeon, draw: float, interval: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.random", lambda: draw)
    fake_neon.start("a", ends=3 * interval)
    arrivals = record_arrivals(fake_neon)
    polls = PollPolicy(initial=1, growth=1, maximum=10, jitter=0.5)
    async with client_of(fake_neon, polling=polls) as neon:
        await neon.operations.wait(operation("a"))
    assert [at for at, _ in arrivals] == [interval, 2 * interval, 3 * interval]


@pytest.mark.parametrize("ids", [["a"], ["a", "b"]])
async def test_last_poll_is_early_enough_for_a_slow_response(
    fake_neon: FakeNeon, ids: list[str]
) -> None:
    for id in ids:
        fake_neon.start(id, ends=5)
    fake_neon.fault = slow(fake_neon, 1.0, *ids)
    async with client_of(fake_neon, polling=PollPolicy.constant(100)) as neon:
        done = await neon.operations.wait([ref(id) for id in ids], timeout=20)
    assert {record.status for record in done} == {"finished"}
    assert len(fake_neon.received) == 2


async def test_reference_added_during_retry_after_is_polled_after_it(fake_neon: FakeNeon) -> None:
    for id in ("a", "b", "c"):
        fake_neon.start(id, ends=4)

    def fault(_request: Received) -> Respond | None:
        if now() < 0.5:
            return after(3, lambda: http_response(content={"operation": fake_neon.record("a")}))
        return http_response(503, headers={"Retry-After": "5"}) if now() < 1.5 else None

    arrivals = record_arrivals(fake_neon, fault)
    async with client_of(fake_neon, polling=PollPolicy.constant(100)) as neon:
        waits: list[asyncio.Task[object]] = []
        for id in ("a", "b", "c"):
            waits.append(asyncio.create_task(neon.operations.wait(ref(id))))
            await asyncio.sleep(1)
        await asyncio.gather(*waits)
    assert arrivals == [(0, "a"), (1, "b"), (6, "operations")]


async def test_delay_longer_than_the_timeout_still_polls_once(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=5)
    arrivals = record_arrivals(fake_neon)
    async with client_of(fake_neon, polling=PollPolicy.constant(100)) as neon:
        await neon.operations.wait(operation("a"), timeout=20)
    assert arrivals == [(19.5, "a")]


async def test_deadlines_close_together_share_their_last_polls(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1000)
    arrivals = record_arrivals(fake_neon)
    async with client_of(fake_neon, polling=PollPolicy.constant(100)) as neon:
        waits = [
            asyncio.create_task(neon.operations.wait(operation("a"), timeout=20 + n / 200))
            for n in range(200)
        ]
        await asyncio.wait(waits)
    assert len(arrivals) <= 7


async def test_hanging_poll_by_id_delays_no_operation_of_the_page(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=2)
    fake_neon.start("stuck", ends=1000)
    fake_neon.hidden = {"stuck"}
    fake_neon.fault = stuck_hangs
    async with client_of(fake_neon, polling=PollPolicy.constant(1)) as neon:
        waits = [asyncio.create_task(neon.operations.wait(ref(id))) for id in ("a", "stuck")]
        await waits[0]
        assert now() == pytest.approx(2, abs=0.1)
        waits[1].cancel()
        await asyncio.wait(waits)


async def test_hanging_poll_does_not_cause_more_polls_of_others(fake_neon: FakeNeon) -> None:
    fake_neon.start("old", ends=1000)
    fake_neon.start("stuck", ends=1000)
    fake_neon.hidden = {"stuck"}
    arrivals = record_arrivals(fake_neon, stuck_hangs)
    old = asyncio.create_task(fake_neon.client.operations.wait(operation("old"), timeout=None))
    await asyncio.sleep(60)
    stuck = asyncio.create_task(fake_neon.client.operations.wait(ref("stuck"), timeout=None))
    await asyncio.sleep(9)
    assert sum(at > 60.5 for at, _ in arrivals) <= 9.0 / (0.9 * MIN_STRETCH * MAXIMUM)
    await cancel(old, stuck)


async def test_jitter_applies_to_the_longest_delay(
    fake_neon: FakeNeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.random", lambda: 0.0)
    fake_neon.start("a", ends=100)
    arrivals = record_arrivals(fake_neon)
    await fake_neon.client.operations.wait(operation("a"))
    gaps = [second - first for (first, _), (second, _) in pairwise(arrivals)]
    assert gaps[-5:] == pytest.approx([0.9 * MIN_STRETCH * MAXIMUM] * 5, abs=0.01)


async def test_references_added_shortly_after_one_another_share_polls(fake_neon: FakeNeon) -> None:
    arrivals = record_arrivals(fake_neon)
    waits: list[asyncio.Task[object]] = []
    for number in range(100):
        fake_neon.start(f"op-{number}", ends=10)
        waits.append(asyncio.create_task(fake_neon.client.operations.wait(ref(f"op-{number}"))))
        await asyncio.sleep(0.002)
    await asyncio.sleep(0.21)
    assert [at for at, _ in arrivals] == pytest.approx([0.0, 0.378], abs=0.03)
    await asyncio.gather(*waits)


async def test_waits_that_join_one_after_another_cause_no_more_polls_than_one_wait_does(
    fake_neon: FakeNeon,
) -> None:
    arrivals = record_arrivals(fake_neon)
    waits: list[asyncio.Task[object]] = []
    for number in range(300):
        fake_neon.start(f"op-{number}", ends=60)
        waits.append(asyncio.create_task(fake_neon.client.operations.wait(ref(f"op-{number}"))))
        await asyncio.sleep(0.1)
    assert min(second - first for (first, _), (second, _) in pairwise(arrivals[5:])) >= 0.22
    await asyncio.gather(*waits)


async def test_reference_that_joins_many_others_is_polled_before_its_deadline(
    fake_neon: FakeNeon,
) -> None:
    joined_at = {f"other-{at}": at for at in (0, 0.01, 0.06, 0.16, 0.36, 0.76, 1.56)}
    for id in joined_at:
        fake_neon.start(id, ends=100)
    fake_neon.start("short", ends=3)
    record_arrivals(fake_neon, slow(fake_neon, 0.2, *joined_at, "short"))
    async with client_of(fake_neon, polling=PollPolicy.constant(10.0)) as neon:
        others: list[asyncio.Task[object]] = []
        for id, at in joined_at.items():
            await asyncio.sleep(at - now())
            others.append(asyncio.create_task(neon.operations.wait(ref(id))))
        await asyncio.sleep(3.16 - now())
        await neon.operations.wait(ref("short"), timeout=2)
        await cancel(*others)
