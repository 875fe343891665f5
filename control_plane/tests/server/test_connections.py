"""Deadlines of connections and requests, and the bound on the number of connections."""

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web

from control_plane.tests.client import Client
from control_plane.tests.raw import connected, head, read_reply, reply_to
from neonctl_local import ConnectionLimits, Fault
from neonctl_local.server import connections
from tests.support.until import until

GET = b"GET /api/v2/projects HTTP/1.1"
POST = b"POST /api/v2/projects HTTP/1.1"
JSON = b"Content-Type: application/json"


def limits(**changed: float) -> pytest.MarkDecorator:
    """Configure the server of a test with these limits."""
    settings = ConnectionLimits(**changed)  # type: ignore[arg-type]  # one of them is an integer
    return pytest.mark.control_plane(connections=settings)


@limits(head=0.05)
@pytest.mark.parametrize("start", [b"G", b"\r\n", GET, GET + b"\r\nHost: x\r\nX-", b"\x16\x03\x01"])
async def test_half_head_times_out(
    api: Client, start: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with connected(api) as (reader, writer):
        writer.write(start)
        reply = await read_reply(reader)
        assert await reader.read() == b""
    if start.startswith(b"\x16"):
        assert (reply.status, "use http://" in reply.message) == (400, True)
    else:
        assert (reply.status, reply.headers["Connection"]) == (408, "close")
        assert reply.message == "the head of the request did not arrive within 0.05 seconds"
    assert f"request_id={reply.json['request_id']}" in caplog.text


@pytest.mark.parametrize("before", [0, 1])
async def test_long_head_is_refused_before_its_end(api: Client, before: int) -> None:
    async with connected(api) as (reader, writer):
        writer.write(head(api, GET, key=False) * before + _long_head(api))
        for _ in range(before):
            assert (await read_reply(reader)).status == 401
        await _assert_refused(reader)


async def test_long_head_is_refused_while_the_request_before_is_handled(api: Client) -> None:
    hanging = api.control_plane.inject(Fault(hang=True))
    async with connected(api) as (reader, writer):
        writer.write(head(api, GET))
        await until(lambda: hanging.fired == 1)
        writer.write(_long_head(api))
        await _assert_refused(reader)


async def test_body_of_a_request_behind_another_is_no_head(api: Client) -> None:
    slow = api.control_plane.inject(Fault(delay=0.3))
    body = b'{"project": {"name": "%b"}}' % (b"x" * 900_000)
    async with connected(api) as (reader, writer):
        writer.write(head(api, GET))
        await until(lambda: slow.fired == 1)
        writer.write(head(api, POST, JSON, b"Content-Length: %d" % len(body)) + body)
        assert [(await read_reply(reader)).status for _ in range(2)] == [200, 400]


def _long_head(api: Client) -> bytes:
    return head(api, GET, *[b"X-%d: %b" % (n, b"x" * 4000) for n in range(80)], key=False)[:-2]


async def _assert_refused(reader: asyncio.StreamReader) -> None:
    reply = await read_reply(reader)
    assert (reply.status, reply.headers["Connection"]) == (431, "close")
    assert reply.message == "the request line and the headers have more than 64 KiB"


async def test_body_may_be_longer_than_a_head(api: Client) -> None:
    body = b'{"project": {"name": "%b"}}' % (b"x" * 900_000)
    start = head(api, POST, JSON, b"Content-Length: %d" % len(body))
    for sent in ((start + body,), (start, body), (start, body[:100_000], body[100_000:])):
        assert (await reply_to(api, *sent)).status == 400  # because of the name


@limits(head=0.1)
async def test_client_that_sends_its_head_byte_by_byte_times_out(api: Client) -> None:
    async with connected(api) as (reader, writer):
        status = asyncio.create_task(reader.readline())
        for byte in head(api, GET):
            if status.done():
                break
            writer.write(bytes((byte,)))
            await asyncio.sleep(0.005)
        assert (await status).split()[1] == b"408"


@limits(head=0.05)
async def test_deadline_of_a_head_ends_with_the_head(api: Client) -> None:
    async with connected(api) as (reader, writer):
        for _ in range(2):
            writer.write(head(api, GET))
            assert (await read_reply(reader)).status == 200
            await asyncio.sleep(0.1)


@limits(body=0.05)
@pytest.mark.parametrize(
    ("length", "part"),
    [
        (b"Content-Length: 20", b'{"project"'),
        (b"Content-Length: 20", b""),
        (b"Transfer-Encoding: chunked", b"a\r\n{"),
    ],
)
async def test_half_body_times_out(api: Client, length: bytes, part: bytes) -> None:
    async with connected(api) as (reader, writer):
        writer.write(head(api, POST, JSON, length) + part)
        reply = await read_reply(reader)
        assert (reply.status, reply.headers["Connection"]) == (408, "close")
        assert reply.message == "the body of the request did not arrive within 0.05 seconds"
        assert await reader.read() == b""


@limits(body=0.05)
async def test_half_body_before_a_delay_times_out(api: Client) -> None:
    api.control_plane.inject(Fault(delay=0.01))
    async with connected(api) as (reader, writer):
        writer.write(head(api, POST, JSON, b"Content-Length: 20"))
        assert (await read_reply(reader)).status == 408


@limits(body=0.05)
async def test_deadline_of_a_body_ends_with_the_body(api: Client) -> None:
    api.control_plane.inject(Fault(delay=0.1))
    assert (await api.send("POST", "/projects", {"project": {}})).status == 201


async def test_chunk_that_is_malformed_is_400_at_once(api: Client) -> None:
    start = head(api, POST, JSON, b"Transfer-Encoding: chunked")
    for parts in ((start, b"zz\r\n"), (start + b"1\r\n{\r\n", b"x\r\n"), (start, b"1\r\n{}\r\n")):
        async with asyncio.timeout(5):
            reply = await reply_to(api, *parts)
        assert (reply.status, set(reply.json)) == (400, {"code", "message", "request_id"})


@limits(idle=0.05)
async def test_idle_connection_is_closed(api: Client) -> None:
    async with connected(api) as (reader, _):
        assert await reader.read() == b""
    async with connected(api) as (reader, writer):
        writer.write(head(api, GET))
        assert (await read_reply(reader)).status == 200
        assert await reader.read() == b""
    await until(lambda: not api.control_plane.open_connections)


@limits(idle=0.05)
async def test_connection_with_a_request_is_not_idle(api: Client) -> None:
    api.control_plane.inject(Fault(delay=0.2))
    assert (await api.send("GET", "/projects")).status == 200


@limits(send=0.05)
async def test_client_that_does_not_read_is_disconnected(api: Client) -> None:
    long = head(api, b"GET /" + b"x" * 8000 + b" HTTP/1.1")  # the response contains the path
    async with connected(api) as (_, writer):
        writer.write(long * 1000)
        await until(lambda: api.control_plane.open_connections > 0)
        await until(lambda: not api.control_plane.open_connections)


class Unread(asyncio.Transport):
    """The transport of a client that has not read ``size`` bytes."""

    size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.size += len(data)

    def get_write_buffer_size(self) -> int:
        return self.size

    def is_closing(self) -> bool:
        return False

    def close(self) -> None:
        self.size = 0


async def test_deadline_of_a_response_ends_when_the_client_has_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, transport = asyncio.get_running_loop(), Unread()
    deadlines: list[asyncio.TimerHandle] = []
    call_later = loop.call_later
    send = 1e6

    def record(delay: float, *arguments: Any, **context: Any) -> asyncio.TimerHandle:
        timer = call_later(delay, *arguments, **context)
        if delay == send:
            deadlines.append(timer)
        return timer

    monkeypatch.setattr(loop, "call_later", record)
    sent = asyncio.Semaphore(0)

    class Counted(connections.Connections):
        def mark_idle(self, connection: connections.Connection, now: float) -> None:
            super().mark_idle(connection, now)
            sent.release()

    async def respond(request: web.BaseRequest) -> web.StreamResponse:
        connection.request_started(request.content)
        return web.Response(text="x")

    counted = Counted(
        ConnectionLimits(send=send), lambda _status, _cause, _text: web.Response(), lambda _: b""
    )
    connection = connections.Connection(web.Server(respond), counted)
    connection.connection_made(transport)
    for _ in range(2):
        connection.data_received(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await sent.acquire()
        transport.size = 0
    cancelled = [deadline.cancelled() for deadline in deadlines]
    connection.connection_lost(None)
    await until(lambda: len(asyncio.all_tasks()) == 1)
    assert cancelled == [True, False]


@limits(maximum=2)
async def test_new_connection_replaces_the_one_that_is_idle_longest(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_IDLE_BEFORE_EVICTION", 0.0)
    async with AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(connected(api)) for _ in range(2)]
        for reader, writer in reversed(streams):
            writer.write(head(api, GET))
            assert (await read_reply(reader)).status == 200
        assert (await reply_to(api, head(api, GET))).status == 200
        assert await streams[1][0].read() == b""
        streams[0][1].write(head(api, GET))
        assert (await read_reply(streams[0][0])).status == 200
        assert api.control_plane.open_connections <= 2


@limits(maximum=2)
async def test_connection_that_was_just_opened_is_not_replaced(api: Client) -> None:
    async with connected(api), connected(api):
        reply = await reply_to(api, head(api, GET))
    assert reply.status == 503
    assert (reply.headers["Retry-After"], reply.headers["Connection"]) == ("1", "close")
    assert "too many open connections" in reply.message


@limits(maximum=2)
async def test_request_on_too_many_connections_is_503_until_one_is_closed(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_IDLE_BEFORE_EVICTION", 0.0)
    monkeypatch.setattr(connections, "_REFUSALS", 1)
    hanging = api.control_plane.inject(Fault(hang=True, times=2))
    async with connected(api) as (_, first):
        async with connected(api) as (_, second):
            for writer in (first, second):
                writer.write(head(api, GET))
            await until(lambda: hanging.fired == 2)
            async with connected(api) as (reader, writer), connected(api) as (fourth, _):
                assert await fourth.read() == b""  # only one refusal at a time
                writer.write(head(api, GET))
                assert (await read_reply(reader)).status == 503
                assert await reader.read() == b""
        served: list[int] = []
        while served.count(200) < 5:
            served.append((await reply_to(api, head(api, GET))).status)


@limits(maximum=20)
async def test_number_of_idle_connections_is_bounded(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_IDLE_BEFORE_EVICTION", 0.0)
    async with AsyncExitStack() as stack:
        for _ in range(60):
            await stack.enter_async_context(connected(api))
        await until(lambda: api.control_plane.open_connections == 20)
        assert (await reply_to(api, head(api, GET))).status == 200
    await until(lambda: not api.control_plane.open_connections)


async def test_no_response_has_a_server_header(api: Client) -> None:
    for line in (GET, POST, b"GET /nowhere HTTP/1.1", b"nonsense", b"GET / HTTP/1.1\r\nHost: x"):
        reply = await reply_to(api, head(api, line))
        assert ("Server" in reply.headers, "Date" in reply.headers) == (False, True)


@pytest.mark.parametrize(
    ("name", "value"),
    [("maximum", 0), ("idle", 0.0), ("head", -1.0), ("body", float("inf")), ("send", 0.0)],
)
def test_impossible_limit_is_rejected(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        limits(**{name: value})
