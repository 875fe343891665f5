"""Compares the requests and results of calls with the expected ones, over a real socket."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from urllib.parse import parse_qs, urlsplit

from neonctl_async import NeonClient
from tests.models.records import decode
from tests.support.records import client_of
from tests.support.server import MisbehavingServer, Received, http_response, in_sequence

Query: TypeAlias = dict[str, str | list[str]]
"""The query of a request. The value of a repeated parameter is a list."""


class SentRequest(NamedTuple):
    """The parts of a request."""

    method: str
    path: str
    query: Query
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


class Response(NamedTuple):
    """The JSON of a response, the result of the call, and the status."""

    content: object
    result: object
    status: int = 200


def record(kind: type[object], content: object, status: int = 200) -> Response:
    """Return a response that is the result of the call."""
    return Response(content, decode(kind, content), status)


def record_in(field: str, kind: type[object], content: object) -> Response:
    """Return a response with one field, which is the result of the call."""
    return Response({field: content}, decode(kind, content))


def records_in(field: str, kind: type[object], content: object) -> Response:
    """Return a response with one field, a list of one record, which is the result of the call."""
    return Response({field: [content]}, [decode(kind, content)])


def no_content(result: object = None) -> Response:
    """Return an empty response (204)."""
    return Response(None, result, 204)


@dataclass(frozen=True)
class Call:
    """A call, the line, query and body of the request that it sends, and the response."""

    function: Callable[[NeonClient], Awaitable[object]]
    sends: str
    response: Response
    query: Query | None = None
    body: object = None

    def __str__(self) -> str:
        return self.sends

    async def check(self) -> None:
        """Make the call, and compare its request and its result with the expected ones."""
        content, result, status = self.response
        body = b"" if status == 204 else None
        async with responding_with(content, status, body=body) as exchange:
            assert await self.function(exchange.neon) == result
        method, path = self.sends.split()
        assert exchange.sent == SentRequest(method, path, self.query or {}, self.body)


def _parse(request: Received) -> SentRequest:
    target = urlsplit(request.target)
    query = parse_qs(target.query, keep_blank_values=True)
    return SentRequest(
        request.method,
        target.path.removeprefix("/api/v2"),
        {name: values if len(values) > 1 else values[0] for name, values in query.items()},
        request.json() if request.body else None,
    )
