"""A pool with clients and model servers on real sockets, without Postgres."""

import asyncio
import gc
import socket
import tracemalloc
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random
from struct import pack
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from control_plane.tests.postgres.proxy.conversations import (
    CALL,
    EXECUTE,
    FRAMES,
    SYNC,
    TERMINATE,
    bind,
    data,
    draw_turn,
    parse,
    query,
    split,
)
from control_plane.tests.postgres.proxy.descriptors import count_descriptors
from control_plane.tests.postgres.proxy.model import COPY_IN, Model, message
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.messages import error_response
from neonctl_local.postgres.proxy.pooler import budget as budget_module
from neonctl_local.postgres.proxy.pooler import pool as pool_module
from neonctl_local.postgres.proxy.pooler.budget import Budget
from neonctl_local.postgres.proxy.pooler.exchange import RESET_STATEMENTS, ClientState
from neonctl_local.postgres.proxy.pooler.pool import Opened, Pool, PooledClient
from tests.support.until import until

SELECT = query("SELECT 'one'")
ONE = Model().feed(SELECT)
DONE = message(b"C", b"SET\0") + message(b"Z", b"I")
REQUESTS = pytest.mark.parametrize("request_", [SELECT, CALL], ids=["early", "late"])
"""A request that is sent with the reset behind it, and one whose reset waits for its answer."""
LIMIT = 5
"""The seconds within which everything has to happen."""


class ModelServer:
    """A session that a pool has opened."""

    def __init__(self, sock: socket.socket, answer: Callable[[Model, bytes], bytes]) -> None:
        self.model = Model()
        self.has_ended = False
        self._sock = sock
        self._answer = answer

    async def serve(self) -> None:
        reader, self.writer = await asyncio.open_connection(sock=self._sock)
        with suppress(ConnectionError):
            while not self.model.ended and (part := await reader.read(65536)):
                self.writer.write(self._answer(self.model, part))
        self.has_ended = True
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


class Client:
    """A client of the pool."""

    def __init__(self, sock: socket.socket, pooled: PooledClient) -> None:
        self.sock = sock
        self.pooled = pooled

    async def send(self, sent: bytes) -> None:
        with suppress(ConnectionError):
            await asyncio.get_running_loop().sock_sendall(self.sock, sent)

    async def receive(self, length: int | None = None) -> bytes:
        """Return the next bytes: ``length`` of them, or all until the end."""
        received = b""
        async with asyncio.timeout(LIMIT):
            with suppress(ConnectionError):
                while length is None or len(received) < length:
                    part = await asyncio.get_running_loop().sock_recv(self.sock, 65536)
                    if not part:
                        break
                    received += part
        return received

    async def ask(self, sent: bytes, expected: bytes = b"") -> None:
        """Send bytes, and expect the answers of a session of its own."""
        expected = expected or Model().feed(sent)
        await self.send(sent)
        assert await self.receive(len(expected)) == expected

    def leave(self, *, reset: bool = False) -> None:
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))
        self.sock.close()


class Setup:
    """A pool whose servers are models."""

    def __init__(self) -> None:
        self.size = 1
        self.runs = True
        """False if servers end because their compute does."""
        self.cancelled = asyncio.Event()
        """Set once servers have executed cancel requests."""
        self.refusal: ComputeRefusedError | None = None
        self.answer: Callable[[Model, bytes], bytes] = Model.feed
        self.servers: list[ModelServer] = []
        self.clients: list[Client] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.budget = Budget()
        self.pool = Pool(self.open, self.budget)

    @property
    def open_servers(self) -> list[ModelServer]:
        return [server for server in self.servers if not server.has_ended]

    async def open(self) -> Opened:
        if self.refusal is not None:
            raise self.refusal
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        server = ModelServer(theirs, lambda model, part: self.answer(model, part))  # noqa: PLW0108 - tests change it later
        self.servers.append(server)
        self.tasks.add(asyncio.create_task(server.serve()))
        return Opened(ours, {}, b"", self.cancel, b"", self.size, self.is_running)

    async def cancel(self) -> None:
        await self.cancelled.wait()

    async def is_running(self) -> bool:
        return self.runs

    async def connect(self, buffer: int | None = None) -> Client:
        """Connect a client. ``buffer`` limits the bytes that wait until the client reads them."""
        theirs = socket.socket()
        theirs.settimeout(0)
        if buffer is not None:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.settimeout(0)
            await asyncio.get_running_loop().sock_connect(theirs, listening.getsockname())
            ours, _ = listening.accept()
        ours.settimeout(0)
        if buffer is not None:
            ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)

        def end() -> None:
            self.pool.close_unused()

        pooled = PooledClient(ours, self.pool, ClientState({}), end)
        self.pool.clients.add(pooled)
        pooled.port.read()
        client = Client(theirs, pooled)
        self.clients.append(client)
        return client


