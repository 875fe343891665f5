"""Repeated attempts to connect, up to a deadline."""

import asyncio
import math
import socket
import threading
from typing import NoReturn

import pytest

from neonctl_async import ClientClosedError, Hooks, NotConnectableError, PollPolicy
from neonctl_async.connections.addresses import address_of_host
from neonctl_async.connections.probing import (
    LOOKUP_THREADS,
    MAX_CONCURRENT_PROBES,
    ConnectionWaits,
    Target,
)
from neonctl_async.hooks import WaitEnded, WaitStarted
from neonctl_async.transport.calls import Deadline
from neonctl_async.transport.dispatcher import HookDispatcher
from tests.connections.postgres_server import (
    STARTING_UP,
    Behaviour,
    PostgresServer,
    authenticating,
    error,
    responding,
    silent,
)
from tests.support.clock import now, skip_ahead
from tests.support.until import until

pytestmark = pytest.mark.virtual_time

STEADY = PollPolicy(jitter=0.0)
REFUSAL = error("no such role", "28000")


def waits(policy: PollPolicy = STEADY, *hooks: Hooks) -> ConnectionWaits:
    return ConnectionWaits(policy, HookDispatcher(hooks))


def target(server: PostgresServer, endpoint_id: str = "ep-a-1") -> Target:
    return Target(endpoint_id, server.address())


async def test_wait_repeats_the_attempt_until_the_server_is_ready() -> None:
    starting = responding(STARTING_UP)
    async with PostgresServer(starting, starting, starting, authenticating) as server:
        await waits().wait([target(server)], Deadline(300))
    assert server.times == pytest.approx([0, 0.42, 1.01, 1.83], abs=0.05)


async def test_ready_server_is_connected_once() -> None:
    async with PostgresServer(authenticating) as server:
        await waits().wait([target(server)], Deadline(300))
    assert server.connections == 1
    assert now() < 0.1


async def test_attempts_keep_the_interval_of_a_constant_policy() -> None:
    starting = responding(STARTING_UP)
    async with PostgresServer(starting, starting, starting, authenticating) as server:
        await waits(PollPolicy.constant(2)).wait([target(server)], Deadline(300))
    assert server.times == pytest.approx([0, 2, 4, 6], abs=0.1)


async def test_lookups_that_hang_leave_the_threads_of_the_loop_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, finished, late = threading.Semaphore(0), threading.Event(), list[str]()

    def hang(host: str, *_: object, **__: object) -> NoReturn:
        started.release()
        if not finished.wait(10):
            late.append(host)
        raise socket.gaierror(socket.EAI_AGAIN, "no response")

    monkeypatch.setattr("socket.getaddrinfo", hang)
    hosts = [f"ep-{number}.example.com" for number in range(MAX_CONCURRENT_PROBES)]
    all_waits = waits()
    task = asyncio.create_task(
        all_waits.wait([Target(host, address_of_host(host)) for host in hosts], Deadline(300))
    )
    for _ in range(LOOKUP_THREADS):
        await asyncio.to_thread(started.acquire)
    all_waits.close()
    finished.set()
    with pytest.raises(ClientClosedError):
        await task
    assert not late


async def test_attempts_continue_without_a_deadline() -> None:
    starting = [responding(STARTING_UP)] * 100
    async with PostgresServer(*starting, authenticating) as server:
        await waits().wait([target(server)], Deadline(None))
    assert server.connections == 101
    assert now() > 400


async def test_delays_grow_up_to_the_maximum_of_the_policy() -> None:
    async with PostgresServer(responding(STARTING_UP)) as server:
        with pytest.raises(NotConnectableError):
            await waits().wait([target(server)], Deadline(300))
    assert 60 <= server.connections <= 75
    assert server.times[-1] - server.times[-2] == pytest.approx(5, abs=0.1)


