"""Compares the requests and results of calls with the expected ones, over a real socket."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from neonctl_async import NeonClient
from tests.support.records import client_of
from tests.support.server import MisbehavingServer, Received, http_response, in_sequence


class SentRequest(NamedTuple):
    """The parts of a request. The value of a repeated query parameter is a list."""

    method: str
    path: str
    query: dict[str, str | list[str]]
    body: object


class Exchange(NamedTuple):
    """A client and its server."""

    neon: NeonClient
    server: MisbehavingServer

    @property
    def sent(self) -> SentRequest:
        """The only request of the client."""
        [request] = self.all_sent
        return request

    @property
    def all_sent(self) -> list[SentRequest]:
        """All requests of the client."""
        return [_parse(request) for request in self.server.received]


@asynccontextmanager
async def responding_with(
    content: object = None, status: int = 200, *, body: bytes | None = None
) -> AsyncGenerator[Exchange, None]:
    """Run a client whose server always responds with ``content`` as JSON, or with ``body``."""
    async with (
        MisbehavingServer(lambda _request: http_response(status, content, body=body)) as server,
        client_of(server) as neon,
    ):
        yield Exchange(neon, server)


@asynccontextmanager
async def responding_in_sequence(*contents: object) -> AsyncGenerator[Exchange, None]:
    """Run a client whose server responds with each of ``contents`` once."""
    responses = in_sequence(*(http_response(200, content) for content in contents))
    async with MisbehavingServer(responses) as server, client_of(server) as neon:
        yield Exchange(neon, server)


@dataclass(frozen=True)
class Call:
    """A call, the request that it sends, the response to it (None: empty), and its result."""

    function: Callable[[NeonClient], Awaitable[object]]
    sends: SentRequest
    response: object
    returns: object

    def __str__(self) -> str:
        return f"{self.sends.method} {self.sends.path}"


async def check_call(call: Call) -> None:
    """Make a call, and compare its request and its result with the expected ones."""
    status, body = (204, b"") if call.response is None else (200, None)
    async with responding_with(call.response, status, body=body) as exchange:
        result = await call.function(exchange.neon)
    assert exchange.sent == call.sends
    assert result == call.returns


def _parse(request: Received) -> SentRequest:
    target = urlsplit(request.target)
    query = parse_qs(target.query, keep_blank_values=True)
    return SentRequest(
        request.method,
        target.path.removeprefix("/api/v2"),
        {name: values if len(values) > 1 else values[0] for name, values in query.items()},
        request.json() if request.body else None,
    )
