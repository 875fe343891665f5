"""The faults between a client and the control plane, by name."""

import asyncio
import gzip
import random
import re
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import MappingProxyType
from typing import NamedTuple

from tests.support.clock import now
from tests.support.server import Received, Respond, drop, http_response, raw

SILENCE = 2.0
"""The silence of a half-open connection in seconds, longer than the clients' timeout."""
OVERSIZED = 200_000
"""The size of an oversized body: more than the clients accept, in bytes."""

LIMITED_SECONDS = (0.3, 1.0)
"""The shortest and the longest time for which all requests of a client get 429."""

_BOMB = gzip.compress(b"[" + b" " * 20_000_000 + b"]")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class PlaneResponse(NamedTuple):
    """The response of the control plane."""

    status: int
    body: bytes
    headers: Mapping[str, str] = MappingProxyType({})

    def complete(self) -> Respond:
        """Send the response unchanged."""
        return http_response(self.status, body=self.body, headers=self.headers)


class Exchange:
    """A request at the proxy."""

    def __init__(
        self,
        request: Received,
        forward: Callable[[], Awaitable[PlaneResponse]],
        chance: random.Random,
    ) -> None:
        self.request = request
        self.forward = forward
        """Sends the request to the control plane. Raises aiohttp.ClientError while it is down."""
        self.chance = chance


Fault = Callable[[Exchange], Awaitable[Respond]]


async def reset(writer: asyncio.StreamWriter) -> None:
    """Reset the connection, as a restarted host does."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def silence(writer: asyncio.StreamWriter) -> None:
    """Send nothing until the client has timed out."""
    await asyncio.sleep(SILENCE)
    writer.transport.abort()


def before(respond: Respond) -> Fault:
    """Respond without forwarding the request."""

    async def fault(_exchange: Exchange) -> Respond:
        return respond

    return fault


def after(respond: Respond) -> Fault:
    """Forward the request, then respond like this."""

    async def fault(exchange: Exchange) -> Respond:
        await exchange.forward()
        return respond

    return fault


async def late(exchange: Exchange) -> Respond:
    """Forward the request after the client has timed out."""
    await asyncio.sleep(SILENCE)
    await exchange.forward()
    return reset


def dripping(pause: float, parts: int) -> Fault:
    """Send the response in parts, with a pause before each."""

    async def fault(exchange: Exchange) -> Respond:
        response = await exchange.forward()

        fields = {**response.headers, "Content-Length": str(len(response.body))}
        head = _HEAD + "".join(f"{name}: {fields[name]}\r\n" for name in fields).encode()

        async def respond(writer: asyncio.StreamWriter) -> None:
            await raw(head + b"\r\n")(writer)
            size = max(1, len(response.body) // parts)
            for start in range(0, len(response.body), size):
                await asyncio.sleep(pause)
                await raw(response.body[start : start + size])(writer)

        return respond

    return fault


async def read_slowly(exchange: Exchange) -> Respond:
    """Wait before the request is forwarded."""
    await asyncio.sleep(0.1)
    return (await exchange.forward()).complete()


async def truncated(exchange: Exchange) -> Respond:
    """Close the connection in the middle of the body."""
    body = (await exchange.forward()).body
    cut = exchange.chance.randrange(len(body) + 1)
    return drop(_HEAD + b"Content-Length: %d\r\n\r\n" % (len(body) + 1) + body[:cut])


async def cut_json(exchange: Exchange) -> Respond:
    """Cut the JSON, with a matching ``Content-Length``."""
    body = (await exchange.forward()).body
    return http_response(200, body=body[: exchange.chance.randrange(max(1, len(body)))] or b"{")


async def interim(exchange: Exchange) -> Respond:
    """Send interim responses first."""
    response = await exchange.forward()
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3

    async def respond(writer: asyncio.StreamWriter) -> None:
        writer.write(early)
        await response.complete()(writer)

    return respond


def limited(retry_after: Callable[[], str]) -> Fault:
    """Respond 429 with a ``Retry-After``."""

    async def fault(_exchange: Exchange) -> Respond:
        return http_response(429, {"message": "slow down"}, headers={"Retry-After": retry_after()})

    return fault


def _date_in(seconds: float) -> Callable[[], str]:
    return lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


async def unknown_status(exchange: Exchange) -> Respond:
    """Replace the statuses of pending operations by unknown ones."""
    response = await exchange.forward()
    body = response.body.replace(b'"running"', b'"hibernating"')
    body = body.replace(b'"scheduling"', b'"dreaming"')
    return http_response(response.status, body=body, headers=response.headers)


class Limiting:
    """Responds 429 without ``Retry-After`` to all requests of a client for some time."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    async def __call__(self, exchange: Exchange) -> Respond:
        """Start the time of a client, or continue it."""
        end = now() + exchange.chance.uniform(*LIMITED_SECONDS)
        self._until.setdefault(client_of_request(exchange.request), end)
        return http_response(429, {"message": "slow down"})

    def applies_to(self, request: Received) -> bool:
        """Return whether a request comes in the time of its client."""
        client = client_of_request(request)
        if self._until.get(client, now()) <= now():
            self._until.pop(client, None)
            return False
        return True


