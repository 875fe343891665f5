"""Connects a client to its compute: finds the endpoint, starts the compute, and logs in."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, TypeVar

from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.handshake import channel_binding
from neonctl_local.postgres.proxy.messages import ERROR, Message
from neonctl_local.postgres.proxy.passwords import (
    authenticate,
    log_in,
    request_password,
)
from neonctl_local.postgres.proxy.routing import (
    Compute,
    find_endpoint,
    parse_password,
    server_startup,
)
from neonctl_local.postgres.proxy.scram import Secret, Verifier
from neonctl_local.postgres.proxy.startup import (
    MAX_STARTUP_LENGTH,
    CancelRequest,
    StartupMessage,
)
from neonctl_local.postgres.proxy.streams import Stream

T = TypeVar("T")

TOO_MANY_CONNECTIONS: Final = ("sorry, too many clients already", "53300")

RETRY_DELAYS: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""The times between attempts to connect to a server that is starting or stopping, in seconds."""

_UNAVAILABLE: Final = b"\0C57P03\0"
"""The SQLSTATE cannot_connect_now, in the fields of an error."""
_PROBE: Final = StartupMessage(3 << 16, {b"user": b"postgres"})
"""The startup message that tests whether a server accepts connections.

Any role will do. Without a role, a stopping server does not report that it is stopping.
"""
_PROBE_TIMEOUT: Final = 5.0
"""How long a server may take to report whether it is running, in seconds."""
_BUSY_DELAY: Final = 0.01
"""The time until the next attempt to connect to a server with a full queue, in seconds."""
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE)


class Login(NamedTuple):
    """What a compute checks when a role logs in to a database.

    - ``verifier``: None if the role does not exist, or no password is accepted for it.
    - ``password``: the password itself, if the server stores a new verifier for it at its start.
    - ``may_connect``: false if the server will refuse the role despite its password.
    - ``compute``: a string that identifies the compute in this process.
    """

    verifier: Verifier | None
    password: bytes | None = None
    may_connect: bool = True
    compute: str = ""

    def __repr__(self) -> str:
        return "<Login>"


FindLogin: TypeAlias = Callable[[str, str], Awaitable[Login]]
FindStopped: TypeAlias = Callable[[str], Awaitable[Login | None]]


class Route(NamedTuple):
    """The server of a compute."""

    socket: Path
    """The Unix socket."""
    read_only: bool
    """True if transactions start in read-only mode."""
    find_login: FindLogin
    """Returns the login of a role in a database, or raises ComputeRefusedError."""


FindRoute: TypeAlias = Callable[[], Awaitable[Route]]


class Connected(NamedTuple):
    """A server that has received a client's startup message."""

    server: Stream
    route: Route
    first: Message
    """The server's first message."""


async def identify(
    client: Stream,
    startup: StartupMessage,
    server_name: str | None,
    domains: Collection[str],
    *,
    sends_password: bool,
) -> tuple[Compute, bytes | None]:
    """Return a client's compute, and the client's password if it is sent in clear text."""
    compute = find_endpoint(startup, server_name, domains)
    if compute is None:
        return parse_password(await request_password(client), startup)
    return compute, await request_password(client) if sends_password else None


async def check_first(
    client: Stream | None, user: str, password: bytes | None, find_stopped: FindStopped
) -> bytes | Secret | None:
    """Check the password for a compute that is not running, before the compute is started.

    Return the credential for its server, or None if only the server can check the password.
    ``find_stopped`` returns the login of a role. It returns None if the compute is running, or if
    what it will accept is not known until it has started. Raise ComputeRefusedError for a wrong
    password.
    """
    login = await find_stopped(user)
    if login is None:
        return None
    secret = await authenticate(client, user, login.verifier, password, compute=login.compute)
    return login.password or password or secret


async def check_at(
    route: Route, client: Stream | None, startup: StartupMessage, password: bytes | None
) -> Secret:
    """Check the password for a server, before a connection to it is opened.

    Return the credential for the server. Raise ComputeRefusedError for a wrong password.
    """
    user = user_of(startup)
    login = await route.find_login(user, database_of(startup))
    return await authenticate(client, user, login.verifier, password, compute=login.compute)


async def connect(
    client: Stream,
    startup: StartupMessage,
    password: bytes | None,
    find_route: FindRoute,
    find_stopped: FindStopped,
    *,
    unchecked: bool = True,
) -> Connected | None:
    """Connect a client to its server. Return None if the server refused the password.

    ``unchecked`` allows the server to check the password, which is faster. A client that stops
    responding then occupies a connection to the server until the server gives up.
    """
    secret = await check_first(client, user_of(startup), password, find_stopped)
    route = await while_connected(client, find_route())
    if secret is None and (channel_binding(client) or not unchecked):
        secret = await check_at(route, client, startup, password)
    secret = password if secret is None else secret
    connected = await open_session(client, startup, find_route, route)
    server, _, first = connected
    try:
        if secret is None:
            await client.send(first.encode())
        elif not await log_in(server, secret, first, client.send):
            server.sock.close()
            return None
        with suppress(ConnectionError):  # Postgres has refused the client, and sent the reason
            await server.send(client.take_unread())
    except BaseException:
        server.sock.close()
        raise
    return connected


def user_of(startup: StartupMessage) -> str:
    """Return the name of a client's role."""
    return startup.parameters.get(b"user", b"").decode(errors="replace")


def database_of(startup: StartupMessage) -> str:
    """Return the name of a client's database. The default is the name of the client's role."""
    return startup.parameters.get(b"database", b"").decode(errors="replace") or user_of(startup)


async def while_connected(client: Stream | None, waiting: Awaitable[T]) -> T:
    """Await the result of ``waiting``. Cancel it and raise EOFError if the client disconnects.

    The result may be lost, so it must not be a resource that has to be closed.
    """
    if client is None:
        return await waiting
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


async def open_session(
    client: Stream | None, startup: StartupMessage, find_route: FindRoute, route: Route
) -> Connected:
    """Send the startup message to the server of a route.

    Find the route again if the server is stopping or starting, for example because its compute is
    being suspended. Raise EOFError if the client disconnects. ``client`` is None for connections
    of the pooler, and for clients in this process.
    """
    for delay in RETRY_DELAYS:
        connected = await _try(startup, route)
        if connected is not None and not _is_unavailable(connected.first):
            return connected
        if connected is not None:
            connected.server.sock.close()
        await while_connected(client, asyncio.sleep(delay))
        route = await while_connected(client, find_route())
    connected = await _try(startup, route)
    if connected is None:
        raise ComputeRefusedError(
            "the compute stopped while the client connected: connect again", "57P03"
        )
    return connected


async def _try(startup: StartupMessage, route: Route) -> Connected | None:
    """Send the startup message to a server. Return None if the server is gone."""
    try:
        server = Stream(await open_server(route.socket))
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    try:
        await server.send(server_startup(startup, read_only=route.read_only).encode())
        return Connected(server, route, await server.read_message())
    except (EOFError, ConnectionError):
        server.sock.close()
        return None
    except BaseException:
        server.sock.close()
        raise


async def is_serving(route: Route) -> bool:
    """Return whether the server of a route may accept connections. This does not start a compute.

    A server that does not respond in time counts as serving, because the machine may be busy.
    """
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT):
            connected = await _try(_PROBE, route)
    except (ComputeRefusedError, OSError):  # or this process has no file descriptor left
        return True
    if connected is None:
        return False
    connected.server.sock.close()
    return not _is_unavailable(connected.first)


def _is_unavailable(message: Message) -> bool:
    """Return whether a server refuses connections because it is starting or stopping."""
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
