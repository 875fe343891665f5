"""Streams: reads, writes, and the end of a connection."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from neonctl_local.postgres.proxy.streams import Stream

MUCH = bytes(2_000_000)


@pytest.fixture
async def pair() -> AsyncIterator[tuple[Stream, Stream]]:
    """Two connected streams."""
    one, other = socket.socketpair()
    with one, other:
        one.settimeout(0)
        other.settimeout(0)
        yield Stream(one), Stream(other)


async def test_exact_reads_leave_the_rest_in_the_socket(pair: tuple[Stream, Stream]) -> None:
    one, other = pair
    await one.send(b"abcdef")
    assert await other.read_exactly(2) == b"ab"
    assert other.take_unread() == b""
    assert other.sock.recv(10) == b"cdef"


async def test_read_waits_for_all_bytes(pair: tuple[Stream, Stream]) -> None:
    one, other = pair
    reading = asyncio.create_task(other.read_exactly(6))
    for part in (b"ab", b"cd", b"ef"):
        await asyncio.sleep(0.001)
        assert not reading.done()
        await one.send(part)
    assert await reading == b"abcdef"


async def test_end_of_the_connection_ends_a_read(pair: tuple[Stream, Stream]) -> None:
    one, other = pair
    await one.send(b"ab")
    one.sock.close()
    with pytest.raises(EOFError):
        await other.read_exactly(3)


async def test_send_waits_until_the_peer_reads(pair: tuple[Stream, Stream]) -> None:
    one, other = pair
    sending = asyncio.create_task(one.send(MUCH))
    assert await other.read_exactly(len(MUCH)) == MUCH
    await sending


async def test_bytes_before_the_end_stay_unread(pair: tuple[Stream, Stream]) -> None:
    one, other = pair
    waiting = asyncio.create_task(other.wait_until_closed(100))
    await one.send(b"early")
    await asyncio.sleep(0.001)
    one.sock.close()
    with pytest.raises(EOFError):
        await waiting
    assert other.take_unread() == b"early"
    assert other.take_unread() == b""


async def test_wait_for_the_end_receives_a_bounded_number_of_bytes(
    pair: tuple[Stream, Stream],
) -> None:
    one, other = pair
    sending = asyncio.create_task(one.send(MUCH))
    await other.wait_until_closed(100)
    assert 100 < len(other.take_unread()) < 100_000
    sending.cancel()


async def test_discarded_bytes_are_not_kept(pair: tuple[Stream, Stream]) -> None:
    one, other = pair
    discarding = asyncio.create_task(other.discard())
    await one.send(MUCH)
    one.sock.close()
    await discarding
    assert other.take_unread() == b""


@pytest.mark.parametrize(
    ("family", "address", "private"),
    [
        (socket.AF_INET, "127.0.0.1", True),
        (socket.AF_INET, "192.0.2.1", False),
        (socket.AF_INET6, "::1", True),
        (socket.AF_INET6, "2001:db8::1", False),
        (socket.AF_UNIX, "", True),
    ],
)
def test_only_local_connections_are_private_without_tls(
    monkeypatch: pytest.MonkeyPatch, family: int, address: str, private: bool
) -> None:
    def name_peer(_socket: socket.socket) -> tuple[str, int]:
        return address, 5432

    monkeypatch.setattr(socket.socket, "getpeername", name_peer)
    with socket.socket(family) as sock:
        assert Stream(sock).is_private() is private


async def test_cancelled_read_leaves_no_reader_behind(pair: tuple[Stream, Stream]) -> None:
    _, other = pair
    reading = asyncio.create_task(other.read_exactly(1))
    await asyncio.sleep(0.001)
    reading.cancel()
    await asyncio.wait([reading])
    assert not asyncio.get_running_loop().remove_reader(other.sock.fileno())
