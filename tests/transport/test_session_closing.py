"""Calls whose client is closed, on real sockets."""

import asyncio
import gc

import pytest

from neonctl_async import (
    ClientClosedError,
    Hooks,
    NeonClient,
    RateBudget,
    RetryPlanned,
    RetryPolicy,
)
from tests.support.records import API_KEY, PROJECT, responding
from tests.support.server import OK, Respond, hang, http_response, raw

pytestmark = pytest.mark.virtual_time


async def test_closing_aborts_running_calls_and_refuses_new_ones() -> None:
    async with responding(hang, max_connections=1) as (server, neon):
        calls = [asyncio.create_task(neon.operations.get(PROJECT, "op-1")) for _ in range(3)]
        await asyncio.sleep(1)
        await neon.aclose()
        for result in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(result, ClientClosedError)
        with pytest.raises(ClientClosedError):
            await neon.operations.get(PROJECT, "op-1")
    assert len(server.received) == 1


async def test_unused_client_needs_no_closing() -> None:
    NeonClient(API_KEY, base_url="http://127.0.0.1:9")
    gc.collect()
    await asyncio.sleep(0)


async def close_during(neon: NeonClient, *paths: str, method: str = "POST") -> list[bool]:
    """Close the client during requests, and check that each fails at once.

    Return ``maybe_delivered`` of each failure.
    """
    loop = asyncio.get_running_loop()
    calls = [asyncio.create_task(neon.request(method, path)) for path in paths]
    await asyncio.sleep(1)
    assert not any(call.done() for call in calls)
    await neon.aclose()
    await asyncio.wait(calls, timeout=5)
    assert loop.time() == pytest.approx(1, abs=0.01)
    maybe_delivered: list[bool] = []
    for call in calls:
        assert not call.cancelled()
        failure = call.exception()
        assert isinstance(failure, ClientClosedError)
        assert ("Neon may have executed" in str(failure)) == failure.maybe_delivered
        maybe_delivered.append(failure.maybe_delivered)
    return maybe_delivered


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_closing_aborts_a_call_that_is_connecting(full_port: int, method: str) -> None:
    url = f"http://127.0.0.1:{full_port}"
    neon = NeonClient(API_KEY, base_url=url, retry=RetryPolicy.never())
    assert await close_during(neon, "/projects", method=method) == [False]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("response", [hang, raw(b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{")])
async def test_closing_aborts_a_call_that_waits_for_its_response(
    response: Respond, method: str
) -> None:
    async with responding(response, retry=RetryPolicy.never()) as (_, neon):
        assert all(await close_during(neon, "/projects", "/regions", method=method))


@pytest.mark.parametrize("status", [429, 503])
async def test_closing_aborts_a_call_that_waits_for_retry_after(status: int) -> None:
    response = http_response(status, headers={"Retry-After": "30"})
    async with responding(response) as (server, neon):
        assert await close_during(neon, "/projects") == [False]
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "budget", [RateBudget(per_minute=1), RateBudget(per_route_per_second=1, route_limits={})]
)
async def test_closing_aborts_calls_that_wait_for_the_budget(budget: RateBudget) -> None:
    async with responding(OK, budget=budget, retry=RetryPolicy.never()) as (server, neon):
        calls = [asyncio.create_task(neon.request("POST", "/projects")) for _ in range(10)]
        await asyncio.sleep(0.5)
        await neon.aclose()
        await asyncio.wait(calls, timeout=5)
        assert asyncio.get_running_loop().time() == pytest.approx(0.5, abs=0.01)
        for call in calls[1:]:
            failure = call.exception()
            assert isinstance(failure, ClientClosedError)
            assert not failure.maybe_delivered
    assert calls[0].result() == {}
    assert len(server.received) == 1


async def test_closing_just_before_a_retry_raises_client_closed_error() -> None:
    closing: list[asyncio.Task[None]] = []

    def close_at_retry(retry: RetryPlanned) -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(retry.delay, lambda: closing.append(loop.create_task(neon.aclose())))

    response = http_response(429, headers={"Retry-After": "30"})
    async with responding(response, hooks=[Hooks(on_retry=close_at_retry)]) as (server, neon):
        with pytest.raises(ClientClosedError) as caught:
            await neon.request("POST", "/projects")
        await closing[0]
    assert not caught.value.maybe_delivered
    assert len(server.received) == 1


async def test_closing_aborts_calls_that_queue_for_a_connection() -> None:
    async with responding(hang, max_connections=1, retry=RetryPolicy.never()) as (server, neon):
        assert await close_during(neon, *["/projects"] * 3) == [True, False, False]
    assert len(server.received) == 1


async def test_closed_client_cannot_be_opened_again() -> None:
    async with responding(OK) as (_, neon):
        await neon.request("GET", "/projects")
    with pytest.raises(ClientClosedError, match="create a new NeonClient"):
        await neon.__aenter__()