async def test_error_at_the_deadline_has_the_last_failure() -> None:
    async with PostgresServer(silent, responding(STARTING_UP)) as server:
        with pytest.raises(NotConnectableError) as caught:
            await waits().wait([target(server)], Deadline(30))
        address = server.address()
    assert now() == pytest.approx(30, abs=0.1)
    error = caught.value
    assert (error.endpoint_id, error.host, error.stage) == ("ep-a-1", "127.0.0.1", "startup")
    assert (error.is_final, error.timeout, error.others) == (False, 30, [])
    assert (error.pending, error.settled, error.last_error) == ([], [], None)
    assert str(error) == (
        "compute ep-a-1 is not connectable after 30 s (startup): the server at "
        f"{address} is not ready: it responded: the database system is starting up (SQLSTATE 57P03)"
    )


async def test_error_before_the_end_of_the_first_attempt_has_its_stage() -> None:
    async with PostgresServer(silent) as server:
        with pytest.raises(NotConnectableError, match="no response to the startup") as caught:
            await waits().wait([target(server)], Deadline(1))
    assert caught.value.stage == "startup"
    assert now() == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("last", [authenticating, responding(STARTING_UP)])
async def test_loop_that_was_blocked_past_the_deadline_tries_once_more(
    monkeypatch: pytest.MonkeyPatch, last: Behaviour
) -> None:
    async with PostgresServer(responding(STARTING_UP), last) as server:
        wait = asyncio.create_task(waits().wait([target(server)], Deadline(1)))
        await asyncio.sleep(0.2)
        skip_ahead(monkeypatch, 1.2)
        [outcome] = await asyncio.gather(wait, return_exceptions=True)
    assert isinstance(outcome, NotConnectableError) == (last is not authenticating)
    assert server.connections == 2
    assert now() < 2.0


async def test_blocked_loop_ends_the_pause_between_attempts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with PostgresServer(responding(STARTING_UP), authenticating) as server:
        asyncio.get_running_loop().call_later(19, skip_ahead, monkeypatch, 2)
        await waits(PollPolicy.constant(60)).wait([target(server)], Deadline(20))
    assert now() < 22


@pytest.mark.parametrize("at", [0.1, 0.2, 0.7])
async def test_timeout_of_the_caller_ends_the_wait_even_after_a_blocked_loop(
    monkeypatch: pytest.MonkeyPatch, at: float
) -> None:
    async with PostgresServer(silent, responding(STARTING_UP)) as server:
        asyncio.get_running_loop().call_later(at, skip_ahead, monkeypatch, 1.2)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.005):
                await waits().wait([target(server)], Deadline(1))
    assert now() < 2.0


async def test_timeout_of_zero_fails_at_once() -> None:
    async with PostgresServer(authenticating) as server:
        with pytest.raises(NotConnectableError, match="after 0 s"):
            await waits().wait([target(server)], Deadline(0))


async def test_final_refusal_ends_the_wait_at_once() -> None:
    async with PostgresServer(responding(REFUSAL)) as server:
        with pytest.raises(NotConnectableError, match="is never connectable") as caught:
            await waits().wait([target(server)], Deadline(300))
    assert (caught.value.is_final, caught.value.stage) == (True, "startup")
    assert server.connections == 1
    assert now() < 0.1


async def test_emulated_host_ends_the_wait_at_once() -> None:
    emulated = Target("ep-a-1", address_of_host("ep-a-1.us-east-2.aws.neon.invalid"))
    with pytest.raises(NotConnectableError, match="never resolves") as caught:
        await waits().wait([emulated], Deadline(None))
    assert (caught.value.is_final, caught.value.stage) == (True, "dns")


async def test_computes_are_connected_at_the_same_time() -> None:
    starting = responding(STARTING_UP)
    async with (
        PostgresServer(starting, authenticating) as one,
        PostgresServer(starting, starting, authenticating) as other,
    ):
        targets = [target(one), target(other, "ep-b-2")]
        await waits().wait(targets, Deadline(300))
    assert one.times == pytest.approx([0, 0.42], abs=0.05)
    assert other.times == pytest.approx([0, 0.42, 1.01], abs=0.05)


