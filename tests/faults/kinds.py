"""Everything that goes wrong between a client and the control plane, by name."""

import asyncio
import gzip
import random
import re
import socket
import struct
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import NamedTuple

from tests.support.server import Received, Respond, drop, http_response, raw

SILENCE = 2.0
"""Seconds; longer than the clients of the campaign wait for an answer."""
OVERSIZED = 200_000
"""Bytes; more than they take."""

_BOMB = gzip.compress(b"[" + b" " * 20_000_000 + b"]")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


class Answered(NamedTuple):
    """What the control plane said."""

    status: int
    body: bytes

    def whole(self) -> Respond:
        return http_response(self.status, body=self.body)


class Exchange:
    """A request on its way, and what can be done about it."""

    def __init__(
        self, request: Received, work: Callable[[], Awaitable[Answered]], chance: random.Random
    ) -> None:
        self.request = request
        self.work = work
        """Has the control plane do it; raises ConnectionError if there is none just now."""
        self.chance = chance


Fault = Callable[[Exchange], Awaitable[Respond]]


async def reset(writer: asyncio.StreamWriter) -> None:
    """Break the connection as a host does that has been restarted."""
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def silence(writer: asyncio.StreamWriter) -> None:
    """Say nothing, until the client must have given up."""
    await asyncio.sleep(SILENCE)
    writer.transport.abort()


def before(respond: Respond) -> Fault:
    """It happens in place of the work."""

    async def fault(_exchange: Exchange) -> Respond:
        return respond

    return fault


def after(respond: Respond) -> Fault:
    """It happens once the work is done."""

    async def fault(exchange: Exchange) -> Respond:
        await exchange.work()
        return respond

    return fault


async def late(exchange: Exchange) -> Respond:
    """The work is done when the client has long given up."""
    await asyncio.sleep(SILENCE)
    await exchange.work()
    return reset


