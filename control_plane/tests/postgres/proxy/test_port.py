"""Ports of clients and servers of the pooler."""

import asyncio
import socket

import pytest

from neonctl_local.postgres.proxy.pooler import port as port_module
from neonctl_local.postgres.proxy.pooler.port import Port


async def test_port_closes_as_soon_as_its_peer_has_read_the_last_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(port_module, "_LAST_CHANCE", 3600.0)
    one, other = socket.socketpair()
    with one, other:
        for sock in (one, other):
            sock.settimeout(0)
        port = Port(one, on_data=lambda _: None, on_end=lambda: None, on_drained=lambda: None)
        sent = bytes(2_000_000)
        port.send(sent)
        assert port.is_full
        port.close()
        received = 0
        async with asyncio.timeout(5):
            while part := await asyncio.get_running_loop().sock_recv(other, 65536):
                received += len(part)
        assert received == len(sent)
        assert port.closed
