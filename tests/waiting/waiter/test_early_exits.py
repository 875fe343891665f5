"""Deadlines, cancellations and closed clients that end a wait before its operations."""

import asyncio
import math
import sys

import anyio
import pytest

from neonctl_async import (
    ClientClosedError,
    Operation,
    OperationStatus,
    PollPolicy,
    RateBudget,
    ServerError,
    WaitTimeoutError,
)
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of, operation, ref
from tests.support.server import hang, http_response
from tests.support.tasks import cancel

pytestmark = pytest.mark.virtual_time


async def test_timeout_error_lists_settled_and_pending_operations(fake_neon: FakeNeon) -> None:
    fake_neon.start("quick", ends=1)
    fake_neon.start("slow", ends=1000)
    fake_neon.hidden = {"unseen"}
    fake_neon.start("unseen", ends=1000)
    fake_neon.fault = lambda request: (
        http_response(503) if request.path.endswith("/unseen") else None
    )
    with pytest.raises(WaitTimeoutError, match=r"2 of 3 .* within 20 s") as caught:
        await fake_neon.client.operations.wait(
            [ref("quick"), ref("slow"), ref("unseen")], timeout=20
        )
    assert now() == pytest.approx(20, abs=0.01)
    error = caught.value
    assert isinstance(error, TimeoutError)
    assert [record.id for record in error.settled] == ["quick"]
    assert isinstance(error.pending[0], Operation)
    assert error.pending[0].ref == ref("slow")
    assert error.pending[1] == ref("unseen")
    assert isinstance(error.last_error, ServerError)


async def test_pending_operations_of_a_timeout_can_be_waited_on_again(fake_neon: FakeNeon) -> None:
    fake_neon.start("slow", ends=30)
    with pytest.raises(WaitTimeoutError) as caught:
        await fake_neon.client.operations.wait(ref("slow"), timeout=5)
    [done] = await fake_neon.client.operations.wait(caught.value.pending)
    assert done.status == OperationStatus.FINISHED


async def test_deadline_interrupts_a_hanging_poll(fake_neon: FakeNeon) -> None:
    fake_neon.fault = lambda _request: hang
    with pytest.raises(WaitTimeoutError):
        await fake_neon.client.operations.wait(ref("a"), timeout=3)
    assert now() == pytest.approx(3, abs=0.01)
    assert fake_neon.open_connections <= 1


async def test_last_poll_comes_just_before_the_deadline(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=6.5)
    async with client_of(fake_neon, polling=PollPolicy.constant(5.0)) as neon:
        [done] = await neon.operations.wait(operation("a"), timeout=7)
    assert done.status == OperationStatus.FINISHED
    assert fake_neon.gets == 2


async def test_timeout_of_zero_uses_known_records_and_sends_no_request(fake_neon: FakeNeon) -> None:
    assert len(await fake_neon.client.operations.wait(operation("a", "finished"), timeout=0)) == 1
    with pytest.raises(WaitTimeoutError, match="within 0 s"):
        await fake_neon.client.operations.wait(operation("b"), timeout=0)
    assert fake_neon.received == []


@pytest.mark.parametrize("timeout", [math.inf, sys.float_info.max, 10**400])
async def test_timeout_may_be_longer_than_any_clock_counts(
    fake_neon: FakeNeon, timeout: float
) -> None:
    fake_neon.start("a", ends=3)
    async with client_of(fake_neon, budget=RateBudget()) as neon:
        [done] = await neon.operations.wait(operation("a"), timeout=timeout)
    assert done.status == OperationStatus.FINISHED


async def test_timeout_none_waits_without_a_deadline(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=3000)
    async with client_of(fake_neon, polling=PollPolicy.constant(100)) as neon:
        [done] = await neon.operations.wait(operation("a"), timeout=None)
    assert done.status == OperationStatus.FINISHED


async def test_cancelling_one_wait_leaves_the_others_running(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=20)
    other = asyncio.create_task(fake_neon.client.operations.wait(ref("a")))
    cancelled = asyncio.create_task(fake_neon.client.operations.wait(ref("a")))
    await asyncio.sleep(5)
    await cancel(cancelled)
    assert cancelled.cancelled()
    [done] = await other
    assert done.status == OperationStatus.FINISHED


async def test_cancelling_the_last_wait_stops_the_polls(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1000)
    waits = [asyncio.create_task(fake_neon.client.operations.wait(ref("a"))) for _ in range(3)]
    await asyncio.sleep(5)
    await cancel(*waits)
    polls = len(fake_neon.received)
    await asyncio.sleep(100)
    assert len(fake_neon.received) == polls


async def test_wait_with_a_hanging_poll_can_be_cancelled_at_once(fake_neon: FakeNeon) -> None:
    fake_neon.fault = lambda _request: hang
    wait = asyncio.create_task(fake_neon.client.operations.wait(ref("a")))
    await asyncio.sleep(1)
    await cancel(wait)
    assert wait.cancelled()
    assert now() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("library", ["asyncio", "anyio"])
async def test_timeout_context_of_the_caller_can_wrap_a_wait(
    fake_neon: FakeNeon, library: str
) -> None:
    fake_neon.start("a", ends=1000)
    with pytest.raises(TimeoutError) as caught:
        if library == "asyncio":
            async with asyncio.timeout(5):
                await fake_neon.client.operations.wait(ref("a"))
        else:
            with anyio.fail_after(5):
                await fake_neon.client.operations.wait(ref("a"))
    assert not isinstance(caught.value, WaitTimeoutError)
    assert now() == pytest.approx(5, abs=0.01)


async def test_closing_the_client_ends_pending_waits(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1000)
    neon = fake_neon.client
    wait = asyncio.create_task(neon.operations.wait(ref("a")))
    await asyncio.sleep(3)
    await neon.aclose()
    with pytest.raises(ClientClosedError, match=r"^the client was closed during a wait"):
        await wait
    with pytest.raises(ClientClosedError, match=r"^the client is closed: create a new "):
        await neon.operations.wait(ref("a"))
    await neon.aclose()


async def test_client_can_be_opened_and_closed_in_different_tasks(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=2)
    neon = await asyncio.create_task(client_of(fake_neon).__aenter__())
    await asyncio.create_task(neon.operations.wait(ref("a")))
    await asyncio.create_task(neon.aclose())


async def test_cancelled_close_still_closes_the_client(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1000)
    neon = fake_neon.client
    wait = asyncio.create_task(neon.operations.wait(ref("a")))
    await asyncio.sleep(1)
    closing = asyncio.create_task(neon.aclose())
    await asyncio.sleep(0)
    closing.cancel()
    await asyncio.wait([closing, wait])
    with pytest.raises(ClientClosedError):
        await neon.projects.get(PROJECT)
    assert isinstance(wait.exception(), ClientClosedError)
