"""Requests that no HTTP library sends, over raw sockets."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from yarl import URL

from tests.local.client import Client
from tests.support.until import until

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def connected(api: Client) -> AsyncGenerator[Streams]:
    url = URL(api.base_url)
    assert url.host is not None
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


async def status_of(api: Client, *lines: bytes) -> int:
    """Send a request with these lines and return the status of its response."""
    async with connected(api) as (reader, writer):
        writer.write(b"\r\n".join((*lines, b"Host: x", b"", b"")))
        return int((await reader.readline()).split()[1])


async def test_key_that_is_not_text_is_401(api: Client) -> None:
    lines = (b"GET /api/v2/projects HTTP/1.1", b"Authorization: Bearer \xff\xfe")
    assert await status_of(api, *lines) == 401


async def test_key_is_checked_before_the_expect_header(api: Client) -> None:
    assert await status_of(api, b"GET /api/v2/projects HTTP/1.1", b"Expect: a miracle") == 401


async def test_client_with_expect_header_gets_100_continue(api: Client) -> None:
    key = f"Authorization: Bearer {api.key}".encode()
    lines = (b"POST /api/v2/api_keys HTTP/1.1", key, b"Expect: 100-continue", b"Content-Length: 2")
    assert await status_of(api, *lines) == 100


async def test_key_revoked_while_the_body_arrives_is_401(api: Client) -> None:
    created = await api.request("POST", "/api_keys", {"key_name": "slow"})
    body = b'{"project": {"name": "too-late"}}'
    async with connected(api) as (reader, writer):
        writer.write(
            b"POST /api/v2/projects HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Expect: 100-continue\r\n"
            + f"Authorization: Bearer {created['key']}\r\n".encode()
            + f"Content-Length: {len(body)}\r\n\r\n".encode()
        )
        assert (await reader.readline()).split()[1] == b"100"  # it was let in
        await reader.readline()
        await api.request("DELETE", f"/api_keys/{created['id']}")
        writer.write(body)
        assert (await reader.readline()).split()[1] == b"401"
    assert (await api.get("/projects"))["projects"] == []


async def test_misplaced_key_is_not_logged(api: Client, caplog: pytest.LogCaptureFixture) -> None:
    token = api.key
    with caplog.at_level(logging.DEBUG):
        await api.send("DELETE", f"/api_keys/{token}")
        await api.send("GET", "/projects", headers={"X-Request-ID": token})
        await status_of(
            api, b"GET /api/v2/projects HTTP/1.1", f"Authorization : Bearer {token}".encode()
        )
    assert caplog.messages
    assert token not in caplog.text
    assert all(token not in request.path for request in api.control_plane.requests)


async def test_body_that_contradicts_its_content_encoding_is_400(
    api: Client, caplog: pytest.LogCaptureFixture
) -> None:
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    for key, status in ((api.key, 400), ("", 401)):
        reply = await api.send("POST", "/projects", content=b"plain", headers=headers, key=key)
        assert reply.status == status
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_client_that_disconnects_early_causes_no_error(
    api: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(api) as (_, writer):
        writer.write(
            b"POST /api/v2/projects HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            + f"Authorization: Bearer {api.key}\r\nContent-Length: 99\r\n\r\nhalf".encode()
        )
        await writer.drain()
    await until(lambda: api.control_plane.requests_served > 0)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
