"""The store on a Redis server. These tests use a real server."""

import asyncio
import logging
from pathlib import Path

import pytest
from redis.exceptions import RedisError

from neonctl_async import RateBudget
from neonctl_async.models.secret import Secret
from neonctl_async.transport.shared.redis_store import KEEP, RedisStore
from tests.transport.shared.clients import Neon, SharingClient
from tests.transport.shared.kills import check_limits_through_kills
from tests.transport.shared.redis_server import PASSWORD, URL_PASSWORD, RedisServer
from tests.transport.shared.requests import ends, granted, request_of

pytestmark = pytest.mark.process


def store_of(server: RedisServer, account: str = "account") -> RedisStore:
    return RedisStore(Secret(server.url), "redis", account)


async def test_clients_share_the_slots_of_a_route(redis_server: RedisServer) -> None:
    stores = [store_of(redis_server) for _ in range(4)]
    replies = await asyncio.gather(
        *(store.exchange(request_of(f"{n}", wants=15)) for n, store in enumerate(stores))
    )
    assert sum(map(granted, replies)) == 40
    [reply] = [await stores[0].exchange(request_of("f"))]
    assert (reply.used, reply.clients) == (40, 3)
    for store in stores:
        await store.aclose()


async def test_slots_become_free_on_the_clock_of_the_server(redis_server: RedisServer) -> None:
    store = store_of(redis_server)
    await store.exchange(request_of("a", wants=30))
    refills = (await store.exchange(request_of("a", slots=ends(30)))).refills
    assert sum(count for _, count in refills) == 30
    assert 59_000 < refills[0][0] <= 60_000
    await store.aclose()


async def test_request_that_is_sent_twice_takes_each_slot_once(redis_server: RedisServer) -> None:
    """redis-py sends a command again if the connection is lost."""
    store = store_of(redis_server)
    for _ in range(2):
        await store.exchange(request_of("a", wants=3))
    assert (await store.exchange(request_of("b"))).used == 3
    await store.aclose()


async def test_each_account_has_its_own_slots(redis_server: RedisServer) -> None:
    for account in ("one", "two"):
        store = store_of(redis_server, account)
        assert granted(await store.exchange(request_of("a", wants=30))) == 30
        await store.aclose()


async def test_data_expires_when_nobody_uses_the_account(redis_server: RedisServer) -> None:
    store = store_of(redis_server)
    await store.exchange(request_of("a"))
    await store.aclose()
    async with redis_server.admin() as redis:
        [key] = await redis.keys()
        assert 60_000 < await redis.pttl(key) <= KEEP


async def test_restarted_server_is_used_without_an_error(redis_server: RedisServer) -> None:
    store = store_of(redis_server)
    await store.exchange(request_of("a", wants=3))
    await asyncio.to_thread(redis_server.restart)
    assert (await store.exchange(request_of("a", slots=ends(3)))).unknown == 3
    assert (await store.exchange(request_of("a"))).used == 3
    await store.aclose()


async def test_server_that_closes_every_connection_is_an_error_at_the_second_one() -> None:
    """The first connection may have been idle for too long."""
    closed = 0

    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal closed
        await reader.read(1)
        closed += 1
        writer.close()

    async with await asyncio.start_server(close, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        store = RedisStore(Secret(f"redis://127.0.0.1:{port}/0"), "redis", "account")
        with pytest.raises(RedisError):
            await store.exchange(request_of("a"))
        await store.aclose()
    assert closed == 2


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
