"""The sessions that requests share."""

import asyncio
import socket

import pytest

from neonctl_local.postgres.logins import ServerLogin
from neonctl_local.postgres.proxy.proxy import Opened
from neonctl_local.postgres.proxy.startup import CancelRequest
from neonctl_local.server.serverless.pool import Client, SessionPool
from neonctl_local.server.serverless.statements import FindLogin
from neonctl_local.server.serverless.target import Target


async def test_session_given_back_after_the_end_is_closed() -> None:
    ours, theirs = socket.socketpair()

    async def connect(_client: Client) -> Opened:
        return Opened(*await asyncio.open_connection(sock=ours), cancel)

    async def cancel(_request: CancelRequest) -> None:
        pytest.fail("no statement runs")

    async def find_check(_client: Client) -> FindLogin:
        return unknown

    async def unknown() -> ServerLogin | None:
        return None

    pool = SessionPool(connect, list, find_check)
    server, writer = await asyncio.open_connection(sock=theirs)
    writer.write(b"Z\0\0\0\5I")  # ready for a query
    async with pool.session(Client(Target({}, "", "localhost"), "127.0.0.1")):
        pool.close()
    assert b"DISCARD" not in await server.read()
    writer.close()
