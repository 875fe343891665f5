"""Connections that arrive while a server stops."""

import asyncio
import gc
import warnings
from collections.abc import Callable

import pytest
from yarl import URL

from neonctl_local import LocalControlPlane
from neonctl_local.server.connections import stop_listening
from tests.support.server import OK, MisbehavingServer, in_sequence

Server = LocalControlPlane | MisbehavingServer
SERVERS: list[Callable[[], Server]] = [
    LocalControlPlane,
    lambda: MisbehavingServer(in_sequence(OK)),
]


async def connect_while_it_stops(server: Server, steps: int) -> None:
    """Stop a server after ``steps`` iterations of the event loop of a client's connect."""
    async with server:
        url = URL(server.base_url)
        connecting = asyncio.create_task(asyncio.open_connection(url.host, url.port))
        for _ in range(steps):
            await asyncio.sleep(0)
    [connected] = await asyncio.gather(connecting, return_exceptions=True)
    if not isinstance(connected, BaseException):
        _, writer = connected
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@pytest.mark.parametrize("server_of", SERVERS, ids=["control plane", "test server"])
@pytest.mark.parametrize("steps", range(9))
async def test_stop_leaks_no_connection_that_is_being_accepted(
    server_of: Callable[[], Server], steps: int
) -> None:
    gc.collect()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        await connect_while_it_stops(server_of(), steps)
        gc.collect()
    assert [str(warning.message) for warning in caught] == []


async def test_cancelled_stop_closes_the_listening_socket() -> None:
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    stop = asyncio.create_task(stop_listening(server))
    await asyncio.sleep(0)
    stop.cancel()
    await asyncio.wait([stop])
    assert (stop.cancelled(), list(server.sockets)) == (True, [])
    await server.wait_closed()
