"""Clients and servers that break off or send garbage: nothing leaks, and others are served."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from struct import pack

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from control_plane.tests.postgres.proxy.clients import (
    SSL_REQUEST,
    exchange,
    never_stopped,
    parse_refusal,
    route_to,
    startup,
)
from control_plane.tests.postgres.proxy.descriptors import count_descriptors
from neonctl_local.postgres.proxy.connector import Route
from neonctl_local.postgres.proxy.messages import Message, authentication
from neonctl_local.postgres.proxy.proxy import Proxy
from neonctl_local.postgres.proxy.startup import CancelRequest
from tests.support.until import until

STARTUP = startup(user="me", options="endpoint=ep-frost")
WITHOUT_ENDPOINT = startup(user="me")
PASSWORD = Message(b"p", b"endpoint=ep-frost;secret\0").encode()
SASL = authentication(10, b"SCRAM-SHA-256\0\0")
CHALLENGE = authentication(11, b"r=abc,s=c2FsdA==,i=1")
LOGIN = SASL + CHALLENGE + authentication(12, b"v=") + authentication(0)
READY = Message(b"K", b"12345678").encode() + Message(b"Z", b"I").encode()


class BrokenServer:
    """A server that sends given bytes after the first ones it receives, and closes."""

    def __init__(self) -> None:
        self.sends = b""
        self.received: list[bytes] = []
        self.closes = asyncio.Event()
        """Clear, to keep connections open."""
        self.closes.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received.append(await reader.read(65536))
        writer.write(self.sends)
        if self.sends:
            await writer.drain()
        await self.closes.wait()
        writer.close()


class Setup:
    """A proxy to a broken server, and the file descriptors before the first client."""

    def __init__(self, proxy: Proxy, port: int, server: BrokenServer) -> None:
        self.proxy = proxy
        self.port = port
        self.server = server
        self.descriptors = 0

    async def until_clients_are_gone(self) -> None:
        """Wait until nothing is left of the clients. Fail if something stays."""
        async with asyncio.timeout(5):
            await until(lambda: self.proxy.connections() == 0)
            await until(self._no_descriptors_left)

    async def _no_descriptors_left(self) -> bool:
        return await asyncio.to_thread(count_descriptors) == self.descriptors


@pytest.fixture
async def broken(path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Setup]:
    monkeypatch.setattr("neonctl_local.postgres.proxy.connector.RETRY_DELAYS", (0.0,))
    server = BrokenServer()

    async def find(_endpoint_id: str, _address: str) -> Route:
        return route_to(path)

    proxy = Proxy(find, never_stopped, host="127.0.0.1", port=0, tls=None, handshake_timeout=5)
    async with await asyncio.start_unix_server(server.serve, path):
        broken = Setup(proxy, await proxy.start(), server)
        broken.descriptors = await asyncio.to_thread(count_descriptors)
        yield broken
        await proxy.stop()


async def break_off(port: int, data: bytes, *, reset: bool) -> None:
    """Send bytes, and close or reset the connection without reading."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.settimeout(0)
        await loop.sock_connect(client, ("127.0.0.1", port))
        await loop.sock_sendall(client, data)
        if reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, pack("ii", 1, 0))


@pytest.mark.parametrize("reset", [False, True], ids=["close", "reset"])
@pytest.mark.parametrize(
    "conversation",
    [STARTUP, SSL_REQUEST + STARTUP, WITHOUT_ENDPOINT + PASSWORD, CancelRequest(bytes(8)).encode()],
    ids=["startup", "encryption", "password", "cancel"],
)
async def test_client_may_disconnect_after_each_byte(
    broken: Setup, conversation: bytes, reset: bool
) -> None:
    broken.server.sends = LOGIN
    for length in range(len(conversation) + 1):
        await break_off(broken.port, conversation[:length], reset=reset)
    await broken.until_clients_are_gone()