def dripping(pause: float, parts: int) -> Fault:
    """The answer comes in so many parts, with a pause after each."""

    async def fault(exchange: Exchange) -> Respond:
        answered = await exchange.work()

        async def respond(writer: asyncio.StreamWriter) -> None:
            await raw(_HEAD + b"Content-Length: %d\r\n\r\n" % len(answered.body))(writer)
            size = max(1, len(answered.body) // parts)
            for start in range(0, len(answered.body), size):
                await asyncio.sleep(pause)
                await raw(answered.body[start : start + size])(writer)

        return respond

    return fault


async def read_slowly(exchange: Exchange) -> Respond:
    """The server takes its time to take the request."""
    await asyncio.sleep(0.1)
    return (await exchange.work()).whole()


async def truncated(exchange: Exchange) -> Respond:
    """The connection closes in the middle of the body."""
    body = (await exchange.work()).body
    cut = exchange.chance.randrange(len(body) + 1)
    return drop(_HEAD + b"Content-Length: %d\r\n\r\n" % (len(body) + 1) + body[:cut])


async def cut_json(exchange: Exchange) -> Respond:
    """The body is as long as it says, but not all of it."""
    body = (await exchange.work()).body
    return http_response(200, body=body[: exchange.chance.randrange(max(1, len(body)))] or b"{")


async def interim(exchange: Exchange) -> Respond:
    """Answers that are none yet come first."""
    answered = await exchange.work()
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 3

    async def respond(writer: asyncio.StreamWriter) -> None:
        writer.write(early)
        await answered.whole()(writer)

    return respond


def limited(retry_after: Callable[[], str]) -> Fault:
    """429 with a ``Retry-After``."""

    async def fault(_exchange: Exchange) -> Respond:
        return http_response(429, {"message": "slow down"}, headers={"Retry-After": retry_after()})

    return fault


def _in(seconds: float) -> Callable[[], str]:
    return lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


async def unknown_status(exchange: Exchange) -> Respond:
    """What runs is said to be in a state that nobody has heard of."""
    answered = await exchange.work()
    body = answered.body.replace(b'"running"', b'"hibernating"')
    return http_response(answered.status, body=body.replace(b'"scheduling"', b'"dreaming"'))


class Lagging:
    """The list of operations is the one that was answered the time before."""

    def __init__(self) -> None:
        self._answers: dict[str, Answered] = {}

    async def __call__(self, exchange: Exchange) -> Respond:
        new = await exchange.work()
        old = self._answers.get(exchange.request.target, new)
        self._answers[exchange.request.target] = new
        return old.whole()


_GZIP = {"Content-Encoding": "gzip"}
_HTML = {"Content-Type": "text/html"}

ANYWHERE: dict[str, Fault] = {
    "reset before the work": before(reset),
    "reset after the work": after(reset),
    "closed before the work": before(drop()),
    "closed after the work": after(drop()),
    "half-open before the work": before(silence),
    "half-open after the work": after(silence),
    "done after the client gave up": late,
    "slow loris: answer drips on and on": dripping(0.1, 100),
    "slow loris: answer stops in the middle": dripping(1.3, 3),
    "answer in small parts": dripping(0.002, 5),
    "request is read slowly": read_slowly,
    "body truncated": truncated,
    "body cut, of the length it says": cut_json,
    "body oversized": after(http_response(200, body=b"[" + b" " * OVERSIZED + b"]")),
    "error with an oversized body": before(http_response(400, body=b"x" * OVERSIZED)),
    "body without an end": after(raw(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 4 * OVERSIZED)),
    "gzip bomb": after(http_response(200, body=_BOMB, headers=_GZIP)),
    "gzip garbage": after(http_response(200, body=b"\x1f\x8b\x08junk", headers=_GZIP)),
    "encoding nobody asked for": after(http_response(200, {}, headers={"Content-Encoding": "br"})),
    "wrong content type": after(http_response(200, body=b"<html>hello</html>", headers=_HTML)),
    "JSON of another shape": after(http_response(200, ["what", {"is": "this"}])),
    "JSON nested too deep": after(http_response(200, body=b'{"a":' * 100_000)),
    "no UTF-8": after(http_response(200, body=b'{"a": "\xff\xfe"}')),
    "chunked garbage": after(raw(_HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n")),
    "chunks without an end": after(drop(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")),
    "no HTTP": after(raw(b"\x00\x16\x03 who is there\r\n\r\n")),
    "head too large": after(raw(_HEAD + b"X: " + b"y" * 100_000 + b"\r\n\r\n")),
    "more body than it says": after(raw(_HEAD + b"Content-Length: 2\r\n\r\n{}and garbage")),
    "interim answers first": interim,
    **{
        f"{status} before the work": before(http_response(status, {"message": "no"}))
        for status in (302, 400, 401, 403, 404, 408, 409, 418, 422, 500, 502, 503, 504)
    },
    **{
        f"{status} after the work": after(http_response(status, body=b"<html>", headers=_HTML))
        for status in (408, 500, 502, 504)
    },
    "423 that ends": before(http_response(423, {"message": "locked"})),
    "429 without Retry-After": before(http_response(429)),
    "429, Retry-After of seconds": limited(lambda: "1"),
    "429, Retry-After of none": limited(lambda: "0"),
    "429, Retry-After of hours": limited(lambda: "7200"),
    "429, negative Retry-After": limited(lambda: "-5"),
    "429, garbage in Retry-After": limited(lambda: "soon, ok?"),
    "429, Retry-After a date ahead": limited(_in(1)),
    "429, Retry-After a date gone by": limited(_in(-3600)),
    "429, Retry-After a date next year": limited(_in(3e7)),
}
"""What may happen to any request."""

OF_POLLS: dict[str, Fault] = {
    "operation vanishes (404)": before(http_response(404, {"message": "no such operation"})),
    "status never seen before": unknown_status,
    "list lags behind": Lagging(),
}
"""What may happen to one that reads operations."""


def is_poll(request: Received) -> bool:
    """Whether operations are read."""
    return re.search(r"/operations(/[^/]+)?$", request.path) is not None
