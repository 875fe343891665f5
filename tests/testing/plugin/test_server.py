"""The control server serves only requests with its token and its own Host header."""

import aiohttp
import pytest

from pytest_neonctl_async.targets import ServerURLs


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


async def test_request_with_a_foreign_host_header_is_refused(urls: ServerURLs) -> None:
    """A page whose name resolves to 127.0.0.1 sends such requests (DNS rebinding)."""
    status, body = await add_tenant(
        urls.control_url, Authorization=f"Bearer {urls.control_token}", Host="attacker.example"
    )
    assert status == 403
    assert "the Host header is 'attacker.example'" in body
    assert urls.control_token not in body