@pytest.mark.parametrize("conversation", [STARTUP, WITHOUT_ENDPOINT + PASSWORD])
async def test_server_may_close_after_each_byte_of_the_login(
    broken: Setup, conversation: bytes
) -> None:
    for length in range(len(LOGIN + READY) + 1):
        broken.server.sends = (LOGIN + READY)[:length]
        await exchange(broken.port, conversation)
    await broken.until_clients_are_gone()


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=64) | st.sampled_from([SSL_REQUEST, STARTUP]), max_size=4))
@example([b"GET / HTTP/1.1\r\n\r\n"])
@example([pack("!i", 9_999), b"\0" * 9_995])
async def test_client_that_sends_garbage_is_disconnected(
    broken: Setup, garbage: list[bytes]
) -> None:
    """The client closes its side, so an incomplete packet is an end of the connection."""
    loop = asyncio.get_running_loop()
    with socket.socket() as client:
        client.settimeout(0)
        await loop.sock_connect(client, ("127.0.0.1", broken.port))
        await loop.sock_sendall(client, b"".join(garbage))
        client.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(5):
            while await received(client):
                pass
    await broken.until_clients_are_gone()


async def received(client: socket.socket) -> bytes:
    try:
        return await asyncio.get_running_loop().sock_recv(client, 65536)
    except ConnectionResetError:
        return b""


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=100))
async def test_server_that_sends_garbage_ends_the_session(broken: Setup, garbage: bytes) -> None:
    broken.server.sends = SASL + garbage
    assert await exchange(broken.port, STARTUP) == SASL + garbage
    broken.server.sends = garbage
    await exchange(broken.port, STARTUP)
    await broken.until_clients_are_gone()


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (pack("!ii", 10_001, 3 << 16), "invalid length of startup packet"),
        (pack("!ii", 2**30, 3 << 16), "invalid length of startup packet"),
        (pack("!ii", -1, 3 << 16), "invalid length of startup packet"),
        (
            WITHOUT_ENDPOINT + b"p" + pack("!i", 2**30) + bytes(100_000),
            "the password message has 1073741820 bytes: expected at most 10000",
        ),
    ],
)
async def test_long_messages_are_refused_before_they_are_read(
    broken: Setup, packet: bytes, message: str
) -> None:
    response = await exchange(broken.port, packet)
    refusal = parse_refusal(response.removeprefix(authentication(3)))
    assert refusal == ("FATAL", "08P01", message)
    await broken.until_clients_are_gone()


async def test_key_of_a_finished_session_is_forgotten(broken: Setup) -> None:
    broken.server.sends = LOGIN + READY
    await exchange(broken.port, STARTUP)
    await broken.until_clients_are_gone()
    request = CancelRequest(b"12345678").encode()
    assert await exchange(broken.port, request) == b""
    assert request not in broken.server.received


async def test_key_of_an_open_session_is_known(broken: Setup) -> None:
    broken.server.sends = LOGIN + READY
    broken.server.closes.clear()
    reader, writer = await asyncio.open_connection("127.0.0.1", broken.port)
    writer.write(STARTUP)
    await reader.readexactly(len(LOGIN + READY))
    request = CancelRequest(b"12345678").encode()
    cancelling = asyncio.create_task(exchange(broken.port, request))
    await until(lambda: request in broken.server.received)
    broken.server.closes.set()
    await cancelling
    writer.close()
    await broken.until_clients_are_gone()


async def test_stop_closes_clients_in_every_state(broken: Setup) -> None:
    opened = [
        await asyncio.open_connection("127.0.0.1", broken.port)
        for _ in range(len(WITHOUT_ENDPOINT + PASSWORD))
    ]
    for length, (_, writer) in enumerate(opened):
        if length:
            writer.write((WITHOUT_ENDPOINT + PASSWORD)[:length])
    await broken.proxy.stop()
    assert broken.proxy.connections() == 0
    for reader, writer in opened:
        with suppress(ConnectionError):
            await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
