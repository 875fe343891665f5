"""Logins with passwords."""

import asyncio
import socket
from collections.abc import AsyncIterator
from struct import pack

import pytest

from neonctl_local.postgres.proxy.errors import ComputeRefusedError, ProtocolError
from neonctl_local.postgres.proxy.messages import Message, authentication
from neonctl_local.postgres.proxy.passwords import (
    log_in,
    request_password,
)
from neonctl_local.postgres.proxy.streams import Stream


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Stream, Stream]]:
    """A stream of the proxy, and the stream of its peer."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0)
        theirs.settimeout(0)
        yield Stream(ours), Stream(theirs)


@pytest.fixture
async def other_pair() -> AsyncIterator[tuple[Stream, Stream]]:
    """A second pair of streams."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0)
        theirs.settimeout(0)
        yield Stream(ours), Stream(theirs)


async def test_password_is_requested_in_clear_text(pair: tuple[Stream, Stream]) -> None:
    proxy, client = pair
    await client.send(Message(b"p", b"endpoint=ep-frost;secret\0").encode())
    assert await request_password(proxy) == b"endpoint=ep-frost;secret"
    assert await client.read_exactly(9) == authentication(3)


async def test_empty_password_is_a_password(pair: tuple[Stream, Stream]) -> None:
    proxy, client = pair
    await client.send(Message(b"p", b"\0").encode())
    assert await request_password(proxy) == b""


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (Message(b"Q", b"select 1\0").encode(), "expected password response"),
        (Message(b"p", b"").encode(), "expected password response"),
        (b"p\xff\xff\xff\xff", "expected password response"),
        (b"p" + pack("!i", 2**30), "1073741820 bytes: expected at most 10000"),
        (Message(b"p", b"endpoint=ep-frost;secret").encode(), "missing terminator"),
    ],
)
async def test_malformed_password_message_is_refused(
    pair: tuple[Stream, Stream], message: bytes, error: str
) -> None:
    proxy, client = pair
    await client.send(message)
    with pytest.raises(ProtocolError, match=error):
        await request_password(proxy)


async def test_password_is_not_requested_where_others_could_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def name_peer(_socket: socket.socket) -> tuple[str, int]:
        return "192.0.2.1", 5432

    monkeypatch.setattr(socket.socket, "getpeername", name_peer)
    with socket.socket() as client:
        with pytest.raises(ComputeRefusedError, match="Endpoint ID is not specified"):
            await request_password(Stream(client))


async def test_unsupported_authentication_of_a_server_is_an_error(
    pair: tuple[Stream, Stream], other_pair: tuple[Stream, Stream]
) -> None:
    (proxy, server), (client, _) = pair, other_pair
    await server.send(authentication(5, b"salt"))
    with pytest.raises(ComputeRefusedError, match="Unsupported authentication method: 5"):
        await log_in(proxy, b"secret", await proxy.read_message(), client.send)


async def test_messages_of_the_server_before_the_login_reach_the_client(
    pair: tuple[Stream, Stream], other_pair: tuple[Stream, Stream]
) -> None:
    (to_server, server), (to_client, client) = pair, other_pair
    negotiation = Message(b"v", b"\0\3\0\0\0\0\0\0").encode()
    await server.send(negotiation + authentication(0))
    async with asyncio.timeout(1):
        assert await log_in(to_server, b"secret", await to_server.read_message(), to_client.send)
    assert await client.read_exactly(len(negotiation) + 9) == negotiation + authentication(0)


async def test_error_of_the_server_reaches_the_client(
    pair: tuple[Stream, Stream], other_pair: tuple[Stream, Stream]
) -> None:
    (to_server, server), (to_client, client) = pair, other_pair
    error = Message(b"E", b"SFATAL\0\0").encode()
    await server.send(error)
    assert not await log_in(to_server, b"secret", await to_server.read_message(), to_client.send)
    assert await client.read_exactly(len(error)) == error
