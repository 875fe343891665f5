"""The control server serves only requests with its token and its own Host header."""

import asyncio

import aiohttp
import pytest
from yarl import URL

from pytest_neonctl_async.server_process import ServerURLs


async def add_tenant(url: str, **headers: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/tenants", headers=headers) as response:
            return response.status, await response.text()


async def test_request_with_the_token_adds_a_tenant(urls: ServerURLs) -> None:
    for number in (0, 1):
        status, body = await add_tenant(
            urls.control_url, Authorization=f"Bearer {urls.control_token}"
        )
        assert status == 200
        assert f'"number":{number}' in body


@pytest.mark.parametrize("authorization", ["", "Bearer ", "Bearer guessed", "Bearer Ü"])
async def test_request_without_the_token_is_refused(urls: ServerURLs, authorization: str) -> None:
    status, body = await add_tenant(urls.control_url, Authorization=authorization)
    assert status == 401
    assert "needs its token" in body


async def test_token_that_is_not_utf8_is_refused(urls: ServerURLs) -> None:
    """Over a socket, because aiohttp does not send such a header."""
    url = URL(urls.control_url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    lines = (
        b"POST /tenants HTTP/1.1",
        f"Host: {url.authority}".encode(),
        b"Authorization: Bearer \xff\xfe",
        b"Connection: close",
    )
    writer.write(b"\r\n".join(lines) + b"\r\n\r\n")
    response = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert response.startswith(b"HTTP/1.1 401 ")
    assert b"needs its token" in response


async def test_call_of_a_missing_tenant_is_not_found(urls: ServerURLs) -> None:
    headers = {"Authorization": f"Bearer {urls.control_token}"}
    assert (await add_tenant(urls.control_url, **headers))[0] == 200
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.post(f"{urls.control_url}/tenants/1", data=b"{}") as response:
            assert response.status == 404
            assert "tenant 1 does not exist" in await response.text()


async def test_request_with_a_foreign_host_header_is_refused(urls: ServerURLs) -> None:
    """A page whose name resolves to 127.0.0.1 sends such requests (DNS rebinding)."""
    status, body = await add_tenant(
        urls.control_url, Authorization=f"Bearer {urls.control_token}", Host="attacker.example"
    )
    assert status == 403
    assert "the Host header is 'attacker.example'" in body
    assert urls.control_token not in body


async def test_databases_are_kept_only_with_a_directory(urls: ServerURLs) -> None:
    headers = {"Authorization": f"Bearer {urls.control_token}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.post(f"{urls.control_url}/kept") as response:
            assert response.status == 400
            assert "without --kept-in" in await response.text()
