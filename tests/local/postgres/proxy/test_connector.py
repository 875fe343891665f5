"""Connections of clients to the servers of their computes."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from neonctl_async.local.postgres.proxy.connector import (
    Route,
    cancel_query,
    connect,
    open_server,
    while_connected,
)
from neonctl_async.local.postgres.proxy.errors import ComputeRefusedError
from neonctl_async.local.postgres.proxy.startup import CancelRequest, StartupMessage
from neonctl_async.local.postgres.proxy.streams import Stream

STARTUP = StartupMessage(3 << 16, {b"user": b"me", b"options": b"endpoint=ep-frost"})
FOR_SERVER = StartupMessage(3 << 16, {b"user": b"me"})


@pytest.fixture
def listening(path: Path) -> Iterator[socket.socket]:
    """A server that listens at ``path``."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(1)
        listening.settimeout(0)
        yield listening


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Stream, Stream]]:
    """The stream of a client, and the stream of the proxy."""
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(0)
        other.settimeout(0)
        yield Stream(one), Stream(other)


def accept(listening: socket.socket) -> Stream:
    server, _ = listening.accept()
    server.settimeout(0)
    return Stream(server)


async def test_server_receives_the_startup_message_and_early_bytes(
    pair: tuple[Stream, Stream], listening: socket.socket, path: Path
) -> None:
    client, proxy = pair
    endpoints: list[str] = []

    async def find(endpoint_id: str) -> Route:
        assert endpoints == [endpoint_id]
        await client.send(b"early")
        await asyncio.sleep(0.01)
        return Route(path, read_only=False)

    connected = await connect(proxy, STARTUP, None, find, endpoints.append)
    assert connected is not None
    server = accept(listening)
    expected = FOR_SERVER.encode() + b"early"
    assert await server.read_exactly(len(expected)) == expected
    server.sock.close()
    connected.server.close()


async def test_start_of_the_compute_is_not_awaited_after_a_disconnect(
    pair: tuple[Stream, Stream],
) -> None:
    client, proxy = pair
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def find(_endpoint_id: str) -> Route:
        started.set()
        try:
            return await asyncio.Future()
        finally:
            cancelled.set()

    connecting = asyncio.create_task(connect(proxy, STARTUP, None, find, lambda _: None))
    await started.wait()
    client.sock.close()
    with pytest.raises(EOFError):
        await connecting
    assert cancelled.is_set()


async def test_compute_that_was_suspended_in_between_is_started_again(
    pair: tuple[Stream, Stream], listening: socket.socket, path: Path
) -> None:
    _, proxy = pair
    paths = [path.with_name("missing"), path]

    async def find(_endpoint_id: str) -> Route:
        return Route(paths.pop(0), read_only=False)

    connected = await connect(proxy, STARTUP, None, find, lambda _: None)
    assert connected is not None
    assert connected.path == path
    connected.server.close()
    listening.accept()[0].close()


async def test_compute_that_always_stops_is_reported(
    pair: tuple[Stream, Stream], path: Path
) -> None:
    _, proxy = pair

    async def find(_endpoint_id: str) -> Route:
        return Route(path, read_only=False)

    with pytest.raises(ComputeRefusedError, match="the compute stopped") as caught:
        await connect(proxy, STARTUP, None, find, lambda _: None)
    assert caught.value.code == "57P03"


async def test_connection_waits_for_a_server_with_a_full_queue(
    listening: socket.socket, path: Path
) -> None:
    with ExitStack() as stack:
        connecting = [asyncio.create_task(open_server(path)) for _ in range(5)]
        for _ in connecting:
            while True:
                try:
                    stack.enter_context(listening.accept()[0])
                except BlockingIOError:
                    await asyncio.sleep(0.001)
                else:
                    break
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


async def test_cancel_request_waits_until_the_server_has_executed_it(
    listening: socket.socket, path: Path
) -> None:
    request = CancelRequest(b"12345678")
    cancelling = asyncio.create_task(cancel_query(path, request))
    await asyncio.sleep(0.01)
    server = accept(listening)
    assert await server.read_exactly(16) == request.encode()
    assert not cancelling.done()
    server.sock.close()
    await cancelling