@asynccontextmanager
async def running() -> AsyncGenerator[Setup]:
    """Close a pool at the end, and see that nothing is left of it."""
    descriptors = await asyncio.to_thread(count_descriptors)
    setup = Setup()
    failures: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, failure: failures.append(failure))
    try:
        yield setup
    finally:
        await setup.pool.close()
        for client in setup.clients:
            client.sock.close()
        async with asyncio.timeout(LIMIT):
            await asyncio.gather(*setup.tasks)
    async with asyncio.timeout(LIMIT):
        await until(lambda: asyncio.to_thread(lambda: count_descriptors() <= descriptors))
    assert not failures


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    async with running() as setup:
        yield setup


UNSYNCED = (
    [SELECT, EXECUTE],
    [parse("", "NOPE"), SELECT],
    [parse("", "SELECT 'one'"), bind(""), EXECUTE],
    [parse("", COPY_IN), bind(""), EXECUTE, SYNC],
    [parse("", "NOPE"), SYNC, EXECUTE],
    [query("BEGIN"), EXECUTE],
    [query(COPY_IN), data("x"), data("1")[:-1]],
)


@pytest.mark.parametrize("frames", UNSYNCED)
async def test_client_that_leaves_in_the_middle_hangs_no_other_one(
    setup: Setup, frames: list[bytes]
) -> None:
    bystander, client = await setup.connect(), await setup.connect()
    await bystander.ask(SELECT)
    await client.send(b"".join(frames))
    await until(lambda: client.pooled.server is not None)
    await asyncio.sleep(0.01)  # the answers arrive
    client.leave()
    await bystander.ask(SELECT)
    assert len(setup.open_servers) == 1


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.randoms(),
    st.lists(st.lists(st.sampled_from(FRAMES), max_size=8), min_size=2, max_size=3),
    st.integers(1, 3),
    st.integers(1, 500),
    st.booleans(),
)
async def test_well_behaved_clients_notice_nothing_of_others(
    random: Random, bad: list[list[bytes]], size: int, length: int, reset: bool
) -> None:
    """The others send any messages, and leave after each one."""
    good = [b"".join(draw_turn(random) for _ in range(random.randint(1, 4))) for _ in bad]
    async with running() as setup:
        setup.size = size

        async def behave(sent: bytes) -> None:
            client = await setup.connect()
            expected = Model().feed(sent)
            for start in range(0, len(sent), length):
                await client.send(sent[start : start + length])
                await asyncio.sleep(0)
            assert await client.receive(len(expected)) == expected

        async def misbehave(drawn: list[bytes]) -> None:
            frames = split(b"".join(drawn))
            for count in range(1, len(frames) + 1):
                client = await setup.connect()
                for frame in frames[:count]:
                    await client.send(frame)
                    await asyncio.sleep(0)
                client.leave(reset=reset)

        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            for sent in good:
                group.create_task(behave(sent))
            for drawn in bad:
                group.create_task(misbehave(drawn))


def ignore_reset(model: Model, part: bytes) -> bytes:
    return model.feed(part.removesuffix(RESET_STATEMENTS))


async def test_reset_is_sent_behind_a_request_that_leaves_no_transaction_open(
    setup: Setup,
) -> None:
    parts: list[bytes] = []

    def record(model: Model, part: bytes) -> bytes:
        parts.append(part)
        return model.feed(part)

    setup.answer = record
    client = await setup.connect()
    await client.ask(SELECT)
    await client.ask(CALL)
    assert parts == [SELECT + RESET_STATEMENTS, CALL, RESET_STATEMENTS]


