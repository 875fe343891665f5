"""Connects a client to the server of its compute: endpoint id, start of the compute, login."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, TypeVar

from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.messages import ERROR, Message
from neonctl_local.postgres.proxy.passwords import log_in, request_password
from neonctl_local.postgres.proxy.routing import find_endpoint, parse_password, server_startup
from neonctl_local.postgres.proxy.startup import (
    MAX_STARTUP_LENGTH,
    CancelRequest,
    StartupMessage,
)
from neonctl_local.postgres.proxy.streams import Stream

T = TypeVar("T")

TOO_MANY_CONNECTIONS: Final = ("sorry, too many clients already", "53300")

RETRY_DELAYS: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""The times between attempts to connect to a server that starts or stops, in seconds."""

_UNAVAILABLE: Final = b"\0C57P03\0"
"""The SQLSTATE cannot_connect_now, in the fields of an error."""
_BUSY_DELAY: Final = 0.01
"""The time until the next attempt to connect to a server with many waiting connections."""
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE)


class Route(NamedTuple):
    """The server of a compute."""

    socket: Path
    """The Unix socket."""
    read_only: bool
    """True if transactions start in read-only mode."""


FindRoute: TypeAlias = Callable[[str], Awaitable[Route]]


class Connected(NamedTuple):
    """A server that has received the startup message of a client."""

    server: Stream
    path: Path
    """The socket of the server."""
    first: Message
    """The first message of the server."""


async def connect(
    client: Stream,
    startup: StartupMessage,
    server_name: str | None,
    find_route: FindRoute,
    on_endpoint: Callable[[str], None],
    *,
    sends_password: bool = False,
) -> Connected | None:
    """Connect a client to its server. Return None if the server refused the password.

    ``on_endpoint`` is called with the endpoint id before ``find_route``. A client that
    ``sends_password`` is logged in with it.
    """
    endpoint_id, password = find_endpoint(startup, server_name), None
    if endpoint_id is None:
        endpoint_id, password = parse_password(await request_password(client))
    elif sends_password:
        password = await request_password(client)
    on_endpoint(endpoint_id)
    connected = await _open(client, startup, partial(find_route, endpoint_id))
    server, _, first = connected
    try:
        if password is None:
            await client.send(first.encode())
        elif not await log_in(server, client, password, first):
            server.sock.close()
            return None
        await server.send(client.take_unread())
    except BaseException:
        server.sock.close()
        raise
    return connected


async def while_connected(client: Stream, waiting: Awaitable[T]) -> T:
    """Await the result of ``waiting``. Cancel it and raise EOFError if the client disconnects.

    The result may be lost, so it must not need to be closed.
    """
    task = asyncio.ensure_future(waiting)
    watcher = asyncio.create_task(client.wait_until_closed(MAX_STARTUP_LENGTH))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            watcher.result()
        return await task
    finally:
        task.cancel()
        watcher.cancel()
        await asyncio.gather(task, watcher, return_exceptions=True)


async def _open(
    client: Stream, startup: StartupMessage, find_route: Callable[[], Awaitable[Route]]
) -> Connected:
    """Find a route, and connect to its server.

    Find it again if the server stops or starts at this moment, for example because its compute is
    suspended.
    """
    for delay in RETRY_DELAYS:
        connected = await _try(startup, await while_connected(client, find_route()))
        if connected is not None and not _is_unavailable(connected.first):
            return connected
        if connected is not None:
            connected.server.sock.close()
        await while_connected(client, asyncio.sleep(delay))
    connected = await _try(startup, await while_connected(client, find_route()))
    if connected is None:
        raise ComputeRefusedError(
            "the compute stopped while the client connected: connect again", "57P03"
        )
    return connected


async def _try(startup: StartupMessage, route: Route) -> Connected | None:
    """Send the startup message to a server. Return None if the server is not there any more."""
    try:
        server = Stream(await open_server(route.socket))
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    try:
        await server.send(server_startup(startup, read_only=route.read_only).encode())
        return Connected(server, route.socket, await server.read_message())
    except (EOFError, ConnectionError):
        server.sock.close()
        return None
    except BaseException:
        server.sock.close()
        raise


def _is_unavailable(message: Message) -> bool:
    """Return whether a server refuses connections because it starts or stops."""
    return message.kind == ERROR and _UNAVAILABLE in message.payload


async def open_server(path: Path) -> socket.socket:
    """Connect to the Unix socket of a server."""
    try:
        server = socket.socket(socket.AF_UNIX)
    except OSError as error:
        if error.errno in _EXHAUSTED:
            raise ComputeRefusedError(*TOO_MANY_CONNECTIONS) from None
        raise
    try:
        server.settimeout(0)
        while True:
            try:
                server.connect(str(path))
            except BlockingIOError:  # the server's queue is full, and no event reports free slots
                await asyncio.sleep(_BUSY_DELAY)
            else:
                return server
    except BaseException:
        server.close()
        raise


async def cancel_query(path: Path, request: CancelRequest) -> None:
    """Send a cancel request to a server, and wait until the server has executed it."""
    server = Stream(await open_server(path))
    try:
        await server.send(request.encode())
        await server.wait_until_closed(0)
    except EOFError:
        pass
    finally:
        server.sock.close()
