"""Requests that waits share."""

import asyncio

import pytest

from neonctl_async import ClientClosedError
from neonctl_async.waiting.states.shared_reads import SharedRead, SharedReads
from tests.support.clock import now
from tests.support.tasks import cancel

pytestmark = pytest.mark.virtual_time


class Counter:
    """A request that takes a second and returns the number of requests so far."""

    def __init__(self) -> None:
        self.calls = 0
        self.error: BaseException | None = None

    async def __call__(self) -> int:
        self.calls += 1
        number = self.calls
        await asyncio.sleep(1)
        if self.error is not None:
            raise self.error
        return number


async def test_calls_at_the_same_time_share_one_request() -> None:
    counter = Counter()
    shared = SharedRead(counter)
    readings = await asyncio.gather(*(shared.fresh() for _ in range(50)))
    assert {reading.value for reading in readings} == {1}
    assert counter.calls == 1
    assert readings[0].seconds == pytest.approx(1)
    assert readings[0].finished_at == now()


async def test_calls_during_a_request_share_the_next_one() -> None:
    counter = Counter()
    shared = SharedRead(counter)
    first = asyncio.create_task(shared.fresh())
    await asyncio.sleep(0.5)
    later = await asyncio.gather(*(shared.fresh() for _ in range(50)))
    assert (await first).value == 1
    assert {reading.value for reading in later} == {2}
    assert counter.calls == 2


async def test_next_joins_a_request_in_progress() -> None:
    counter = Counter()
    shared = SharedRead(counter)
    first = asyncio.create_task(shared.fresh())
    await asyncio.sleep(0.5)
    assert (await shared.next(0)).value == 1
    await first
    assert (await shared.next(1)).value == 2
    assert counter.calls == 2


async def test_next_waits_for_the_request_of_another_call_until_its_time() -> None:
    counter = Counter()
    shared = SharedRead(counter)
    patient, late = (asyncio.create_task(shared.next(0, start_at=at)) for at in (100.0, 5.0))
    await asyncio.sleep(4.9)
    assert counter.calls == 0
    assert [(await one).value for one in (late, patient)] == [1, 1]
    assert now() == pytest.approx(6)


async def test_error_is_delivered_to_every_call() -> None:
    counter = Counter()
    counter.error = ValueError("no")
    readings = await asyncio.gather(*(shared.fresh() for shared in [SharedRead(counter)] * 2))
    assert [(reading.value, reading.error) for reading in readings] == [(None, counter.error)] * 2


async def test_cancelled_task_of_a_request_is_reported() -> None:
    shared = SharedRead(Counter())
    call = asyncio.create_task(shared.fresh())
    await asyncio.sleep(0.5)
    shared.stop()
    assert isinstance((await call).error, ClientClosedError)


async def test_task_that_is_cancelled_before_it_starts_is_reported() -> None:
    shared = SharedRead(Counter())
    call = asyncio.create_task(shared.fresh())
    reading: list[asyncio.Task[object]] = []
    while not reading:
        await asyncio.sleep(0)
        reading = [task for task in asyncio.all_tasks() if task.get_name() == "read a state"]
    reading[0].cancel()
    async with asyncio.timeout(60):
        assert isinstance((await call).error, ClientClosedError)
    assert (await shared.fresh()).error is None


async def test_cancelling_one_call_leaves_the_request_running() -> None:
    counter = Counter()
    reads = SharedReads()

    async def call() -> int | None:
        async with reads.use("key", counter) as shared:
            return (await shared.fresh()).value

    cancelled, other = asyncio.create_task(call()), asyncio.create_task(call())
    await asyncio.sleep(0.5)
    await cancel(cancelled)
    assert await other == 1
    assert counter.calls == 1


async def test_last_call_cancels_the_request() -> None:
    counter = Counter()
    reads = SharedReads()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5), reads.use("key", counter) as shared:
            await shared.fresh()
    assert len(asyncio.all_tasks()) == 1
    async with reads.use("key", counter) as shared:
        assert (await shared.fresh()).value == 2


async def test_closing_ends_calls_and_refuses_new_ones() -> None:
    reads = SharedReads()

    async def call() -> None:
        async with reads.use("key", Counter()) as shared:
            await shared.next(0, start_at=100.0)

    task = asyncio.create_task(call())
    await asyncio.sleep(1)
    await reads.aclose()
    with pytest.raises(ClientClosedError, match="during a wait for a state"):
        await task
    with pytest.raises(ClientClosedError, match="create a new NeonClient"):
        await call()