async def test_client_gets_its_answer_after_the_reset(setup: Setup) -> None:
    setup.answer = ignore_reset
    client = await setup.connect()
    await client.send(SELECT)
    await until(lambda: client.pooled.server is not None and client.pooled.server.is_resetting)
    with pytest.raises(BlockingIOError):
        client.sock.recv(1)
    [server] = setup.servers
    server.writer.write(server.model.feed(RESET_STATEMENTS))
    assert await client.receive(len(ONE)) == ONE


@REQUESTS
async def test_reset_without_an_end_is_given_up(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, request_: bytes
) -> None:
    monkeypatch.setattr(pool_module, "RESET_TIMEOUT", 0.05)
    setup.answer = ignore_reset
    client, other = await setup.connect(), await setup.connect()
    for _ in range(2):
        await asyncio.gather(client.ask(request_), other.ask(request_))
    await until(lambda: not setup.open_servers)
    assert len(setup.servers) == 4


@REQUESTS
async def test_server_whose_reset_failed_is_replaced(setup: Setup, request_: bytes) -> None:
    setup.answer = lambda model, part: model.feed(part.replace(RESET_STATEMENTS, query("NOPE")))
    client, other = await setup.connect(), await setup.connect()
    for _ in range(2):
        await asyncio.gather(client.ask(request_), other.ask(request_))
    assert len(setup.servers) == 4


@REQUESTS
async def test_client_that_leaves_during_a_reset_hangs_no_other_one(
    setup: Setup, request_: bytes
) -> None:
    setup.answer = ignore_reset
    bystander, client = await setup.connect(), await setup.connect()
    await client.send(request_)
    await until(lambda: client.pooled.server is not None and client.pooled.server.is_resetting)
    client.leave()
    await until(lambda: setup.pool.clients == {bystander.pooled})
    setup.answer = Model.feed
    [server] = setup.servers
    server.writer.write(server.model.feed(RESET_STATEMENTS))
    await bystander.ask(SELECT)
    assert len(setup.servers) == 1


@REQUESTS
async def test_last_client_leaves_no_server_behind(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, request_: bytes
) -> None:
    monkeypatch.setattr(pool_module, "RESET_TIMEOUT", 1000)
    setup.answer = ignore_reset
    client = await setup.connect()
    await client.send(request_)
    await until(lambda: client.pooled.server is not None and client.pooled.server.is_resetting)
    client.leave()
    await until(lambda: not setup.open_servers)


async def test_query_before_terminate_is_executed(setup: Setup) -> None:
    bystander, client = await setup.connect(), await setup.connect()
    await client.send(SELECT + TERMINATE)
    assert await client.receive() == ONE
    await bystander.ask(SELECT)
    assert len(setup.servers) == 1


async def test_client_that_leaves_while_it_waits_is_forgotten(setup: Setup) -> None:
    busy, client = await setup.connect(), await setup.connect()
    await busy.ask(query("BEGIN"))
    await client.send(SELECT)
    await asyncio.sleep(0.01)
    client.leave()
    await until(lambda: setup.pool.clients == {busy.pooled})
    await busy.ask(query("COMMIT"), message(b"C", b"COMMIT\0") + message(b"Z", b"I"))


async def test_client_that_resets_its_connection_is_forgotten(setup: Setup) -> None:
    bystander, client = await setup.connect(), await setup.connect()
    await client.ask(query("BEGIN"))
    client.leave(reset=True)
    await until(lambda: setup.pool.clients == {bystander.pooled})
    await bystander.ask(SELECT)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (message(b"p", b"secret\0"), b"invalid frontend message type 112"),
        (b"GET / HTTP/1.1\r\n\r\n", b"invalid frontend message type 71"),
        (b"Q\0\0\0\1", b"invalid message length"),
    ],
)
@pytest.mark.parametrize("before", [b"", SELECT, query("BEGIN")])
async def test_what_is_no_message_ends_its_client_only(
    setup: Setup, before: bytes, sent: bytes, reason: bytes
) -> None:
    bystander, client = await setup.connect(), await setup.connect()
    await client.send(before + sent)
    expected = Model().feed(before) + error_response(reason.decode(), "08P01")
    assert await client.receive() == expected
    await bystander.ask(SELECT)