async def test_error_names_all_computes_that_are_not_connectable() -> None:
    async with (
        PostgresServer(authenticating) as ready,
        PostgresServer(responding(STARTING_UP)) as starting,
    ):
        targets = [target(ready), target(starting, "ep-b-2"), target(starting, "ep-c-3")]
        with pytest.raises(NotConnectableError, match=r"; nor are ep-c-3$") as caught:
            await waits().wait(targets, Deadline(10))
    assert (caught.value.endpoint_id, caught.value.others) == ("ep-b-2", ["ep-c-3"])


async def test_final_refusal_of_one_compute_ends_the_attempts_of_the_others() -> None:
    async with (
        PostgresServer(silent) as hanging,
        PostgresServer(responding(REFUSAL)) as refusing,
    ):
        with pytest.raises(NotConnectableError) as caught:
            await waits().wait([target(hanging), target(refusing, "ep-b-2")], Deadline(300))
        assert (caught.value.endpoint_id, caught.value.others) == ("ep-b-2", [])
        await until(lambda: not hanging.open_connections)
    assert now() < 0.5


async def test_connections_of_a_client_are_limited() -> None:
    async with PostgresServer(silent) as server:
        targets = [target(server, f"ep-{n}") for n in range(MAX_CONCURRENT_PROBES + 10)]
        with pytest.raises(NotConnectableError):
            await waits().wait(targets, Deadline(5))
    assert server.connections == MAX_CONCURRENT_PROBES


async def test_wait_without_computes_does_nothing() -> None:
    await waits().wait([], Deadline(0))


async def test_closing_ends_running_and_later_waits() -> None:
    async with PostgresServer(silent) as server:
        connections = waits()
        task = asyncio.create_task(connections.wait([target(server)], Deadline(300)))
        await until(lambda: server.connections == 1)
        connections.close()
        with pytest.raises(ClientClosedError, match="the client was closed"):
            await task
        await until(lambda: not server.open_connections)
        with pytest.raises(ClientClosedError):
            await connections.wait([target(server)], Deadline(300))
    assert server.connections == 1


async def test_cancellation_passes_through_and_closes_the_connections() -> None:
    async with PostgresServer(silent) as server:
        task = asyncio.create_task(waits().wait([target(server)], Deadline(300)))
        await until(lambda: server.connections == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: not server.open_connections)


async def test_hooks_are_notified_of_the_wait() -> None:
    started: list[WaitStarted] = []
    ended: list[WaitEnded] = []
    hooks = Hooks(on_wait_started=started.append, on_wait_ended=ended.append)
    connections = waits(STEADY, hooks)
    async with PostgresServer(authenticating) as ready, PostgresServer(silent) as hanging:
        await connections.wait([target(ready)], Deadline(60))
        with pytest.raises(NotConnectableError) as caught:
            await connections.wait([target(ready), target(hanging, "ep-b-2")], Deadline(1))
    assert [(wait.goal, wait.operations, wait.timeout) for wait in started] == [
        ("ep-a-1 accepts connections", (), 60),
        ("ep-a-1, ep-b-2 accept connections", (), 1),
    ]
    assert [(wait.wait, wait.error) for wait in ended] == [
        (started[0], None),
        (started[1], caught.value),
    ]
    assert ended[1].seconds == pytest.approx(1, abs=0.1)


async def test_deadline_is_relative_to_the_start_of_the_call() -> None:
    deadline = Deadline(10)
    await asyncio.sleep(4)
    assert deadline.left == pytest.approx(6)
    await asyncio.sleep(7)
    assert deadline.left == 0
    assert (Deadline(None).left, Deadline(None).at) == (None, math.inf)
