"""A local control plane without sockets, and what holds for every exchange with it.

The server runs on a fake clock, so deadlines take no time.
"""

import asyncio
import json
import logging
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

from aiohttp import web

from neonctl_async.testing import loop_clock
from neonctl_local import LocalControlPlane
from neonctl_local.server.connections import Connection, Connections
from tools.fuzz.draw import Draw
from tools.fuzz.server.requests import World, a_request

PATIENCE = 3600.0
"""The seconds of the fake clock after which a connection must be closed."""
INPUTS_PER_WORLD = 25
ALLOWED = frozenset({501})
"""Statuses from 500 on that are not defects: the endpoint is published, and not served."""
_STATUS_LINE = re.compile(rb"HTTP/\d\.\d (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")


class ViolationError(AssertionError):
    """An exchange that must not happen."""


class ServerWithoutSockets(LocalControlPlane):
    """A local control plane whose connections are made by the fuzzer."""

    connect: Callable[[], Connection]

    async def _listen(self, server: web.Server, connections: Connections) -> int:
        self.connect = lambda: Connection(server, connections)
        self._names.ports = frozenset({80})
        return 80


class FakeTransport(asyncio.Transport):
    """A transport that keeps what the server writes."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 80)})
        self.protocol = protocol
        self.written = bytearray()
        self.closed = asyncio.Event()
        self.may_read = asyncio.Event()
        self.may_read.set()
        self._is_closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep the data, unless the transport is closed."""
        if not self._is_closing:
            self.written += data

    def close(self) -> None:
        """Close the connection in the next iteration of the loop."""
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self._lose)

    def abort(self) -> None:
        """Close the connection, as :meth:`close` does."""
        self.close()

    def is_closing(self) -> bool:
        """Return whether the connection is closed."""
        return self._is_closing

    def get_write_buffer_size(self) -> int:
        """Return 0: the client reads at once."""
        return 0

    def pause_reading(self) -> None:
        """Send nothing more to the server."""
        self.may_read.clear()

    def resume_reading(self) -> None:
        """Continue to send."""
        self.may_read.set()

    def _lose(self) -> None:
        self.protocol.connection_lost(None)
        self.may_read.set()
        self.closed.set()


