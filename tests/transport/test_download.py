"""Downloads on real sockets: whole, broken, stalled, left early, closed."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from neonctl_async import (
    ClientClosedError,
    ConnectionLostError,
    Hooks,
    NeonClient,
    NotFoundError,
    RateBudget,
    RequestTimeoutError,
    ResponseReceived,
    RetryPolicy,
    Timeout,
)
from neonctl_async.transport.download import Download, PartialFile
from tests.support.clock import now
from tests.support.records import responding
from tests.support.server import MisbehavingServer, Respond, drop, hang, http_response, raw
from tests.support.until import until

HEAD = b'HTTP/1.1 200 OK\r\nETag: "abc"\r\n'
CONTENT = bytes(range(256)) * 1000
COMPLETE = http_response(
    body=CONTENT, headers={"ETag": '"abc"', "Content-Type": "application/octet-stream"}
)
START = raw(HEAD + b"Content-Length: 1000\r\n\r\nstart")


@asynccontextmanager
async def downloading(
    *responses: Respond, **settings: Any
) -> AsyncGenerator[tuple[MisbehavingServer, NeonClient, Download]]:
    """Run a server and a client of it, within a download."""
    async with (
        responding(*responses, **settings) as (server, neon),
        neon.storage.download("p-1", "br-1", "images", "a/cat.png") as download,
    ):
        yield server, neon, download


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


async def content_of(download: Download) -> bytes:
    return b"".join([part async for part in download])


async def test_object_arrives_unchanged_on_a_connection_that_is_used_again() -> None:
    async with downloading(COMPLETE, max_response_bytes=10) as (server, neon, download):
        assert (download.size, download.etag) == (len(CONTENT), '"abc"')
        assert await content_of(download) == CONTENT
        assert await content_of(download) == b""
        async with neon.storage.download("p-1", "br-1", "images", "b") as again:
            assert await content_of(again) == CONTENT
    assert server.connections == 1
    [first, _] = server.received
    assert first.path.endswith("/buckets/images/objects/a%2Fcat.png/download")
    assert first.headers["accept-encoding"] == "identity"
    assert first.headers["accept"] == "*/*"


async def test_object_of_unknown_size_ends_with_its_last_chunk() -> None:
    chunked = raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    async with downloading(chunked) as (_, _, download):
        assert download.size is None
        assert await content_of(download) == b"abcde"


async def test_compressed_object_is_not_decompressed() -> None:
    response = http_response(body=b"not gzip", headers={"Content-Encoding": "gzip"})
    async with downloading(response) as (_, _, download):
        assert await content_of(download) == b"not gzip"


async def test_memory_holds_a_small_part_of_a_large_object() -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(HEAD + b"Content-Length: 1000000000000\r\n\r\n")
        while not writer.is_closing():
            writer.write(bytes(65536))
            sent += 65536
            await writer.drain()

    async with downloading(endless) as (server, _, download):
        await anext(download)
        await asyncio.sleep(0.1)
        assert sent < 20_000_000  # the buffers of the sockets
    await until(lambda: server.open_connections == 0)


@pytest.mark.parametrize(
    "broken",
    [
        drop(HEAD + b"Content-Length: 1000\r\n\r\nstart"),
        drop(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nstart\r\n"),
    ],
)
async def test_incomplete_object_raises_connection_lost_error(broken: Respond) -> None:
    message = r"a%2Fcat\.png/download: the connection broke"
    async with downloading(broken) as (server, _, download):
        with pytest.raises(ConnectionLostError, match=message):
            await content_of(download)
        assert len(server.received) == 1  # a broken download is not sent again


@pytest.mark.virtual_time
async def test_stalled_object_raises_after_the_read_timeout_only() -> None:
    async def slow(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"Content-Length: 1000\r\n\r\n")
        for _ in range(10):
            await asyncio.sleep(4)
            writer.write(b"x")
        await asyncio.Event().wait()

    timeout = Timeout(read=5, total=6)
    async with downloading(slow, timeout=timeout, retry=RetryPolicy(deadline=7)) as (
        _,
        _,
        download,
    ):
        for _ in range(10):
            assert await anext(download) == b"x"
        await asyncio.sleep(60)  # time between reads does not count
        with pytest.raises(RequestTimeoutError, match="stalled for 5 s"):
            await anext(download)
        assert now() == pytest.approx(105, abs=0.1)


async def test_error_before_the_first_byte_is_an_api_error() -> None:
    missing = http_response(404, {"message": "object not found"})
    with pytest.raises(NotFoundError, match="object not found"):
        async with downloading(missing):
            pytest.fail("the block was entered")


@pytest.mark.virtual_time
async def test_request_of_a_download_is_retried_counted_and_reported() -> None:
    events: list[ResponseReceived] = []
    unavailable = http_response(503, {"message": "later"})
    async with downloading(
        unavailable, drop(), COMPLETE, hooks=[Hooks(on_response=events.append)]
    ) as (_, neon, download):
        assert await content_of(download) == CONTENT
        assert neon.requests_sent == 3
    assert [event.status for event in events] == [503, None, 200]


async def test_leaving_the_block_early_closes_the_connection() -> None:
    async with downloading(START) as (server, _, download):
        assert await anext(download) == b"start"
    await until(lambda: server.open_connections == 0)
    with pytest.raises(RuntimeError, match="the download is closed"):
        await anext(download)


async def test_error_in_the_block_closes_the_connection_and_passes_through() -> None:
    async with responding(START) as (server, neon):
        with pytest.raises(ZeroDivisionError):
            async with neon.storage.download("p-1", "br-1", "images", "a"):
                raise ZeroDivisionError
        await until(lambda: server.open_connections == 0)


@pytest.mark.virtual_time
async def test_cancellation_passes_through_and_closes_the_connection() -> None:
    async def read() -> None:
        async with neon.storage.download("p-1", "br-1", "images", "a") as download:
            await content_of(download)

    async with responding(START) as (server, neon):
        task = asyncio.create_task(read())
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: server.open_connections == 0)


@pytest.mark.virtual_time
async def test_closing_the_client_ends_a_running_read() -> None:
    async with downloading(START) as (_, neon, download):
        assert await anext(download) == b"start"
        reading = asyncio.ensure_future(anext(download))
        await asyncio.sleep(1)
        await neon.aclose()
        with pytest.raises(ClientClosedError):
            await reading


async def test_closing_the_client_between_reads_ends_the_download() -> None:
    async with downloading(COMPLETE) as (_, neon, download):
        await anext(download)
        await neon.aclose()
        with pytest.raises(ClientClosedError):
            await content_of(download)


async def test_requests_are_sent_while_as_many_downloads_as_connections_are_open() -> None:
    async with downloading(START, http_response(content={}), max_connections=1) as (_, neon, _):
        assert await neon.request("GET", "/regions") == {}


@pytest.mark.virtual_time
async def test_downloads_wait_for_each_other_at_max_connections() -> None:
    async def read(key: str) -> bytes:
        async with neon.storage.download("p-1", "br-1", "images", key) as download:
            return await content_of(download)

    async with responding(START, COMPLETE, max_connections=1) as (server, neon):
        async with neon.storage.download("p-1", "br-1", "images", "a"):
            waiting = asyncio.create_task(read("b"))
            await asyncio.sleep(100)
            assert len(server.received) == 1
        assert await waiting == CONTENT


@pytest.mark.virtual_time
async def test_closing_the_client_ends_a_download_that_waits_for_another() -> None:
    async with downloading(START, max_connections=1) as (_, neon, _):
        waiting = asyncio.create_task(
            neon.storage.download("p-1", "br-1", "images", "b").__aenter__()
        )
        await asyncio.sleep(1)
        await neon.aclose()
        with pytest.raises(ClientClosedError):
            await waiting


@pytest.mark.virtual_time
async def test_open_download_counts_as_a_request_for_one_minute_only() -> None:
    async with downloading(START, budget=RateBudget(per_minute=10)) as (_, neon, _):
        assert neon.requests_last_minute == 1
        await asyncio.sleep(61)
        assert neon.requests_last_minute == 0


async def test_saved_file_has_the_bytes_of_the_object(tmp_path: Path) -> None:
    target = tmp_path / "cat.png"
    await asyncio.to_thread(target.write_bytes, b"older")
    async with downloading(COMPLETE) as (_, _, download):
        await download.save(target)
    assert await asyncio.to_thread(files_in, tmp_path) == {"cat.png": CONTENT}


async def test_empty_object_is_saved_as_an_empty_file(tmp_path: Path) -> None:
    async with downloading(http_response(body=b"")) as (_, _, download):
        await download.save(str(tmp_path / "empty"))
    assert await asyncio.to_thread(files_in, tmp_path) == {"empty": b""}


async def test_failed_download_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    target = tmp_path / "cat.png"
    await asyncio.to_thread(target.write_bytes, b"older")
    async with downloading(drop(HEAD + b"Content-Length: 1000\r\n\r\nstart")) as (_, _, download):
        with pytest.raises(ConnectionLostError):
            await download.save(target)
    assert await asyncio.to_thread(files_in, tmp_path) == {"cat.png": b"older"}


async def test_cancelled_save_leaves_no_file(tmp_path: Path) -> None:
    async with downloading(START) as (_, _, download):
        saving = asyncio.create_task(download.save(tmp_path / "cat.png"))
        await until(lambda: asyncio.to_thread(lambda: bool(files_in(tmp_path))))
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
    assert await asyncio.to_thread(files_in, tmp_path) == {}


async def test_save_in_a_cancelled_scope_leaves_no_file(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    is_free = threading.Event()
    blocking: list[asyncio.Future[Any]] = []

    async def free_soon() -> None:
        for _ in range(10):
            await asyncio.sleep(0)
        is_free.set()

    async with downloading(START) as (_, _, download):
        async with anyio.create_task_group() as group:
            group.start_soon(download.save, tmp_path / "cat.png")
            await until(lambda: asyncio.to_thread(lambda: bool(files_in(tmp_path))))
            blocking += [loop.run_in_executor(None, is_free.wait), loop.create_task(free_soon())]
            group.cancel_scope.cancel()
        await asyncio.gather(*blocking)
    assert await asyncio.to_thread(files_in, tmp_path) == {}


async def test_file_that_cannot_be_written_raises_os_error(tmp_path: Path) -> None:
    async with downloading(COMPLETE) as (_, _, download):
        with pytest.raises(FileNotFoundError):
            await download.save(tmp_path / "missing" / "cat.png")


async def test_download_that_was_read_is_not_saved(tmp_path: Path) -> None:
    async with downloading(COMPLETE) as (_, _, download):
        await anext(download)
        with pytest.raises(RuntimeError, match="a part of the download was read before"):
            await download.save(tmp_path / "cat.png")


@pytest.mark.virtual_time
async def test_timeout_before_the_response_is_retried() -> None:
    async with downloading(hang, COMPLETE, timeout=Timeout(read=1, total=2)) as (_, _, download):
        assert await content_of(download) == CONTENT


def test_thread_that_writes_after_the_end_leaves_no_file(tmp_path: Path) -> None:
    file = PartialFile(tmp_path / "cat.png")
    file.write(b"start")
    file.discard()
    file.write(b"more")
    file.finish()
    assert files_in(tmp_path) == {}
