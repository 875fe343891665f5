"""Connections of clients to the servers of their computes."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from control_plane.tests.postgres.proxy.clients import never_stopped, route_to
from neonctl_local.postgres.proxy import connector
from neonctl_local.postgres.proxy.connector import (
    Route,
    cancel_query,
    connect,
    is_serving,
    open_server,
    while_connected,
)
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.messages import authentication, error_response
from neonctl_local.postgres.proxy.startup import CancelRequest, StartupMessage
from neonctl_local.postgres.proxy.streams import Stream, attempt
from tests.support.until import until

STARTUP = StartupMessage(3 << 16, {b"user": b"me", b"options": b"endpoint=ep-frost"})
READY = authentication(10, b"SCRAM-SHA-256\0\0")
STOPPING = error_response("the database system is shutting down", "57P03")
FOR_SERVER = StartupMessage(3 << 16, {b"user": b"me"})


class FakeServer:
    """A server that sends one of the given messages to each client, and keeps them open."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.responses: list[bytes] = []
        self.received: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received.append(await reader.read(65536))
        if self.responses and (response := self.responses.pop(0)):
            writer.write(response)
            if response == READY:
                self.received.append(await reader.read(65536))
        writer.close()

    async def find(self) -> Route:
        return route_to(self.path)


@pytest.fixture
async def server(path: Path) -> AsyncIterator[FakeServer]:
    server = FakeServer(path)
    async with await asyncio.start_unix_server(server.serve, path):
        yield server


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "RETRY_DELAYS", (0.0, 0.0))


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Stream, Stream]]:
    """The stream of a client, and the stream of the proxy."""
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(0)
        other.settimeout(0)
        yield Stream(one), Stream(other)


async def test_server_receives_the_startup_message_and_early_bytes(
    pair: tuple[Stream, Stream], server: FakeServer
) -> None:
    client, proxy = pair
    server.responses = [READY]

    async def find() -> Route:
        await client.send(b"early")
        await asyncio.sleep(0.01)
        return route_to(server.path)

    connected = await connect(proxy, STARTUP, None, find, never_stopped)
    assert connected is not None
    assert await client.read_exactly(len(READY)) == READY
    await until(lambda: len(server.received) == 2)
    assert server.received == [FOR_SERVER.encode(), b"early"]
    connected.server.sock.close()


async def test_start_of_the_compute_is_not_awaited_after_a_disconnect(
    pair: tuple[Stream, Stream],
) -> None:
    client, proxy = pair
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def find() -> Route:
        started.set()
        try:
            return await asyncio.Future()
        finally:
            cancelled.set()

    connecting = asyncio.create_task(connect(proxy, STARTUP, None, find, never_stopped))
    await started.wait()
    client.sock.close()
    with pytest.raises(EOFError):
        await connecting
    assert cancelled.is_set()


@pytest.mark.parametrize(
    "responses", [[STOPPING, READY], [b"", READY], [STOPPING[:10], STOPPING, READY]]
)
async def test_server_that_stops_is_connected_again(
    pair: tuple[Stream, Stream], server: FakeServer, responses: list[bytes]
) -> None:
    client, proxy = pair
    server.responses = responses.copy()
    connected = await connect(proxy, STARTUP, None, server.find, never_stopped)
    assert connected is not None
    assert await client.read_exactly(len(READY)) == READY
    connected.server.sock.close()


async def test_compute_that_was_suspended_in_between_is_started_again(
    pair: tuple[Stream, Stream], server: FakeServer
) -> None:
    _, proxy = pair
    server.responses = [READY]
    paths = [server.path.with_name("missing"), server.path]

    async def find() -> Route:
        return route_to(paths.pop(0))

    connected = await connect(proxy, STARTUP, None, find, never_stopped)
    assert connected is not None
    assert connected.route.socket == server.path
    connected.server.sock.close()


async def test_server_that_does_not_start_reports_the_reason(
    pair: tuple[Stream, Stream], server: FakeServer
) -> None:
    client, proxy = pair
    server.responses = [STOPPING] * 3
    connected = await connect(proxy, STARTUP, None, server.find, never_stopped)
    assert connected is not None
    assert await client.read_exactly(len(STOPPING)) == STOPPING
    connected.server.sock.close()


async def test_compute_that_always_stops_is_reported(
    pair: tuple[Stream, Stream], path: Path
) -> None:
    _, proxy = pair
    with pytest.raises(ComputeRefusedError, match="the compute stopped") as caught:
        await connect(proxy, STARTUP, None, FakeServer(path).find, never_stopped)
    assert caught.value.code == "57P03"


async def test_malformed_message_of_a_server_is_reported(
    pair: tuple[Stream, Stream], server: FakeServer
) -> None:
    _, proxy = pair
    server.responses = [b"R\x7f\xff\xff\xff"]
    with pytest.raises(ComputeRefusedError, match="the server sent a malformed message"):
        await connect(proxy, STARTUP, None, server.find, never_stopped)


async def test_connection_waits_for_a_server_with_a_full_queue(path: Path) -> None:
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(str(path))
        listening.listen(1)
        listening.settimeout(0)
        connecting = [asyncio.create_task(open_server(path)) for _ in range(5)]
        for _ in connecting:
            accepted, _ = await attempt(listening, listening.accept)
            stack.enter_context(accepted)
        for server in await asyncio.gather(*connecting):
            server.close()


async def test_error_of_the_wait_is_raised(pair: tuple[Stream, Stream]) -> None:
    async def fail() -> None:
        raise ComputeRefusedError("no compute")

    with pytest.raises(ComputeRefusedError, match="no compute"):
        await while_connected(pair[1], fail())


async def test_client_that_sends_much_before_its_session_is_not_read_further(
    pair: tuple[Stream, Stream],
) -> None:
    client, proxy = pair
    enough = asyncio.Event()
    sending = asyncio.create_task(client.send(bytes(2_000_000)))
    waiting = asyncio.create_task(while_connected(proxy, enough.wait()))
    await asyncio.sleep(0.02)
    assert not sending.done()
    enough.set()
    assert await waiting
    assert len(proxy.take_unread()) < 100_000
    sending.cancel()


async def test_cancel_request_waits_until_the_server_has_executed_it(server: FakeServer) -> None:
    request = CancelRequest(b"12345678")
    await cancel_query(server.path, request)
    assert server.received == [request.encode()]


@pytest.mark.parametrize("response", [READY, STOPPING, b""])
async def test_server_says_whether_it_serves(server: FakeServer, response: bytes) -> None:
    server.responses = [response]
    assert await is_serving(await server.find()) == (response == READY)


async def test_server_without_a_socket_does_not_serve(path: Path) -> None:
    assert not await is_serving(route_to(path))


async def test_slow_server_may_serve(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connector, "_PROBE_TIMEOUT", 0.01)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        assert await is_serving(route_to(path))
