"""Connects a client to the server of its compute: endpoint id, start of the compute, login."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, TypeVar

from neonctl_async.local.postgres.proxy.errors import ComputeRefusedError
from neonctl_async.local.postgres.proxy.passwords import log_in, request_password
from neonctl_async.local.postgres.proxy.routing import find_endpoint, server_startup
from neonctl_async.local.postgres.proxy.startup import (
    MAX_STARTUP_LENGTH,
    CancelRequest,
    StartupMessage,
)
from neonctl_async.local.postgres.proxy.streams import Stream

T = TypeVar("T")

TOO_MANY_CONNECTIONS: Final = ("sorry, too many clients already", "53300")

_CONNECT_ATTEMPTS: Final = 3
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

    server: socket.socket
    path: Path


async def connect(
    client: Stream,
    startup: StartupMessage,
    server_name: str | None,
    find_route: FindRoute,
    on_endpoint: Callable[[str], None],
) -> Connected | None:
    """Connect a client to its server. Return None if the server refused the password.

    ``on_endpoint`` is called with the endpoint id before ``find_route``.
    """
    endpoint_id, password = find_endpoint(startup, server_name), None
    if endpoint_id is None:
        endpoint_id, password = await request_password(client)
    on_endpoint(endpoint_id)
    route, server = await _open(client, endpoint_id, find_route)
    try:
        stream = Stream(server)
        await stream.send(server_startup(startup, read_only=route.read_only).encode())
        if password is not None and not await log_in(stream, client, password):
            server.close()
            return None
        await stream.send(client.take_unread())
    except BaseException:
        server.close()
        raise
    return Connected(server, route.socket)


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
    client: Stream, endpoint_id: str, find_route: FindRoute
) -> tuple[Route, socket.socket]:
    """Find the route of an endpoint and connect to its server.

    Search again if the compute was suspended in between.
    """
    for _ in range(_CONNECT_ATTEMPTS):
        route = await while_connected(client, find_route(endpoint_id))
        try:
            return route, await open_server(route.socket)
        except (FileNotFoundError, ConnectionRefusedError):
            continue
    raise ComputeRefusedError("the compute stopped while the client connected: try again", "57P03")


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