@pytest.mark.parametrize("last", [TERMINATE, message(b"p", b"secret\0")])
async def test_client_that_ends_before_it_reads_hangs_no_other_one(
    setup: Setup, last: bytes
) -> None:
    setup.answer = lambda model, part: message(b"N", bytes(60_000)) + model.feed(part)
    bystander, client = await setup.connect(), await setup.connect(buffer=4096)
    await client.send(SELECT + last)
    await until(lambda: setup.pool.clients == {bystander.pooled})
    setup.answer = Model.feed
    await bystander.ask(SELECT)
    assert len(setup.servers) == 1


async def test_query_during_a_copy_ends_its_client_only(setup: Setup) -> None:
    bystander, client = await setup.connect(), await setup.connect()
    await client.ask(query(COPY_IN))
    await client.send(SELECT)
    assert b"unexpected message type 0x51 during COPY from stdin" in await client.receive()
    await bystander.ask(SELECT)


async def test_server_that_ends_for_its_client_ends_no_idle_one(setup: Setup) -> None:
    bystander, client = await setup.connect(), await setup.connect()
    await client.ask(query("BEGIN"))
    fatal = error_response("terminating connection due to idle-in-transaction timeout", "25P03")
    setup.servers[0].writer.write(fatal)
    setup.servers[0].writer.close()
    assert await client.receive() == fatal
    await bystander.ask(SELECT)


async def test_server_that_breaks_in_a_transaction_ends_its_client(setup: Setup) -> None:
    idle, client = await setup.connect(), await setup.connect()
    await client.ask(query("BEGIN"))
    setup.runs = False
    setup.servers[0].writer.close()
    assert b"server conn crashed?" in await client.receive()
    assert b"terminating connection due to administrator command" in await idle.receive()


async def test_server_that_is_shut_down_ends_idle_clients(setup: Setup) -> None:
    idle, client = await setup.connect(), await setup.connect()
    await client.ask(SELECT)
    await until(lambda: client.pooled.server is None)
    message = "terminating connection due to administrator command"
    setup.runs = False
    setup.servers[0].writer.write(error_response(message, "57P01"))
    for one in (idle, client):
        assert message.encode() in await one.receive()


@pytest.mark.parametrize("last", [error_response("terminating connection", "57P01"), b""])
async def test_server_that_ends_alone_ends_no_idle_client(setup: Setup, last: bytes) -> None:
    idle, client = await setup.connect(), await setup.connect()
    await client.ask(query("BEGIN"))
    setup.servers[0].writer.write(last)
    setup.servers[0].writer.close()
    assert last in await client.receive()
    await idle.ask(SELECT)


@REQUESTS
async def test_server_that_breaks_during_a_reset_does_not_end_its_client(
    setup: Setup, request_: bytes
) -> None:
    def end(model: Model, part: bytes) -> bytes:
        answer = ignore_reset(model, part)
        model.ended = part.endswith(RESET_STATEMENTS)
        return answer

    setup.answer = end
    client = await setup.connect()
    await client.ask(request_)
    await client.ask(request_)


FATAL = error_response("terminating connection due to administrator command", "57P01")


@pytest.mark.parametrize("last", [FATAL, b""])
async def test_server_that_ends_before_the_transaction_is_replaced(
    setup: Setup, last: bytes
) -> None:
    def end(model: Model, _part: bytes) -> bytes:
        model.ended = True
        return last

    client = await setup.connect()
    await client.ask(SELECT)
    await until(lambda: client.pooled.server is None)
    client.pooled.state.settings[b"TimeZone"] = b"UTC"
    setup.answer = end
    await client.send(SELECT)
    await until(lambda: setup.servers[0].has_ended)
    setup.answer = lambda model, part: DONE if b"SET TimeZone" in part else model.feed(part)
    assert await client.receive(len(ONE)) == ONE


