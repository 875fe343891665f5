"""Running calls: timeouts, late timers and cancellation."""

import asyncio
import math
import time

import pytest

from neonctl_async import (
    ClientClosedError,
    Hooks,
    NeonError,
    RequestTimeoutError,
    RetryPolicy,
    Timeout,
)
from neonctl_async.transport.calls import Call, Calls
from tests.support.clock import now
from tests.support.records import PROJECT, operation_json, responding
from tests.support.server import Respond, hang, http_response

OPERATION = http_response(content={"operation": operation_json()})


def block_loop(seconds: float) -> None:
    """Keep the event loop busy."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def blocking_after(response: Respond) -> Respond:
    """Send a response, and block the event loop before the client can read it."""

    async def respond(writer: asyncio.StreamWriter) -> None:
        await response(writer)
        block_loop(0.3)

    return respond


@pytest.mark.parametrize("timeout", [Timeout(read=0.15), Timeout(total=0.15)])
@pytest.mark.parametrize("size", [1, 3_000_000])
async def test_response_that_arrived_while_the_loop_was_blocked_is_read(
    timeout: Timeout, size: int
) -> None:
    response = blocking_after(http_response(content="x" * size))
    async with responding(response, timeout=timeout, retry=RetryPolicy.never()) as (server, neon):
        assert await neon.request("POST", "/projects") == "x" * size
    assert len(server.received) == 1


async def test_created_record_survives_a_blocked_loop() -> None:
    settings = {"timeout": Timeout(read=0.15), "retry": RetryPolicy.never()}
    async with responding(blocking_after(OPERATION), **settings) as (_, neon):
        assert (await neon.operations.get(PROJECT, "op-1")).id == "op-1"


async def test_missing_response_times_out_soon_after_a_blocked_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("neonctl_async.transport.calls.GRACE_SECONDS", 0.1)

    async def respond(_writer: asyncio.StreamWriter) -> None:
        for _ in range(10):
            block_loop(0.2)
            await asyncio.sleep(0.01)
        await asyncio.Event().wait()

    settings = {"timeout": Timeout(read=0.15), "retry": RetryPolicy.never()}
    async with responding(respond, **settings) as (_, neon):
        with pytest.raises(RequestTimeoutError, match=r"no response within 0\.15 s"):
            await neon.request("POST", "/projects")


async def run(calls: Calls, total: float, starts_at: float = 0.0) -> tuple[float, str]:
    """Run a call that gets no response. Return the time and the message of its timeout."""
    await asyncio.sleep(starts_at)
    with Call(calls) as call:
        call.start_request(total)
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            assert call.is_timed_out()
        call.end_request()
        assert call.state == "waiting"
        return now(), call.timeout_message


@pytest.mark.virtual_time
async def test_each_request_times_out_at_its_own_time() -> None:
    calls = Calls(read_timeout=20)
    ends = await asyncio.gather(
        run(calls, 30), run(calls, 3, starts_at=1), run(calls, 10), run(calls, 25)
    )
    assert [at for at, _ in ends] == pytest.approx([20, 4, 10, 20])
    assert [message for _, message in ends] == [
        "no response within 20 s",
        "no complete response within 3 s",
        "no complete response within 10 s",
        "no response within 20 s",
    ]


@pytest.mark.virtual_time
async def test_timed_out_call_can_send_again() -> None:
    calls = Calls(read_timeout=5)
    with Call(calls) as call:
        for _ in range(3):
            call.start_request(30)
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(100)
            assert call.is_timed_out()
            call.end_request()
            await asyncio.sleep(50)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@pytest.mark.virtual_time
async def test_part_of_a_response_restarts_the_read_timeout_but_not_the_total_timeout() -> None:
    calls = Calls(read_timeout=5)
    with Call(calls) as call:
        call.start_request(12)
        for _ in range(3):
            await asyncio.sleep(3.9)
            call.restart_read_timeout()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(100)
        assert call.is_timed_out()
        assert call.timeout_message == "no complete response within 12 s"
    assert now() == pytest.approx(12)


@pytest.mark.virtual_time
@pytest.mark.parametrize("is_before", [True, False])
async def test_timeout_does_not_hide_a_cancellation_by_others(is_before: bool) -> None:
    calls: list[asyncio.Task[object]] = []
    loop = asyncio.get_running_loop()

    def cancel_at_the_timeout(_request: object) -> None:
        # The timer of the timeout was started just before, for the same time.
        at = math.nextafter(now() + 4, 0.0) if is_before else now() + 4
        # An eager task is not in calls yet.
        loop.call_at(at, lambda: calls[0].cancel())  # noqa: PLW0108 - it is looked up later

    hooks = [Hooks(on_request=cancel_at_the_timeout)]
    async with responding(hang, timeout=Timeout(total=4), hooks=hooks) as (_, neon):
        calls.append(asyncio.create_task(neon.request("POST", "/projects")))
        with pytest.raises(asyncio.CancelledError):
            await calls[0]
        assert now() == pytest.approx(4, abs=0.1)
        assert calls[0].cancelling() == 1


@pytest.mark.virtual_time
async def test_next_call_of_a_task_whose_cancellation_was_caught_times_out() -> None:
    async with responding(hang, timeout=Timeout(total=4)) as (_, neon):
        call = asyncio.create_task(neon.request("POST", "/projects"))
        loop = asyncio.get_running_loop()
        loop.call_at(4, call.cancel)
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(10):
            with pytest.raises(RequestTimeoutError):
                await neon.request("POST", "/projects")


@pytest.mark.virtual_time
async def test_timeout_around_a_call_ends_it() -> None:
    async with responding(hang) as (_, neon):
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(3):
                await neon.request("GET", "/projects")
        assert not isinstance(caught.value, NeonError)
        assert now() == pytest.approx(3)


@pytest.mark.virtual_time
async def test_closing_at_the_time_of_a_timeout_ends_the_call() -> None:
    async with responding(hang, timeout=Timeout(total=4)) as (server, neon):
        call = asyncio.create_task(neon.request("GET", "/projects"))
        await asyncio.sleep(4)
        await neon.aclose()
        with pytest.raises((ClientClosedError, RequestTimeoutError)):
            await call
        assert now() == pytest.approx(4)
    assert len(server.received) == 1


@pytest.mark.virtual_time
async def test_closed_client_starts_no_request() -> None:
    calls = Calls(read_timeout=5)

    async def start() -> None:
        with Call(calls) as call:
            calls.close()
            call.start_request(30)

    # In a task of its own: before CPython 3.13, a task that closes its own call stays cancelled.
    with pytest.raises(ClientClosedError) as caught:
        await asyncio.create_task(start())
    assert not caught.value.maybe_delivered
    with pytest.raises(ClientClosedError), Call(calls):
        pass
