"""An account that many clients share, on a fake clock."""

import asyncio
import logging

import pytest

from neonctl_async import RateBudget
from neonctl_async.transport.account import Demand
from neonctl_async.transport.shared.account import MAX_RETRY_SECONDS
from neonctl_async.transport.shared.messages import EXCHANGE_SECONDS
from tests.support.clock import now
from tests.transport.shared.clients import MemoryStore, Neon, SharingClient, sharing

pytestmark = pytest.mark.virtual_time

ROUTES = [f"GET /projects/{{id}}/{number}" for number in range(8)]
SMALL = RateBudget(per_minute=60, per_route_per_second=10)


@pytest.mark.parametrize("seconds", [0.001, 0.02, 0.2])
async def test_lone_client_needs_at_most_one_exchange_for_ten_requests(seconds: float) -> None:
    store, neon = MemoryStore(), Neon()
    async with sharing(1, store, neon) as [client]:
        for _ in range(200):
            await client.request(seconds=seconds)
    assert store.exchanges <= 20
    assert neon.rejected == 0


@pytest.mark.parametrize(("seconds", "exchanges"), [(0.3, 12), (1.0, 27), (2.0, 45), (10.0, 201)])
async def test_slow_client_holds_its_slots_for_the_next_requests(
    seconds: float, exchanges: int
) -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        for _ in range(100):
            await client.request()
            await asyncio.sleep(seconds)
    assert store.exchanges <= exchanges


async def test_lone_client_is_as_fast_as_the_limit_of_a_route_allows() -> None:
    store, neon = MemoryStore(), Neon()
    async with sharing(1, store, neon) as [client]:
        started = now()
        await asyncio.gather(*(client.request() for _ in range(200)))
        assert now() - started < 4.5
    assert neon.rejected == 0


@pytest.mark.long
@pytest.mark.parametrize("arrives_after", [0.0, 1.0])
async def test_sixteen_clients_use_the_whole_minute_through_four_kills(
    arrives_after: float,
) -> None:
    store, neon = MemoryStore(), Neon(arrives_after=arrives_after)
    async with sharing(16, store, neon) as clients:
        started = now()
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                for _ in range(4):
                    tasks.create_task(client.run(ROUTES, seconds=0.05, until=started + 180))
            for client in clients[:4]:
                await asyncio.sleep(30)
                client.kill()
        assert neon.rejected == 0
        for minute in range(3):
            sent = neon.between(started + 60 * minute, started + 60 * minute + 60)
            assert sent >= 0.95 * 700
        for client in clients[4:]:  # no client starves
            assert len(client.sent) >= 50
            last_minute = [time for time in client.sent if time > started + 120]
            assert len(last_minute) >= 15


async def test_clients_with_different_limits_keep_to_their_own() -> None:
    store, neon = MemoryStore(), Neon(SMALL)
    strict = SharingClient(store, neon, limits=SMALL)
    lax = SharingClient(store, neon, limits=RateBudget(per_minute=600))
    started = now()
    await asyncio.gather(
        strict.run(ROUTES, until=started + 50), lax.run(ROUTES, until=started + 50)
    )
    assert len(strict.sent) <= 60
    assert len(lax.sent) > 400
    for client in (strict, lax):
        await client.aclose()


async def test_idle_client_has_no_timer_and_holds_no_lease() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        await client.request()
        await asyncio.sleep(6)
        exchanges = store.exchanges
        await asyncio.sleep(3600)
        assert store.exchanges == exchanges
        assert store.state is not None
        assert store.state.leases == {}


async def test_closing_returns_all_leases_and_closes_the_store() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        await client.request()
    assert store.state is not None
    assert store.state.leases == {}
    assert store.closed == 1


async def test_closed_client_ignores_the_end_of_requests() -> None:
    async with sharing(1, MemoryStore(), Neon()) as [client]:
        slot = await client.budget.acquire("GET /projects")
    slot.release()