class Lagging:
    """Sends the previous response of the same URL to the same client.

    It does not repeat a failed record: the second one ends a wait, even if Neon has retried the
    operation meanwhile.
    """

    def __init__(self) -> None:
        self._previous: dict[tuple[str, str], PlaneResponse] = {}

    async def __call__(self, exchange: Exchange) -> Respond:
        """Forward the request, and send the response before this one."""
        new = await exchange.forward()
        key = client_of_request(exchange.request), exchange.request.target
        old = self._previous.get(key, new)
        self._previous[key] = new
        return (new if b'"failed"' in old.body else old).complete()


LIMITED = "429 without Retry-After, in a row"
LIMITING = Limiting()
_GZIP = {"Content-Encoding": "gzip"}
_HTML = {"Content-Type": "text/html"}

ANY_REQUEST: dict[str, Fault] = {
    "reset before execution": before(reset),
    "reset after execution": after(reset),
    "closed before execution": before(drop()),
    "closed after execution": after(drop()),
    "half-open before execution": before(silence),
    "half-open after execution": after(silence),
    "executed after the client timed out": late,
    "slow loris: response drips for 10 s": dripping(0.1, 100),
    "slow loris: response stops in the middle": dripping(1.3, 3),
    "response in small parts": dripping(0.002, 5),
    "request is read slowly": read_slowly,
    "body truncated": truncated,
    "body cut, with matching length": cut_json,
    "body oversized": after(http_response(200, body=b"[" + b" " * OVERSIZED + b"]")),
    "error with an oversized body": before(http_response(400, body=b"x" * OVERSIZED)),
    "body without an end": after(raw(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 4 * OVERSIZED)),
    "gzip bomb": after(http_response(200, body=_BOMB, headers=_GZIP)),
    "gzip garbage": after(http_response(200, body=b"\x1f\x8b\x08junk", headers=_GZIP)),
    "encoding not accepted": after(http_response(200, {}, headers={"Content-Encoding": "br"})),
    "wrong content type": after(http_response(200, body=b"<html>hello</html>", headers=_HTML)),
    "JSON of another shape": after(http_response(200, ["what", {"is": "this"}])),
    "JSON nested too deep": after(http_response(200, body=b'{"a":' * 100_000)),
    "invalid UTF-8": after(http_response(200, body=b'{"a": "\xff\xfe"}')),
    "chunked garbage": after(raw(_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n")),
    "chunks without an end": after(drop(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")),
    "not HTTP": after(raw(b"\x00\x16\x03 who is there\r\n\r\n")),
    "head too large": after(raw(_HEAD + b"X: " + b"y" * 100_000 + b"\r\n\r\n")),
    "body longer than declared": after(raw(_HEAD + b"Content-Length: 2\r\n\r\n{}and garbage")),
    "interim responses first": interim,
    **{
        f"{status} before execution": before(http_response(status, {"message": "no"}))
        for status in (302, 400, 401, 403, 404, 408, 409, 418, 422, 500, 502, 503, 504)
    },
    **{
        f"{status} after execution": after(http_response(status, body=b"<html>", headers=_HTML))
        for status in (408, 500, 502, 504)
    },
    "423 once": before(http_response(423, {"message": "locked"})),
    "429 without Retry-After": before(http_response(429)),
    LIMITED: LIMITING,
    "429, Retry-After 1 s": limited(lambda: "1"),
    "429, Retry-After 0": limited(lambda: "0"),
    "429, Retry-After two hours": limited(lambda: "7200"),
    "429, negative Retry-After": limited(lambda: "-5"),
    "429, garbage in Retry-After": limited(lambda: "soon, ok?"),
    "429, Retry-After a date in 1 s": limited(_date_in(1)),
    "429, Retry-After a past date": limited(_date_in(-3600)),
    "429, Retry-After a date in a year": limited(_date_in(3e7)),
}
"""The faults of any request."""

POLLS: dict[str, Fault] = {
    "operation vanishes (404)": before(http_response(404, {"message": "no such operation"})),
    "unknown status": unknown_status,
    "list lags behind": Lagging(),
}
"""The faults of requests that read operations."""


def client_of_request(request: Received) -> str:
    """Return the part of the request id that all requests of a client share."""
    return request.headers["x-request-id"][:-8]


def is_poll(request: Received) -> bool:
    """Return whether a request reads operations."""
    return re.search(r"/operations(/[^/]+)?$", request.path) is not None