class _Log(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        line = record.getMessage()
        self.lines.append(line)
        if record.levelno >= logging.ERROR or record.exc_info:
            self.errors.append(f"{line}: {record.exc_info}")


class Exchanges:
    """Sends inputs to one server, and checks the responses."""

    def __init__(self, server: ServerWithoutSockets, log: _Log) -> None:
        self._server = server
        self._log = log
        self.world = World("127.0.0.1", [server.api_key], {})
        self.statuses: dict[int, int] = {}
        self._inputs = 0
        self.last_sent: list[bytes] = []
        """The parts of the last input, for the report of a violation."""

    async def renew(self) -> None:
        """Create the objects again, because inputs delete them and revoke keys."""
        await self._server.reset()
        self.world.keys = [self._server.api_key]
        self.world = await _populate(self, self._server)

    async def run(self, data: bytes) -> None:
        """Run one input: one or two connections at the same time.

        Raise ViolationError for a defect.
        """
        self._inputs += 1
        if self._inputs % INPUTS_PER_WORLD == 1:
            await self.renew()
        draw = Draw(data)
        connections = [_parts(draw, self.world) for _ in range(1 + draw.byte() // 192)]
        self.last_sent = [part for parts in connections for part in parts]
        before = asyncio.all_tasks()
        self._log.lines.clear()
        written = await asyncio.gather(*map(self._send, connections))
        for bytes_written in written:
            self._check_responses(bytes_written)
        self._check_log()
        await asyncio.sleep(0)
        if left := asyncio.all_tasks() - before:
            raise ViolationError(f"tasks continue after the exchange: {left}")

    async def call(self, method: str, path: str, body: object = None, key: str = "") -> Any:  # noqa: ANN401 - each caller knows the shape of the JSON response
        """Send a valid request. Return the decoded response."""
        content = b"" if body is None else json.dumps(body).encode()
        head = (
            f"{method} /api/v2{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            f"Authorization: Bearer {key or self.world.keys[0]}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        written = await self._send([head.encode() + content])
        return json.loads(written.partition(b"\r\n\r\n")[2])

    async def _send(self, parts: Sequence[bytes]) -> bytes:
        connection = self._server.connect()
        transport = FakeTransport(connection)
        connection.connection_made(transport)
        try:
            async with asyncio.timeout(PATIENCE):
                for part in parts:
                    await transport.may_read.wait()
                    if transport.is_closing():
                        break
                    connection.data_received(part)
                    await asyncio.sleep(0)
                await transport.closed.wait()
        except TimeoutError:
            raise ViolationError("the server did not close the connection") from None
        return bytes(transport.written)

    def _check_responses(self, written: bytes) -> None:
        for match in _STATUS_LINE.finditer(written):
            status, headers = int(match[1]), match[2].decode().lower()
            self.statuses[status] = self.statuses.get(status, 0) + 1
            if status == 100:
                continue
            if status >= 500 and status not in ALLOWED:
                raise ViolationError(f"the status is {status}: {written[:2000]!r}")
            if "\r\nserver:" in headers or "x-neon-ret-request-id:" not in headers:
                raise ViolationError(f"headers of a response: {headers}")
            if status >= 400 and "content-type: application/json\r\n" not in headers:
                raise ViolationError(f"an error without JSON: {headers}")
        if written and not _STATUS_LINE.match(written):
            raise ViolationError(f"this is no response: {written[:200]!r}")

    def _check_log(self) -> None:
        if self._log.errors:
            raise ViolationError(f"the log has an error: {self._log.errors[0]}")
        seen = [*self._log.lines, *(request.path for request in self._server.requests)]
        for text in seen:
            decoded = unquote(unquote(text)).lower()
            if any(key.rpartition("_")[2] in decoded for key in self.world.keys):
                raise ViolationError(f"a key is in the log or in requests: {text}")


def _parts(draw: Draw, world: World) -> list[bytes]:
    """Return the bytes of a connection, in the parts in which they arrive."""
    sent = b"".join(a_request(draw, world) for _ in range(1 + draw.byte() // 128))
    if draw.byte() >= 240 and sent:
        sent = sent[: draw.number() % len(sent)]
    cuts = sorted(draw.number() % (len(sent) + 1) for _ in range(draw.byte() // 86))
    return [sent[start:end] for start, end in zip((0, *cuts), (*cuts, len(sent)), strict=True)]


@asynccontextmanager
async def exchanges() -> AsyncGenerator[Exchanges]:
    """Run a server whose log is searched for errors and keys."""
    loop = asyncio.get_running_loop()
    log = _Log()
    loop.set_exception_handler(lambda _, context: log.errors.append(str(context)))
    logger = logging.getLogger("neonctl_local")
    level, propagates = logger.level, logger.propagate
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    logger.addHandler(log)
    try:
        async with ServerWithoutSockets(clock=loop_clock(), lock="none") as server:
            yield Exchanges(server, log)
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)
        logger.propagate = propagates
        loop.set_exception_handler(None)


async def _populate(running: Exchanges, server: ServerWithoutSockets) -> World:
    """Create a project with two branches, a snapshot, and keys of each kind."""
    org_id = server.org_id
    call = running.call
    created = await call("POST", "/projects", {"project": {"org_id": org_id, "name": "shop"}})
    project = created["project"]["id"]
    main = created["branch"]["id"]
    with_compute = {"endpoints": [{"type": "read_write"}]}
    branch = await call("POST", f"/projects/{project}/branches", with_compute)
    await asyncio.sleep(10)
    snapshot = await call("POST", f"/projects/{project}/branches/{main}/snapshot")
    keys = [
        await call("POST", "/api_keys", {"key_name": "other"}),
        await call("POST", f"/organizations/{org_id}/api_keys", {"key_name": "organization"}),
        await call(
            "POST",
            f"/organizations/{org_id}/api_keys",
            {"key_name": "project", "project_id": project},
        ),
    ]
    members = await call("GET", f"/organizations/{org_id}/members")
    ids = {
        "project_id": [project],
        "org_id": [org_id],
        "branch_id": [main, branch["branch"]["id"]],
        "endpoint_id": [created["endpoints"][0]["id"], branch["endpoints"][0]["id"]],
        "operation_id": [operation["id"] for operation in created["operations"]],
        "role_name": ["neondb_owner"],
        "database_name": ["neondb"],
        "snapshot_id": [snapshot["snapshot"]["id"]],
        "key_id": [str(key["id"]) for key in keys],
        "member_id": [members["members"][0]["member"]["id"]],
        "user_id": [server.user_id],
        "region_id": ["aws-us-east-2"],
    }
    return World("127.0.0.1", [server.api_key, *(key["key"] for key in keys)], ids)
