"""The listener: ports, and connections without a file descriptor."""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from control_plane.tests.postgres.proxy.descriptors import few_descriptors, used_descriptors
from neonctl_local.postgres.proxy.listener import Listener, listen


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    listener = await listen("127.0.0.1", 0)
    yield listener
    listener.close()


@pytest.fixture
def limited() -> Iterator[None]:
    with few_descriptors():
        yield


async def connected(host: str, port: int) -> socket.socket:
    """Connect a client."""
    loop = asyncio.get_running_loop()
    [(family, kind, protocol, _, address), *_] = await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    )
    client = socket.socket(family, kind, protocol)
    client.settimeout(0)
    await loop.sock_connect(client, address)
    return client


async def test_clients_are_accepted(listener: Listener) -> None:
    with await connected("127.0.0.1", listener.port) as client:
        accepted, last = await listener.accept()
        with accepted:
            assert not last
            assert accepted.gettimeout() == 0
            assert accepted.getpeername() == client.getsockname()
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_port_in_use_is_an_error(listener: Listener) -> None:
    with pytest.raises(OSError, match="for databases: address already in use"):
        await listen("127.0.0.1", listener.port)


async def test_host_may_be_a_name_or_an_address_of_version_6() -> None:
    for host in ("localhost", "::1"):
        listener = await listen(host, 0)
        with await connected(host, listener.port):
            accepted, _ = await listener.accept()
            accepted.close()
        listener.close()


@pytest.mark.usefixtures("limited")
async def test_spare_descriptor_accepts_a_client_without_any_left(listener: Listener) -> None:
    with used_descriptors() as descriptors:
        os.close(descriptors.pop())
        with await connected("127.0.0.1", listener.port):
            accepted, last = await listener.accept()
            assert last
            accepted.close()
        listener.keep_spare()


@pytest.mark.usefixtures("limited")
async def test_client_waits_while_the_spare_descriptor_is_in_use(listener: Listener) -> None:
    with used_descriptors() as descriptors:
        for _ in range(2):
            os.close(descriptors.pop())
        with (
            await connected("127.0.0.1", listener.port),
            await connected("127.0.0.1", listener.port),
        ):
            first, last = await listener.accept()
            assert last
            accepting = asyncio.create_task(listener.accept())
            await asyncio.sleep(0.1)
            assert not accepting.done()
            first.close()
            second, _ = await accepting
            second.close()


async def test_connection_that_breaks_before_it_is_accepted_is_skipped(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = socket.socket.accept
    errors = [OSError(errno.ECONNABORTED, "aborted"), OSError(errno.EPERM, "filtered")]

    def fail_first(listening: socket.socket) -> object:
        if errors:
            raise errors.pop()
        return accept(listening)

    monkeypatch.setattr(socket.socket, "accept", fail_first)
    with await connected("127.0.0.1", listener.port):
        accepted, last = await listener.accept()
        accepted.close()
        assert not last


async def test_error_of_the_listening_socket_is_raised(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_listening: socket.socket) -> object:
        raise OSError(errno.EINVAL, "not listening")

    monkeypatch.setattr(socket.socket, "accept", fail)
    with await connected("127.0.0.1", listener.port):
        with pytest.raises(OSError, match="not listening"):
            await listener.accept()
