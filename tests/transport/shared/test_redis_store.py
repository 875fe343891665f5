"""The store on a Redis server. These tests use a real server."""

import asyncio
import itertools
import logging
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from redis import Redis
from redis.exceptions import RedisError

from neonctl_async import RateBudget
from neonctl_async.models.secret import Secret
from neonctl_async.transport.shared.leasing import exchange
from neonctl_async.transport.shared.ledger import State, new_state
from neonctl_async.transport.shared.messages import Adopted, Ended, Reply, Request
from neonctl_async.transport.shared.redis_store import KEY_PREFIX, SCRIPT, RedisStore
from tests.transport.shared.clients import Neon, SharingClient
from tests.transport.shared.histories import DELAYS, Step, World, histories
from tests.transport.shared.redis_server import PASSWORD, URL_PASSWORD, RedisServer
from tests.transport.shared.requests import ROUTE, leased, request_of, wants_calls

pytestmark = pytest.mark.process


def store_of(server: RedisServer, account: str = "account") -> RedisStore:
    return RedisStore(Secret(server.url), "redis", account)


def decode_state(packed: Any) -> State:
    """Decode the data of Lua, in which an empty table looks like an empty list."""
    fields: list[Any] = msgspec.msgpack.decode(packed)
    fields[-3:] = [table or {} for table in fields[-3:]]
    for holder in fields[-1].values():
        holder[3] = holder[3] or {}
    return msgspec.convert(fields, State)


class ComparedStores:
    """Runs the rules in Python and in Lua on the same messages."""

    def __init__(self, redis: Redis, account: str) -> None:
        self._redis = redis
        self._key = KEY_PREFIX + account
        self._script = redis.register_script(SCRIPT)
        self._state: State | None = None
        self._exchanges = 0

    def exchange(self, request: Request, now: int) -> Reply:
        self._exchanges += 1
        if self._exchanges % 7 == 0:  # a client that knows other data, with requests in flight
            adopted = [Adopted(9000 + self._exchanges, ROUTE, 2)]
            request = msgspec.structs.replace(request, generation="lost", adopted=adopted)
        self._state = self._state or new_state(request, now)
        expected = exchange(self._state, request, now)
        packed = self._script(keys=[self._key], args=[msgspec.json.encode(request), now])
        assert msgspec.msgpack.decode(packed, type=Reply) == expected
        assert decode_state(self._redis.get(self._key)) == self._state
        return expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories(steps=40, delays=(*DELAYS, -5_000)))
def test_lua_and_python_have_the_same_rules(redis_server: RedisServer, history: list[Step]) -> None:
    with Redis(port=redis_server.port, password=PASSWORD) as redis:
        World(ComparedStores(redis, f"account-{next(_NUMBERS)}").exchange).run(history)


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


_NUMBERS = itertools.count()
