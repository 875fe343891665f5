"""A small HTTP server on a real socket, which can send invalid responses."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import NamedTuple, Self

from neonctl_local.server.connections import stop_listening

Respond = Callable[[asyncio.StreamWriter], Awaitable[None]]


class Received(NamedTuple):
    """A request as the server received it."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def json(self) -> object:
        return json.loads(self.body)


def http_response(
    status: int = 200,
    content: object = None,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Respond:
    """Return a valid response with ``content`` as JSON, or with ``body``."""
    payload = json.dumps(content).encode() if body is None else body
    fields = {
        "Content-Type": "application/json",
        "Content-Length": str(len(payload)),
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return raw(f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + payload)


def raw(sent: bytes) -> Respond:
    async def respond(writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await writer.drain()

    return respond


def drop(after: bytes = b"") -> Respond:
    """Send ``after``, and close the connection."""

    async def respond(writer: asyncio.StreamWriter) -> None:
        writer.write(after)
        writer.close()

    return respond


OK = http_response(content={})
"""A successful response with an empty object."""


async def hang(_writer: asyncio.StreamWriter) -> None:
    """Never respond."""
    await asyncio.Event().wait()


def in_sequence(*responses: Respond) -> Callable[[Received], Respond]:
    """Send each response once, in order, and repeat the last one."""
    remaining: Iterator[Respond] = iter(responses)
    last = responses[-1]
    return lambda _request: next(remaining, last)


class Server:
    """Serves each connection in its own task, within ``async with``."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.connections = 0
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(self, *_exc_info: object) -> None:
        await stop_listening(self._server)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def port(self) -> int:
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def open_connections(self) -> int:
        return len(self._tasks)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection. The caller closes it afterwards."""
        raise NotImplementedError

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self.handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has disconnected, or the test has finished
        finally:
            self._tasks.discard(task)
            writer.close()


class MisbehavingServer(Server):
    """Records all requests, and sends the responses that ``respond`` returns."""

    def __init__(
        self, respond: Callable[[Received], Respond], tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(tls)
        self.received: list[Received] = []
        self._respond = respond

    @property
    def base_url(self) -> str:
        if self._tls is not None:
            return f"https://localhost:{self.port}/api/v2"
        return f"http://127.0.0.1:{self.port}/api/v2"

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing() and (request := await _read(reader)) is not None:
            self.received.append(request)
            await self._respond(request)(writer)


async def _read(reader: asyncio.StreamReader) -> Received | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    request_line, *lines = head.strip().split("\r\n")
    method, target, _version = request_line.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Received(method, target, headers, body)
