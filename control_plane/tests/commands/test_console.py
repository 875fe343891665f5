"""Requests of the commands to a running local control plane."""

import asyncio
import socket
from collections.abc import AsyncIterator

import msgspec
import pytest

from control_plane.tests.client import Client
from neonctl_local.commands.console import CommandError, Console

LOCAL = {"NEON_API_HOST": "http://127.0.0.1:8080/api/v2", "NEON_API_KEY": "neon_api_key_1"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"NEON_API_HOST": ""}, "NEON_API_HOST is not set"),
        ({"NEON_API_KEY": ""}, "NEON_API_KEY is not set"),
        ({"NEON_API_HOST": "https://console.neon.tech/api/v2"}, "expected a local control plane"),
        ({"NEON_API_HOST": "http://127.0.0.1:8080"}, "expected a local control plane"),
        ({"NEON_API_HOST": "http://127.0.0.1:port/api/v2"}, "NEON_API_HOST is"),
        ({"NEON_API_HOST": "http://plane:8080/api/v2"}, "set NEON_ALLOW_HTTP=plane"),
        ({"NEON_API_KEY": "neon\r\nHost: other"}, "characters that no key has"),
        ({"NEON_API_KEY": "neon_ß"}, "characters that no key has"),
    ],
)
def test_environment_that_names_no_local_control_plane_is_refused(
    changes: dict[str, str], words: str
) -> None:
    with pytest.raises(CommandError, match=words) as caught:
        Console.from_environment(LOCAL | changes)
    assert "neon_api_key_1" not in str(caught.value)


def test_password_in_the_address_is_not_shown() -> None:
    with pytest.raises(CommandError, match="127") as caught:
        Console.from_environment(LOCAL | {"NEON_API_HOST": "http://a:secret@127.0.0.1/api/v2"})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"NEON_API_HOST": "http://[::1]:8080/api/v2/"},
        {"NEON_API_HOST": "http://localhost/api/v2"},
        {"NEON_API_HOST": "http://plane:8080/api/v2", "NEON_ALLOW_HTTP": "other, plane"},
    ],
)
def test_addresses_of_this_machine_and_allowed_ones_are_accepted(changes: dict[str, str]) -> None:
    assert Console.from_environment(LOCAL | changes)


def test_server_that_does_not_run_is_reported() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        console = Console("127.0.0.1", unused.getsockname()[1], "key")
        with pytest.raises(CommandError, match="is the local control plane running"):
            console.request("GET", "/users/me", msgspec.Raw)


@pytest.fixture
async def other_server() -> AsyncIterator[int]:
    """The port of a server that is no local control plane: it redirects every request."""

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(redirect, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_redirects_are_not_followed(other_server: int) -> None:
    console = Console("127.0.0.1", other_server, "key")
    with pytest.raises(CommandError, match="not the response of a local control plane"):
        await asyncio.to_thread(console.request, "GET", "/users/me", msgspec.Raw)


async def test_proxies_are_not_used(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    environment = {"NEON_API_HOST": api.base_url, "NEON_API_KEY": api.key}
    console = Console.from_environment(environment)
    assert await asyncio.to_thread(console.request, "GET", "/users/me", msgspec.Raw)
