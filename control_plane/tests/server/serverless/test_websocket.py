"""``/v2``: the Postgres protocol over a WebSocket, as Neon's serverless driver speaks it."""

import asyncio
import socket
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import aiohttp
import pytest

from neonctl_async.types import ProjectCreated
from neonctl_local import ConnectionLimits, LocalControlPlane
from neonctl_local.postgres.client import messages
from neonctl_local.postgres.proxy.messages import decode_header
from neonctl_local.postgres.proxy.startup import StartupMessage
from tests.support.databases import databases, uri_of

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]


class Session:
    """The client's side of a session over a WebSocket."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self.websocket = websocket
        self.received = b""

    async def until(self, *last: bytes) -> list[tuple[bytes, bytes]]:
        """Return the messages up to the first of these kinds, which is the last one."""
        found: list[tuple[bytes, bytes]] = []
        while True:
            while len(self.received) < 5 or len(self.received) < 5 + self._length():
                self.received += await self.websocket.receive_bytes()
            (kind, length), rest = decode_header(self.received[:5]), self.received[5:]
            found.append((kind, rest[:length]))
            self.received = rest[length:]
            if kind in last:
                return found

    def _length(self) -> int:
        return decode_header(self.received[:5])[1]


@asynccontextmanager
async def running(**settings: Any) -> AsyncGenerator[tuple[LocalControlPlane, ProjectCreated]]:
    async with databases(**settings) as (control_plane, neon):
        yield control_plane, await neon.projects.create(name="test", wait=True)


def address_of(control_plane: LocalControlPlane) -> str:
    return control_plane.base_url.replace("/api/v2", "/v2").replace("http://", "ws://")


def greeting(uri: str, *, password: str | None = None, options: bool = True) -> bytes:
    """Return what the driver sends first, without waiting: startup, password and a query."""
    parts = urlsplit(uri)
    parameters = {"user": unquote(parts.username or ""), "database": parts.path[1:]}
    if options:
        parameters["options"] = dict(parse_qsl(parts.query))["options"]
    encoded = {name.encode(): value.encode() for name, value in parameters.items()}
    secret = unquote(parts.password or "") if password is None else password
    return (
        StartupMessage(3 << 16, encoded).encode()
        + messages.password(secret)
        + messages.query("SELECT 42")
    )


async def test_startup_password_and_query_may_come_in_one_message() -> None:
    async with running() as (control_plane, project), aiohttp.ClientSession() as http:
        async with http.ws_connect(address_of(control_plane)) as websocket:
            session = Session(websocket)
            await websocket.send_bytes(greeting(uri_of(project)))
            started = await session.until(b"Z")
            assert started[0] == (b"R", b"\0\0\0\3")  # the request for a password in clear text
            [row] = [payload for kind, payload in await session.until(b"Z") if kind == b"D"]
            assert row.endswith(b"42")


async def test_host_of_the_compute_may_be_in_the_address() -> None:
    async with running() as (control_plane, project), aiohttp.ClientSession() as http:
        url = f"{address_of(control_plane)}?address={project.endpoints[0].host}:5432"
        async with http.ws_connect(url) as websocket:
            await websocket.send_bytes(greeting(uri_of(project), options=False))
            assert (await Session(websocket).until(b"Z"))[-1] == (b"Z", b"I")


async def test_large_results_wait_for_their_reader() -> None:
    async with running() as (control_plane, project), aiohttp.ClientSession() as http:
        async with http.ws_connect(address_of(control_plane), max_msg_size=0) as websocket:
            session = Session(websocket)
            await websocket.send_bytes(greeting(uri_of(project)))
            for _ in range(2):
                await session.until(b"Z")
            await websocket.send_bytes(messages.query("SELECT repeat('x', 10000000)"))
            [(_, row)] = [one for one in await session.until(b"Z") if one[0] == b"D"]
            assert len(row) == 10_000_000 + 6


async def test_texts_are_not_the_protocol() -> None:
    async with running() as (control_plane, _), aiohttp.ClientSession() as http:
        async with http.ws_connect(address_of(control_plane)) as websocket:
            await websocket.send_str("SELECT 1")
            closed = await websocket.receive()
            assert (closed.data, closed.extra) == (1003, "expected binary messages")


async def test_sessions_end_with_the_server() -> None:
    async with aiohttp.ClientSession() as http:
        async with running() as (control_plane, project):
            websocket = await http.ws_connect(address_of(control_plane))
            await websocket.send_bytes(greeting(uri_of(project)))
            await Session(websocket).until(b"Z")
        async with asyncio.timeout(5):
            while (message := await websocket.receive()).type is aiohttp.WSMsgType.BINARY:
                pass
        assert message.type is aiohttp.WSMsgType.CLOSE
        await websocket.close()


async def test_pages_of_other_origins_may_not_connect() -> None:
    async with running(allowed_origins=["http://localhost:3000"]) as (control_plane, _):
        async with aiohttp.ClientSession() as http:
            async with http.ws_connect(
                address_of(control_plane), origin="http://localhost:3000"
            ) as websocket:
                assert not websocket.closed
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(address_of(control_plane), origin="http://localhost:3001")
            assert refused.value.status == 403


async def test_request_without_a_handshake_is_told_what_the_address_serves() -> None:
    async with running() as (control_plane, _):
        url = address_of(control_plane).replace("ws://", "http://")
        async with aiohttp.ClientSession() as http, http.get(url) as response:
            assert response.status == 400
            assert "/v2 serves WebSockets" in (await response.json())["message"]


async def test_client_that_never_reads_does_not_delay_the_stop() -> None:
    async with running() as (control_plane, project):
        url = urlsplit(address_of(control_plane))
        with socket.socket() as stalled:
            stalled.setblocking(False)
            stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            await asyncio.get_running_loop().sock_connect(stalled, (url.hostname, url.port))
            reader, writer = await asyncio.open_connection(sock=stalled, limit=4096)
            upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13"
            key = f"Sec-WebSocket-Key: {b64encode(bytes(16)).decode()}"
            head = f"GET /v2 HTTP/1.1\r\nHost: {url.netloc}\r\n{upgrade}\r\n{key}\r\n\r\n"
            writer.write(head.encode())
            await reader.readuntil(b"\r\n\r\n")
            sent = greeting(uri_of(project)) + messages.query(
                "SELECT repeat('x', 1000) FROM generate_series(1, 100000)"
            )
            # One binary message, masked with zeros.
            writer.write(b"\x82\xfe" + len(sent).to_bytes(2) + bytes(4) + sent)
            while b"xxx" not in await reader.read(4096):
                pass
            await control_plane.stop()
            writer.transport.abort()


async def test_message_before_the_login_is_not_kept() -> None:
    async with running() as (control_plane, project), aiohttp.ClientSession() as http:
        async with http.ws_connect(address_of(control_plane)) as websocket:
            await websocket.send_bytes(bytes(1 << 20))
            [(_, error)] = await Session(websocket).until(b"E")
            assert "send the password in a smaller one" in messages.decode_message(error).message
        async with http.ws_connect(address_of(control_plane), max_msg_size=0) as websocket:
            session = Session(websocket)
            await websocket.send_bytes(greeting(uri_of(project)))
            # It waits for the login.
            await websocket.send_bytes(messages.query(f"SELECT length('{'x' * 1_000_000}')"))
            rows: list[bytes] = []
            while len(rows) < 2:
                rows += [row for kind, row in await session.until(b"Z") if kind == b"D"]
            assert rows[1].endswith(b"1000000")


async def test_large_message_without_memory_is_refused() -> None:
    limits = ConnectionLimits(memory=8 << 20)
    async with running(connections=limits) as (control_plane, project):
        async with aiohttp.ClientSession() as http:
            address = address_of(control_plane)
            async with http.ws_connect(address, max_msg_size=0) as websocket:
                session = Session(websocket)
                await websocket.send_bytes(greeting(uri_of(project)))
                for _ in range(2):
                    await session.until(b"Z")
                for _ in range(20):  # one after another, they need no more than one
                    await websocket.send_bytes(messages.query("--" + "x" * 2_000_000))
                    await session.until(b"Z")
                await websocket.send_bytes(messages.query("--" + "x" * 8_000_000))
                [(_, error)] = await session.until(b"E")
                assert messages.decode_message(error).sqlstate == "53200"
                assert (await websocket.receive()).data == aiohttp.WSCloseCode.TRY_AGAIN_LATER