async def test_server_that_sends_nonsense_is_closed_and_ends_no_idle_client(setup: Setup) -> None:
    client, bystander = await setup.connect(), await setup.connect()
    await client.ask(query("BEGIN"))
    setup.servers[0].writer.write(message(b"Z", b"I"))
    assert b"server conn crashed?" in await client.receive()
    await until(lambda: not setup.open_servers)
    await bystander.ask(SELECT)


MIB = 1 << 20


def unfinished(length: int) -> bytes:
    """Return a query without its end."""
    return query("x" * length)[:-1]


def prepared(length: int, count: int) -> bytes:
    return b"".join(parse(f"p{number}", "x" * length) for number in range(count)) + SYNC


@pytest.mark.parametrize("sent", [unfinished(8 * MIB), prepared(MIB, 8)])
async def test_nothing_is_left_of_what_a_client_sent(setup: Setup, sent: bytes) -> None:
    bystander = await setup.connect()
    await bystander.ask(SELECT)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(3):
            client = await setup.connect()
            await client.send(sent)
            await until(lambda: setup.budget.used > 7 * MIB)
            client.leave()
            await until(lambda: setup.budget.used < MIB)
            setup.clients.remove(client)
            del client
        await bystander.ask(SELECT)
        for server in setup.servers:
            server.model.statements.clear()
        assert tracemalloc.get_traced_memory()[0] < 4 * MIB
    finally:
        tracemalloc.stop()
        gc.enable()


