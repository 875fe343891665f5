"""The store on a Redis server. These tests use a real server."""

import asyncio
import logging
import time
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from neonctl_async import RateBudget
from neonctl_async.models.secret import Secret
from neonctl_async.transport.shared import redis_store
from neonctl_async.transport.shared.log import LOG_LENGTH, encode
from neonctl_async.transport.shared.messages import Ended
from neonctl_async.transport.shared.redis_store import RedisStore
from tests.transport.shared.clients import Neon, SharingClient
from tests.transport.shared.kills import check_limits_through_kills
from tests.transport.shared.redis_server import PASSWORD, URL_PASSWORD, RedisServer
from tests.transport.shared.requests import ROUTE, leased, request_of, wants_calls

pytestmark = pytest.mark.process


def store_of(server: RedisServer, account: str = "account") -> RedisStore:
    return RedisStore(Secret(server.url), "redis", account)


async def test_clients_know_the_same_state(redis_server: RedisServer) -> None:
    stores = [store_of(redis_server) for _ in range(4)]
    for lease in range(50):
        requests = [wants_calls(f"{name}", 1, lease=lease, route=f"/{name}") for name in range(4)]
        await asyncio.gather(*map(RedisStore.exchange, stores, requests))
    new = store_of(redis_server)
    replies = [await store.exchange(request_of("watcher")) for store in (new, *stores)]
    assert {(reply.used, reply.holders, reply.generation) for reply in replies} == {
        (160, 5, replies[0].generation)
    }
    for store in (new, *stores):
        await store.aclose()


async def test_log_is_short(redis_server: RedisServer) -> None:
    store = store_of(redis_server)
    for _ in range(LOG_LENGTH + 50):
        await store.exchange(request_of("a"))
    async with redis_server.admin() as redis:
        [key] = await redis.keys()
        assert await redis.xlen(key) == LOG_LENGTH
    new = store_of(redis_server)
    assert (await new.exchange(request_of("b"))).holders == 2
    for one in (store, new):
        await one.aclose()


@pytest.mark.parametrize("field", ["request", "snapshot"])
async def test_entry_that_nobody_can_read_counts_as_a_loss(
    redis_server: RedisServer, field: str
) -> None:
    store = store_of(redis_server)
    before = await store.exchange(wants_calls("a", 30))
    async with redis_server.admin() as redis:
        [key] = await redis.keys()
        await redis.xadd(key, {field: b"\xc1"})
    after = await store.exchange(request_of("a", generation=before.generation, used=30))
    assert after.used == 30
    assert (await store.exchange(request_of("a"))).generation == after.generation
    await store.aclose()


async def test_server_that_lost_the_newest_entries_is_noticed(redis_server: RedisServer) -> None:
    """A replica that takes over may lack the last entries of its primary."""
    store = store_of(redis_server)
    await store.exchange(wants_calls("a", 3))
    before = await store.exchange(wants_calls("a", 3, lease=2))
    async with redis_server.admin() as redis:
        [key] = await redis.keys()
        [(newest, _)] = await redis.xrevrange(key, count=1)
        await redis.xdel(key, newest)
    after = await store.exchange(request_of("a", generation=before.generation, used=before.used))
    assert after.generation != before.generation
    assert after.used == before.used
    await store.aclose()


async def test_clock_that_is_set_back_counts_as_a_loss(redis_server: RedisServer) -> None:
    store = store_of(redis_server)
    before = await store.exchange(request_of("a"))
    async with redis_server.admin() as redis:
        [key] = await redis.keys()
        ahead = int(time.time() * 1000) + 3_600_000
        await redis.xadd(key, {"request": encode(request_of("b"))}, id=f"{ahead}-0")
    other = store_of(redis_server)
    with pytest.MonkeyPatch.context() as monkeypatch:  # until the clock is set back
        monkeypatch.setattr(redis_store, "CLOCK_MILLISECONDS", 4_000_000)
        await other.exchange(request_of("c"))
    after = await store.exchange(request_of("a", generation=before.generation, used=9))
    assert after.generation != before.generation
    assert after.used == 9
    assert (await other.exchange(request_of("c"))).generation == after.generation
    for one in (store, other):
        await one.aclose()


async def test_exchange_leases_slots_on_the_clock_of_the_server(redis_server: RedisServer) -> None:
    store = store_of(redis_server)
    reply = await store.exchange(wants_calls("a", 30))
    assert leased(reply) == 30
    report = request_of("a", ended=[Ended(1, ROUTE, 0, 30)])
    refills = (await store.exchange(report)).refills
    assert sum(refill.slots for refill in refills) == 30
    assert 59_000 < refills[0].delay <= 60_250
    await store.aclose()


async def test_each_account_has_its_own_slots(redis_server: RedisServer) -> None:
    for account in ("one", "two"):
        store = store_of(redis_server, account)
        assert leased(await store.exchange(wants_calls("a", 30))) == 30
        await store.aclose()


async def test_data_expires_when_nobody_uses_the_account(redis_server: RedisServer) -> None:
    store = store_of(redis_server)
    await store.exchange(request_of("a"))
    await store.aclose()
    async with redis_server.admin() as redis:
        [key] = await redis.keys()
        assert 60_000 < await redis.pttl(key) <= 120_000


async def test_restarted_server_is_used_without_an_error(redis_server: RedisServer) -> None:
    store = store_of(redis_server)
    before = await store.exchange(request_of("a"))
    await asyncio.to_thread(redis_server.restart)
    after = await store.exchange(request_of("a"))
    assert after.generation != before.generation
    await store.aclose()


async def test_server_that_refuses_writes_is_an_error(redis_server: RedisServer) -> None:
    store = store_of(redis_server)
    async with redis_server.admin() as redis:
        await redis.config_set("maxmemory", 1)
    with pytest.raises(RedisError):
        await store.exchange(request_of("a"))
    await store.aclose()


async def test_hanging_server_delays_no_request_for_longer_than_the_time_limit(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    client = SharingClient(store_of(redis_server), Neon(), fallback_parts=7)
    await client.request()
    redis_server.pause()
    for _ in range(20):
        await client.request("GET /operations", 0.001)
    assert client.account.limit == 100
    assert "TimeoutError" in caplog.text
    redis_server.resume()
    await client.aclose()


async def test_password_appears_in_no_error_and_no_log(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = redis_server.url.replace(URL_PASSWORD, "wrong-" + URL_PASSWORD)
    budget = RateBudget.shared(wrong)
    assert budget.store is not None
    client = SharingClient(RedisStore(budget.store.url, budget.store.name, "a"), Neon())
    await client.request()
    await client.aclose()
    assert "1/4 of the limits" in caplog.text
    for text in (caplog.text, repr(budget), repr(client.store), budget.store.name):
        assert URL_PASSWORD not in text
        assert PASSWORD not in text


@pytest.mark.scale
def test_processes_that_are_killed_leave_the_others_within_the_limits(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    check_limits_through_kills(redis_server.url, tmp_path / "requests.txt")
