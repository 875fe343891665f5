"""Size and time limits of responses, on real sockets."""

import asyncio
import gzip
import itertools
import json
import os
import socket
import sys
import threading
import time

import pytest

from neonctl_async import (
    APIError,
    InvalidResponseError,
    NeonClient,
    NeonError,
    RequestTimeoutError,
    RetryPolicy,
    ServerError,
    Timeout,
)
from tests.support.clock import now
from tests.support.records import API_KEY, responding
from tests.support.server import OK, Respond, Server, http_response, raw

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BOMB = gzip.compress(b"[" + b" " * 50_000_000 + b"]")


class EndlessResponse:
    """A response whose body never ends. ``sent`` counts its bytes."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.sent = 0

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {self.status} X\r\nConnection: close\r\n\r\n[".encode())
        while not writer.is_closing():
            writer.write(b" " * 65536)
            self.sent += 65536
            await writer.drain()


async def test_endless_body_is_refused_at_the_size_limit() -> None:
    response = EndlessResponse()
    async with responding(response, max_response_bytes=1_000_000) as (_, neon):
        with pytest.raises(InvalidResponseError, match="larger than 1000000 bytes"):
            await neon.request("GET", "/projects")
    assert response.sent < 20_000_000  # the buffers of the sockets


async def test_error_with_an_endless_body_is_raised_by_its_status() -> None:
    async with responding(EndlessResponse(500), max_response_bytes=1_000_000) as (_, neon):
        with pytest.raises(ServerError) as caught:
            await neon.request("POST", "/projects")
    assert caught.value.maybe_delivered


@pytest.mark.parametrize(("size", "is_accepted"), [(100, True), (101, False)])
@pytest.mark.parametrize("is_compressed", [False, True])
async def test_body_may_be_as_large_as_the_limit(
    size: int, is_accepted: bool, is_compressed: bool
) -> None:
    content = json.dumps("x" * (size - 2)).encode()
    response = http_response(body=content)
    if is_compressed:
        response = http_response(body=gzip.compress(content), headers={"Content-Encoding": "gzip"})
    async with responding(response, max_response_bytes=100) as (_, neon):
        call = neon.request("GET", "/projects")
        if is_accepted:
            assert await call == "x" * 98
        else:
            with pytest.raises(InvalidResponseError, match="max_response_bytes"):
                await call


async def test_small_body_that_decompresses_to_a_huge_one_is_refused() -> None:
    assert len(BOMB) < 100_000
    response = http_response(body=BOMB, headers={"Content-Encoding": "gzip"})
    async with responding(response, max_response_bytes=1_000_000) as (_, neon):
        with pytest.raises(InvalidResponseError, match="larger than 1000000 bytes"):
            await neon.request("GET", "/projects")


@pytest.mark.parametrize("status", [200, 400])
async def test_body_with_a_wrong_content_encoding_raises_a_neon_error(status: int) -> None:
    response = http_response(status, {}, headers={"Content-Encoding": "gzip"})
    async with responding(response) as (_, neon):
        with pytest.raises(InvalidResponseError if status == 200 else APIError):
            await neon.request("GET", "/projects")


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
async def test_body_with_too_deep_nesting_is_refused(opening: bytes) -> None:
    body = opening * (10 * sys.getrecursionlimit())
    async with responding(http_response(body=body)) as (_, neon):
        with pytest.raises(InvalidResponseError):
            await neon.request("GET", "/projects")


def drip(pause: float, stop_after: int = 1000) -> Respond:
    """Send one byte of a response every ``pause`` seconds, and hang after ``stop_after`` bytes."""

    async def respond(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Content-Length: 1000\r\n\r\n")
        for _ in range(stop_after):
            await asyncio.sleep(pause)
            writer.write(b" ")
        await asyncio.Event().wait()

    return respond


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("response", "ends_at"),
    [(drip(1, stop_after=3), 8), (drip(4), 12.5), (drip(5.5), 5), (drip(1, stop_after=0), 5)],
)
async def test_slow_response_ends_at_the_read_timeout_or_the_total_timeout(
    response: Respond, ends_at: float
) -> None:
    timeout = Timeout(read=5, total=12.5)
    async with responding(response, timeout=timeout, retry=RetryPolicy.never()) as (_, neon):
        with pytest.raises(RequestTimeoutError) as caught:
            await neon.request("POST", "/projects")
        assert now() == pytest.approx(ends_at, abs=0.1)
    assert caught.value.maybe_delivered
    assert ("stalled" in str(caught.value)) == (ends_at < 12.5)


class UnreadingServer(Server):
    """Accepts connections and reads nothing."""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del reader, writer
        await asyncio.Event().wait()


@pytest.mark.virtual_time
async def test_request_to_a_server_that_reads_nothing_times_out() -> None:
    async with UnreadingServer() as server:
        url = f"http://127.0.0.1:{server.port}"
        async with NeonClient(API_KEY, base_url=url, timeout=Timeout(read=5, total=7)) as neon:
            with pytest.raises(RequestTimeoutError) as caught:
                await neon.request("POST", "/projects", body="x" * 1_000_000)
            assert now() <= 7.1
    assert caught.value.maybe_delivered


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 " + b"y" * 100_000 + b"\r\n\r\n",
    ],
)
async def test_too_large_response_head_is_refused(head: bytes) -> None:
    async with responding(raw(head), retry=RetryPolicy.never()) as (_, neon):
        with pytest.raises(NeonError):
            await neon.request("GET", "/projects")


class ClosingServer(threading.Thread):
    """Serves one request on each connection in a thread, and closes it without a notice."""

    def __init__(self) -> None:
        super().__init__()
        self.received = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.base_url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/api/v2"

    def run(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                if not connection.recv(65_536):
                    return
                self.received += 1
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    def stop(self) -> None:
        socket.create_connection(self._listener.getsockname()).close()
        self.join()
        self._listener.close()


async def test_kept_connection_that_the_server_has_closed_is_not_used_again() -> None:
    server = ClosingServer()
    server.start()
    try:
        async with NeonClient(API_KEY, base_url=server.base_url) as neon:
            for _ in range(5):
                await neon.request("POST", "/projects")
                blocked_until = time.monotonic() + 0.02
                while time.monotonic() < blocked_until:
                    pass  # the loop does not see the end of the connection
    finally:
        await asyncio.to_thread(server.stop)
    assert server.received == 5


async def test_kept_connection_that_the_server_has_closed_is_not_used_in_place_of_an_old_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_respond = asyncio.Event()
    connected: asyncio.Future[asyncio.StreamWriter] = asyncio.get_running_loop().create_future()

    async def slow(writer: asyncio.StreamWriter) -> None:
        connected.set_result(writer)
        await may_respond.wait()
        await OK(writer)

    ages = itertools.chain([60.0], itertools.repeat(0.0))  # the first one is not used again
    monkeypatch.setattr("aiohttp.connector.monotonic", lambda: time.monotonic() - next(ages))
    async with responding(slow, OK) as (server, neon):
        first = asyncio.create_task(neon.request("GET", "/projects"))
        slow_connection = await connected
        await neon.request("GET", "/projects")
        may_respond.set()
        await first
        # Not through the loop, which would notice; the socket of a uvloop transport cannot do it.
        with socket.socket(
            fileno=os.dup(slow_connection.get_extra_info("socket").fileno())
        ) as server_end:
            server_end.shutdown(socket.SHUT_WR)
        await neon.request("POST", "/projects")
    assert (server.connections, len(server.received)) == (3, 3)
