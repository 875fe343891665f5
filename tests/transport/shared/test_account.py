"""An account that many clients share, on a fake clock."""

import asyncio
import logging

import pytest

from neonctl_async import RateBudget
from neonctl_async.transport.shared.account import MAX_RETRY_SECONDS
from neonctl_async.transport.shared.messages import EXCHANGE_SECONDS
from tests.support.clock import now
from tests.support.tasks import cancel
from tests.transport.shared.clients import MemoryStore, Neon, SharingClient, sharing

pytestmark = pytest.mark.virtual_time

ROUTES = [f"GET /projects/{{id}}/{number}" for number in range(8)]
SMALL = RateBudget(per_minute=60, per_route_per_second=10)


async def test_calls_in_a_row_need_one_exchange_each() -> None:
    store, neon = MemoryStore(), Neon()
    async with sharing(1, store, neon) as [client]:
        for _ in range(100):
            await client.request()
    assert store.exchanges <= 101
    assert neon.rejected == 0


async def test_calls_at_the_same_time_share_exchanges() -> None:
    store = MemoryStore(round_trip=0.02)
    async with sharing(1, store, Neon()) as [client]:
        started = now()
        await asyncio.gather(*(client.request(seconds=0) for _ in range(40)))
        assert now() - started <= 0.15
        assert store.exchanges <= 7


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


async def test_idle_client_has_no_timer() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        await client.request()
        await asyncio.sleep(6)
        exchanges = store.exchanges
        await asyncio.sleep(3600)
        assert store.exchanges == exchanges
        assert store.table.in_flight == 0


async def test_closing_reports_the_last_end_and_closes_the_store() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        await client.request()
        assert store.table.in_flight == 1
    assert store.table.in_flight == 0
    assert store.closed == 1


async def test_cancelled_closing_closes_the_store() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        await client.request()
        store.hangs = True
        closing = asyncio.create_task(client.aclose())
        await asyncio.sleep(EXCHANGE_SECONDS / 2)  # it reports the last end
        store.hangs = False
        closing.cancel()
        await asyncio.wait([closing])
        assert closing.cancelled()
        assert store.closed == 1


async def test_closed_client_ignores_the_end_of_requests() -> None:
    async with sharing(1, MemoryStore(), Neon()) as [client]:
        slot = await client.budget.acquire("GET /projects")
    slot.release()


async def test_request_that_was_not_sent_returns_its_slot() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        slot = await client.budget.acquire("GET /projects")
        slot.cancel()
        await asyncio.sleep(0.1)
        assert store.table.slots == 0


async def test_slot_for_a_request_that_no_longer_waits_is_returned() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        waiting = asyncio.create_task(client.request())
        await asyncio.sleep(0.0015)
        await cancel(waiting)
        await asyncio.sleep(0.1)
        assert store.table.slots == 1
        await asyncio.sleep(2)
        assert store.table.slots == 0


async def test_polls_do_not_starve_beside_the_calls_of_a_client() -> None:
    store, neon = MemoryStore(), Neon(SMALL)
    async with sharing(1, store, neon, limits=SMALL) as [client]:
        calls = [asyncio.create_task(client.request("POST /projects")) for _ in range(120)]
        await asyncio.sleep(0.5)
        await client.request("GET /operations", is_poll=True)
        assert now() < 62
        await asyncio.gather(*calls)
    assert neon.rejected == 0


@pytest.mark.long
async def test_client_far_from_the_store_is_served_beside_near_ones() -> None:
    near = MemoryStore(round_trip=0.001)
    far = MemoryStore(round_trip=0.05)
    far.table = near.table
    neon = Neon(SMALL)
    async with sharing(3, near, neon, limits=SMALL) as clients:
        distant = SharingClient(far, neon, limits=SMALL)
        async with asyncio.TaskGroup() as tasks:
            for client in [*clients, distant]:
                for _ in range(4):
                    tasks.create_task(client.run(ROUTES, until=240))
        await distant.aclose()
    assert len(distant.sent) >= 20
    assert neon.rejected == 0


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
        await asyncio.sleep(1.1)
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