async def test_cancelled_request_returns_its_slot() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        slot = await client.budget.acquire("GET /projects")
        slot.cancel()
        await asyncio.sleep(6)
        assert store.state is not None
        assert store.state.leases == {}
        assert store.state.minute == []


async def test_calls_go_before_the_polls_of_other_clients() -> None:
    store, neon = MemoryStore(), Neon(SMALL)
    async with sharing(2, store, neon, limits=SMALL) as [caller, poller]:
        await caller.request()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(75):
                tasks.create_task(caller.request("POST /projects"))
            await asyncio.sleep(0.1)
            for _ in range(20):
                tasks.create_task(poller.request("GET /operations", is_poll=True))
            await asyncio.sleep(50)
        calls_in_first_minute = sum(time < 60 for time in caller.sent)
        assert calls_in_first_minute >= 50
        assert poller.sent  # polls do not starve
    assert neon.rejected == 0


async def test_client_knows_the_demand_of_others() -> None:
    async with sharing(2, MemoryStore(), Neon(SMALL), limits=SMALL) as [one, other]:
        one.budget.note_wanted("a", polls=5)
        one.budget.note_wanted("b", polls=3)
        queued = [asyncio.create_task(one.request("POST /projects")) for _ in range(30)]
        await asyncio.sleep(0.1)
        await other.request()
        assert other.account.others.polls_wanted == 8
        assert other.account.others.calls >= 10
        await asyncio.gather(*queued)
        await asyncio.sleep(60)
        assert other.account.others == Demand()


async def test_client_knows_the_pending_projects_of_others() -> None:
    async with sharing(2, MemoryStore(), Neon(SMALL), limits=SMALL) as [one, other]:
        one.budget.note_wanted("a", polls=5)
        await one.request()
        await asyncio.sleep(0.1)
        await other.request()
        assert other.account.others.projects == 1


async def test_free_slots_of_the_minute_are_those_of_all_clients() -> None:
    store = MemoryStore()
    async with sharing(2, store, Neon()) as [one, other]:
        assert one.account.free(now()) == 700
        await asyncio.gather(*(one.request(route) for route in ROUTES * 25))
        await asyncio.sleep(10)
        await other.request()
        assert other.account.free(now()) == 499
        assert other.account.used(now()) == 1
        assert other.account.refill_at(now(), 600) - now() == pytest.approx(51, abs=2)


async def test_unknown_refill_causes_another_exchange() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon(SMALL), limits=SMALL) as [client]:
        slots = [await client.budget.acquire(route) for route in ROUTES for _ in range(6)]
        exchanges = store.exchanges
        assert client.account.refill_at(now(), 60) == float("inf")
        await asyncio.sleep(1)
        assert store.exchanges > exchanges
        for slot in slots:
            slot.release()


async def test_lost_store_is_replaced_by_a_part_of_the_limits_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, neon = MemoryStore(), Neon()
    store.error = ConnectionRefusedError("connection refused")
    async with sharing(1, store, neon, fallback_parts=7) as [client]:
        started = now()
        await client.run(ROUTES, until=started + 60)
        assert 95 <= len(client.sent) <= 101
        assert client.account.limit == 100
        assert client.account.others == Demand()
    [record, later] = caplog.records
    assert "100 requests a minute is used up, 100 of them by this client" in later.getMessage()
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "the shared rate budget memory cannot be used: ConnectionRefusedError: connection "
        "refused. Until it can, this client uses 1/7 of the limits"
    )


async def test_lost_store_is_replaced_by_smaller_parts_if_more_clients_were_known() -> None:
    store = MemoryStore()
    async with sharing(10, store, Neon()) as clients:
        for client in clients:
            await client.request()
        store.error = ConnectionRefusedError()
        await clients[-1].request("GET /users/me")
        assert clients[-1].account.limit == 70


