"""Requests that wait long for the rate budget: the log line, and the time that they wait."""

import asyncio
import logging

import pytest

from neonctl_async import NeonClient, RateBudget, RetryPolicy
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import client_of, ref, responding
from tests.support.server import OK, hang, http_response
from tests.transport.shared.clients import MemoryStore, Neon, sharing

pytestmark = pytest.mark.virtual_time

FIVE = RateBudget(per_minute=5)


async def spend(neon: NeonClient, requests: int = 5) -> None:
    await asyncio.gather(*(neon.request("GET", "/regions") for _ in range(requests)))


def held_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    lines = [record.getMessage() for record in caplog.records]
    return [line for line in lines if line.startswith("requests wait for ")]


async def test_wait_that_the_spent_minute_delays_is_logged(
    fake_neon: FakeNeon, caplog: pytest.LogCaptureFixture
) -> None:
    fake_neon.start("a", ends=1)
    fake_neon.fault = lambda request: OK if request.path.endswith("/regions") else None
    async with client_of(fake_neon, budget=FIVE) as neon:
        await spend(neon)
        assert neon.held_seconds == 0.0
        waiting = asyncio.create_task(neon.operations.wait(ref("a")))
        await asyncio.sleep(12)
        assert neon.held_seconds == pytest.approx(48, abs=0.1)
        await waiting
        assert now() > 59
        assert neon.held_seconds == 0.0
    [line] = held_lines(caplog)
    assert line == (
        "requests wait for 60 s: the limit of 5 requests a minute is used up, 5 of them by this "
        "client"
    )


async def test_line_is_not_repeated_for_each_request(caplog: pytest.LogCaptureFixture) -> None:
    async with responding(OK, budget=FIVE) as (_, neon):
        await spend(neon, 19)
        assert now() > 179
    assert len(held_lines(caplog)) == 3
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


async def test_short_waits_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    budget = RateBudget(per_route_per_second=5)
    async with responding(OK, budget=budget) as (_, neon):
        await spend(neon, 20)
        assert now() >= 3
    async with responding(OK, budget=FIVE) as (_, neon):
        await spend(neon, 4)
        await asyncio.sleep(57)
        await spend(neon, 3)
    assert held_lines(caplog) == []


async def test_wait_for_a_connection_is_not_the_fault_of_the_budget(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with responding(OK, max_connections=1) as (_, neon):
        calls = asyncio.create_task(spend(neon))
        while neon.requests_sent < 2:
            assert neon.held_seconds == 0.0
            await asyncio.sleep(0)
        await calls
    assert held_lines(caplog) == []


async def test_time_is_unknown_while_all_slots_are_used_by_requests_in_flight() -> None:
    async with responding(hang, budget=RateBudget(per_minute=1)) as (_, neon):
        calls = asyncio.create_task(spend(neon, 2))
        await asyncio.sleep(1)
        assert neon.requests_sent == 1
        assert neon.held_seconds == 0.0
        calls.cancel()


async def test_pause_after_a_429_holds_requests_back() -> None:
    limited = http_response(429, headers={"Retry-After": "30"})
    async with responding(limited, OK, retry=RetryPolicy(deadline=100)) as (_, neon):
        call = asyncio.create_task(neon.request("POST", "/projects"))
        await asyncio.sleep(10)
        waiting = asyncio.create_task(neon.regions.list())
        await asyncio.sleep(0.1)
        assert neon.held_seconds == pytest.approx(20, abs=0.5)
        await call
        waiting.cancel()


async def test_line_shows_how_many_requests_are_of_this_client(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with sharing(2, MemoryStore(), Neon(FIVE), limits=FIVE) as [first, second]:
        await asyncio.gather(*(first.request() for _ in range(4)))
        await second.request()
        await asyncio.sleep(2)
        waiting = asyncio.create_task(second.request())
        await asyncio.sleep(10)
        assert 30 < second.budget.held_seconds() < 60
        await waiting
    [line] = held_lines(caplog)
    assert line.endswith("the limit of 5 requests a minute is used up, 1 of them by this client")