@pytest.mark.long
async def test_store_that_hangs_in_a_minute_that_is_used_up_causes_no_request_too_many() -> None:
    store, neon = MemoryStore(), Neon()
    async with sharing(8, store, neon) as clients:
        # One has used most of the minute, and all want more when the store hangs.
        await asyncio.gather(*(clients[0].request(route) for route in ROUTES * 80))
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                for _ in range(4):
                    tasks.create_task(client.run(ROUTES, until=130))
            await asyncio.sleep(20)
            store.hangs = True
            await asyncio.sleep(5)
            store.hangs = False
    assert neon.rejected == 0
    assert neon.between(60, 120) >= 690


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


async def test_store_that_hangs_while_it_closes_delays_closing_for_two_seconds() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        await client.request()
        store.hangs = True
        started = now()
        await client.aclose()
        assert now() - started <= 2 * EXCHANGE_SECONDS + 0.01
        store.hangs = False


async def test_hanging_store_delays_a_request_for_a_second_at_most() -> None:
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
    assert store.table.in_flight == 0
    assert neon.rejected == 0


@pytest.mark.long
@pytest.mark.parametrize("lost_at", [1, 10, 30, 61])
async def test_store_that_loses_its_data_causes_no_request_too_many(lost_at: int) -> None:
    store, neon = MemoryStore(), Neon()
    async with sharing(4, store, neon) as clients:
        started = now()
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                for _ in range(4):
                    tasks.create_task(client.run(ROUTES, seconds=0.3, until=started + 121))
            await asyncio.sleep(lost_at)
            store.table.clear()
        assert neon.rejected == 0
        assert neon.between(started + 60, started + 120) >= 0.9 * 700


@pytest.mark.long
@pytest.mark.parametrize("step", [-86_400.0, -5.0])
async def test_clock_of_the_store_that_is_set_back_is_harmless(step: float) -> None:
    store, neon = MemoryStore(), Neon()
    async with sharing(2, store, neon) as clients:
        started = now()
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                tasks.create_task(client.run(ROUTES, until=started + 121))
            await asyncio.sleep(30)
            store.clock_offset += step
        assert neon.rejected == 0
        assert neon.between(started + 60, started + 120) >= 0.95 * 700


@pytest.mark.long
async def test_store_that_fails_now_and_then_causes_no_request_too_many() -> None:
    store, neon = MemoryStore(), Neon()
    async with sharing(4, store, neon, fallback_parts=8) as clients:
        started = now()
        async with asyncio.TaskGroup() as tasks:
            for client in clients:
                tasks.create_task(client.run(ROUTES, until=started + 100))
            for _ in range(4):
                await asyncio.sleep(18)
                store.error = ConnectionResetError()
                await asyncio.sleep(2)
                store.error = None
        assert neon.rejected == 0
        assert len(neon.arrivals) >= 0.8 * 700 * 100 / 60


async def test_request_that_is_sent_while_the_store_comes_back_is_no_loss_of_data() -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        store.error = ConnectionRefusedError()
        await client.request()
        store.error, store.round_trip = None, 0.8
        await client.run(ROUTES, until=now() + 5)
        assert client.account.limit == 700
        await asyncio.sleep(1)
        assert store.table.closings == 0


@pytest.mark.parametrize("pause", [59.3, 59.7, 59.95, 59.99, 60.0, 60.1])
async def test_request_a_minute_after_the_last_one_is_no_loss_of_data(pause: float) -> None:
    store = MemoryStore()
    async with sharing(1, store, Neon()) as [client]:
        await client.request()
        await asyncio.sleep(1)
        store.round_trip = 0.8
        await asyncio.sleep(pause - 1)
        await client.request()
        await asyncio.sleep(1)
        assert store.table.closings == 0


async def test_reply_that_is_lost_costs_no_slot_for_long() -> None:
    store = MemoryStore(round_trip=1.2)  # each reply comes too late
    async with sharing(1, store, Neon()) as [client]:
        for _ in range(5):
            await client.request()
            await asyncio.sleep(3)
        store.round_trip = 0.002
        await asyncio.sleep(MAX_RETRY_SECONDS)
        await client.request()
        await asyncio.sleep(6)
        assert store.table.in_flight == 0
