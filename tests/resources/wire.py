"""What is asked over a socket, and what a method hands back for an answer."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from neonctl_async import NeonClient
from tests.support.records import client_of
from tests.support.server import MisbehavingServer, Received, http_response, in_turn


class Asked(NamedTuple):
    """A request, taken apart. A query parameter that is repeated is a list."""

    method: str
    path: str
    query: dict[str, str | list[str]]
    body: object


class Exchange(NamedTuple):
    """A client, and the server that answers it."""

    neon: NeonClient
    server: MisbehavingServer

    @property
    def asked(self) -> Asked:
        """The one request that was sent."""
        [asked] = self.all_asked
        return asked

    @property
    def all_asked(self) -> list[Asked]:
        """The requests that were sent."""
        return [_taken_apart(request) for request in self.server.received]


@asynccontextmanager
async def answering(
    content: object = None, status: int = 200, *, body: bytes | None = None
) -> AsyncGenerator[Exchange, None]:
    """A client that is always answered with ``content``, or with ``body`` as it is."""
    async with (
        MisbehavingServer(lambda _request: http_response(status, content, body=body)) as server,
        client_of(server) as neon,
    ):
        yield Exchange(neon, server)


@asynccontextmanager
async def answering_in_turn(*contents: object) -> AsyncGenerator[Exchange, None]:
    """A client that is answered with each of ``contents`` once."""
    responses = in_turn(*(http_response(200, content) for content in contents))
    async with MisbehavingServer(responses) as server, client_of(server) as neon:
        yield Exchange(neon, server)


@dataclass(frozen=True)
class Call:
    """A call, what it is to ask, what it is answered (None: nothing), and what it is to give."""

    made: Callable[[NeonClient], Awaitable[object]]
    asks: Asked
    shown: object
    gives: object

    def __str__(self) -> str:
        return f"{self.asks.method} {self.asks.path}"


async def check(call: Call) -> None:
    """Make a call and hold it against what it is to ask and to give."""
    status, body = (204, b"") if call.shown is None else (200, None)
    async with answering(call.shown, status, body=body) as exchange:
        given = await call.made(exchange.neon)
    assert exchange.asked == call.asks
    assert given == call.gives


def _taken_apart(request: Received) -> Asked:
    target = urlsplit(request.target)
    query = parse_qs(target.query, keep_blank_values=True)
    return Asked(
        request.method,
        target.path.removeprefix("/api/v2"),
        {name: values if len(values) > 1 else values[0] for name, values in query.items()},
        request.json() if request.body else None,
    )