async def test_idle_client_does_not_try_a_lost_store_for_ever() -> None:
    store = MemoryStore()
    store.error = ConnectionRefusedError()
    async with sharing(1, store, Neon()) as [client]:
        await client.request()
        await asyncio.sleep(90)
        failures = store.failures
        assert failures >= 5
        await asyncio.sleep(3600)
        assert store.failures == failures


async def test_store_that_hangs_while_it_closes_delays_closing_for_half_a_second() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        await client.request()
        store.hangs = True
        started = now()
        await client.aclose()
        assert now() - started <= 2 * EXCHANGE_SECONDS + 0.01
        store.hangs = False


async def test_hanging_store_delays_a_request_for_half_a_second_at_most() -> None:
    store = MemoryStore()
    store.hangs = True
    async with sharing(1, store, Neon()) as [client]:
        for _ in range(50):
            started = now()
            slot = await client.budget.acquire("GET /projects")
            assert now() - started <= EXCHANGE_SECONDS + 0.001
            slot.release()
            await asyncio.sleep(1)


async def test_store_that_comes_back_is_used_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    store, neon = MemoryStore(), Neon()
    async with sharing(2, store, neon) as [one, other]:
        store.error = ConnectionRefusedError()
        long_request = asyncio.create_task(one.request("POST /projects", 25.0))
        await asyncio.gather(*(one.request(route) for route in ROUTES * 20))
        store.error = None
        await asyncio.sleep(MAX_RETRY_SECONDS)
        await one.request()
        await asyncio.sleep(0.1)
        assert one.account.limit == 700
        assert "can be used again" in caplog.messages[-1]
        await other.request()
        assert other.account.free(now()) <= 700 - 163  # knows what was sent without the store
        await long_request
    assert store.state is not None
    assert store.state.leases == {}
    assert neon.rejected == 0


@pytest.mark.parametrize("lost_at", [1, 10, 30, 61])
async def test_store_that_loses_its_data_causes_no_request_too_many(lost_at: int) -> None:
    store, neon = MemoryStore(), Neon()
    async with sharing(4, store, neon) as clients:
        started = now()
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                for _ in range(4):
                    tasks.create_task(client.run(ROUTES, seconds=0.3, until=started + 150))
            await asyncio.sleep(lost_at)
            store.state = None
        assert neon.rejected == 0
        assert neon.between(started + 60, started + 150) >= 0.9 * 700


@pytest.mark.parametrize("step", [-86_400.0, -5.0])
async def test_clock_of_the_store_that_is_set_back_is_harmless(step: float) -> None:
    store, neon = MemoryStore(), Neon()
    async with sharing(4, store, neon) as clients:
        started = now()
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                tasks.create_task(client.run(ROUTES, until=started + 200))
            await asyncio.sleep(30)
            store.clock_offset += step
        assert neon.rejected == 0
        assert neon.between(started + 100, started + 200) >= 0.95 * 700


async def test_store_that_fails_now_and_then_causes_no_request_too_many() -> None:
    store, neon = MemoryStore(), Neon()
    async with sharing(4, store, neon, fallback_parts=8) as clients:
        started = now()
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                tasks.create_task(client.run(ROUTES, until=started + 200))
            for _ in range(9):
                await asyncio.sleep(18)
                store.error = ConnectionResetError()
                await asyncio.sleep(2)
                store.error = None
        assert neon.rejected == 0
        assert len(neon.arrivals) >= 0.8 * 700 * 200 / 60


async def test_reply_that_is_lost_costs_no_slot_for_long() -> None:
    store = MemoryStore(round_trip=0.8)  # each reply comes too late
    async with sharing(1, store, Neon()) as [client]:
        for _ in range(5):
            await client.request()
            await asyncio.sleep(3)
        assert store.state is not None
        store.round_trip = 0.002
        await asyncio.sleep(MAX_RETRY_SECONDS)
        await client.request()
        await asyncio.sleep(6)
        assert store.state.leases == {}