@pytest.mark.parametrize("sent", [unfinished(2 * MIB), prepared(MIB // 4, 8)])
@pytest.mark.parametrize("limit", ["MAX_CLIENT", "MAX_ALL"])
async def test_client_that_holds_too_much_is_refused(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, sent: bytes, limit: str
) -> None:
    monkeypatch.setattr(budget_module, limit, MIB)
    bystander, client = await setup.connect(), await setup.connect()
    await client.send(sent)
    assert b"C53200\0M" in await client.receive()
    await bystander.ask(SELECT)
    assert setup.budget.used == 0


async def test_client_that_holds_most_goes_before_one_that_needs_little(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_module, "MAX_ALL", MIB)
    greedy, client = await setup.connect(), await setup.connect()
    await greedy.send(unfinished(MIB - 1000))
    await until(lambda: setup.budget.used > MIB // 2)
    await client.ask(parse("name", "SELECT 'one'" + " " * 2000) + SYNC)
    assert b"C53200\0M" in await greedy.receive()
    await client.ask(SELECT)
    assert 0 < setup.budget.used < 10_000


async def test_tiny_messages_count_with_their_memory(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget_module, "MAX_CLIENT", MIB)
    setup.answer = lambda _model, _part: b""  # a server that takes its time
    client = await setup.connect()
    await client.send(SELECT + SYNC * 20_000)
    assert b"C53200\0M" in await client.receive()


async def test_too_long_message_is_refused_before_it_is_received(setup: Setup) -> None:
    client = await setup.connect()
    await client.send(message(b"Q", b"")[:1] + (1 << 29).to_bytes(4))
    assert b"C53200\0Ma pooled connection may hold 128 MiB" in await client.receive()


async def test_refused_server_is_requested_again(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "RETRY_DELAY", 0.01)
    setup.size = 2
    busy, client = await setup.connect(), await setup.connect()
    await busy.ask(query("BEGIN"))
    setup.refusal = ComputeRefusedError("sorry, too many clients already", "53300")
    await client.send(SELECT)
    await asyncio.sleep(0.05)
    setup.refusal = None
    assert await client.receive(len(ONE)) == ONE


async def test_clients_that_wait_for_a_refused_server_get_the_reason(setup: Setup) -> None:
    setup.refusal = ComputeRefusedError("sorry, too many clients already", "53300")
    client = await setup.connect()
    await client.send(SELECT)
    assert await client.receive() == error_response("sorry, too many clients already", "53300")


async def test_close_waits_for_servers_that_are_being_opened(setup: Setup) -> None:
    release, cleaned = asyncio.Event(), asyncio.Event()

    async def open_slowly() -> Opened:
        try:
            await release.wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned.set()
        return await setup.open()

    setup.pool.open_server = open_slowly
    client = await setup.connect()
    await client.send(SELECT)
    await asyncio.sleep(0.01)
    await setup.pool.close()
    assert cleaned.is_set()


async def test_client_waits_a_limited_time_for_a_server(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "QUERY_WAIT_TIMEOUT", 0.05)
    busy, client = await setup.connect(), await setup.connect()
    await busy.ask(query("BEGIN"))
    await client.send(SELECT)
    assert await client.receive() == error_response("query_wait_timeout", "08P01")
    await asyncio.sleep(0.05)
    await busy.ask(SELECT, Model().feed(SELECT)[:-1] + b"T")


async def test_client_waits_a_limited_time_for_its_settings(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "QUERY_WAIT_TIMEOUT", 0.05)
    setup.answer = lambda model, part: b"" if b"SET TimeZone" in part else model.feed(part)
    client, bystander = await setup.connect(), await setup.connect()
    client.pooled.state.settings[b"TimeZone"] = b"Mars"
    await client.send(SELECT)
    assert await client.receive() == error_response("query_wait_timeout", "08P01")
    await bystander.ask(SELECT)


async def test_cancel_request_hits_only_a_query_of_its_client(setup: Setup) -> None:
    setup.answer = lambda model, part: b"" if b"SET TimeZone" in part else model.feed(part)
    client, other = await setup.connect(), await setup.connect()
    client.pooled.state.settings[b"TimeZone"] = b"Mars"
    await client.send(SELECT)
    await until(lambda: client.pooled.server is not None)
    assert client.pooled.server is not None
    assert not client.pooled.server.is_cancellable
    client.leave()
    await other.ask(query("BEGIN"))
    assert other.pooled.server is not None
    assert other.pooled.server.is_cancellable


async def test_server_is_kept_while_a_cancel_request_is_on_its_way(setup: Setup) -> None:
    client, other = await setup.connect(), await setup.connect()
    await client.ask(query("BEGIN"))
    server = client.pooled.server
    assert server is not None
    cancelling = asyncio.create_task(server.cancel())
    await client.send(query("COMMIT"))
    await other.send(query("BEGIN"))
    await asyncio.sleep(0.02)
    assert other.pooled.server is None
    setup.cancelled.set()
    await cancelling
    await until(lambda: other.pooled.server is not None)


async def test_reset_waits_for_a_cancel_request_that_may_hit_it(setup: Setup) -> None:
    setup.answer = ignore_reset
    client, other = await setup.connect(), await setup.connect()
    await client.send(SELECT)
    await until(lambda: client.pooled.server is not None)
    server = client.pooled.server
    assert server is not None
    cancelling = asyncio.create_task(server.cancel())
    await until(lambda: server.is_resetting)
    setup.answer = Model.feed
    setup.servers[0].writer.write(setup.servers[0].model.feed(RESET_STATEMENTS))
    await other.send(SELECT)
    await asyncio.sleep(0.02)
    assert (client.pooled.server, other.pooled.server) == (server, None)
    setup.cancelled.set()
    await cancelling
    assert await client.receive(len(ONE)) == ONE
    assert await other.receive(len(ONE)) == ONE
    assert len(setup.servers) == 1


async def test_client_whose_server_is_busy_is_not_read_without_limit(setup: Setup) -> None:
    setup.answer = lambda model, part: b"" if b"busy" in part else model.feed(part)
    client = await setup.connect()
    await client.send(query("SELECT 'busy'"))
    sending = asyncio.create_task(client.send(SELECT * 1_000_000))
    await asyncio.sleep(0.2)
    assert not sending.done()
    assert sum(len(frame.data) for frame in client.pooled.frames) < 1_000_000
    sending.cancel()


async def test_client_of_a_server_that_does_not_read_is_not_read(setup: Setup) -> None:
    client = await setup.connect()
    await client.ask(query(COPY_IN))
    transport = setup.servers[0].writer.transport
    assert isinstance(transport, asyncio.ReadTransport)
    transport.pause_reading()
    sending = asyncio.create_task(client.send(message(b"d", b"1\n" * 100_000) * 200))
    await asyncio.sleep(0.2)
    assert not sending.done()
    sending.cancel()
    transport.resume_reading()
