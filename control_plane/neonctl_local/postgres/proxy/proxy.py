"""One TCP listener for all computes, as on Neon."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from neonctl_local.postgres.proxy.connector import (
    TOO_MANY_CONNECTIONS,
    Connected,
    FindStopped,
    Login,
    Route,
    cancel_query,
    check_at,
    check_first,
    connect,
    identify,
    open_session,
    user_of,
)
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.handshake import prepare_tls, read_hello
from neonctl_local.postgres.proxy.listener import Listener, listen
from neonctl_local.postgres.proxy.messages import error_response
from neonctl_local.postgres.proxy.pooler.pooler import Pooler, PoolerLogin
from neonctl_local.postgres.proxy.relay import Relay, RelayedSession
from neonctl_local.postgres.proxy.routing import find_endpoint
from neonctl_local.postgres.proxy.scram import Secret
from neonctl_local.postgres.proxy.startup import CancelRequest, StartupMessage
from neonctl_local.postgres.proxy.streams import Stream, close, end_tls, open_streams

FindRoute: TypeAlias = Callable[[str, str], Awaitable[Route]]
FindStoppedLogin: TypeAlias = Callable[[str, str, str], Awaitable[Login | None]]
CloseSession: TypeAlias = Callable[[], None]

_logger: Final = logging.getLogger(__name__)

_TIMED_OUT: Final = ("Authentication timed out", "57014")
_FAILED: Final = ComputeRefusedError("the local control plane failed: see its log")
UNCHECKED: Final = 3
"""How many clients of a compute may log in to the server directly at the same time.

Postgres reserves 7 connections for the administrator, who uses up to 4 at a time. Further clients
log in to the proxy first, which takes a few milliseconds more.
"""
_REFUSAL_TIMEOUT: Final = 1.0
"""How long a client may take to read the reason for a refusal, in seconds."""
_NOW: Final = 0.0
"""A time on the event loop's clock that is always in the past."""


class Arrival(NamedTuple):
    """The properties of a client that connected to another server, which forwards its bytes.

    - ``address``: the address of the client.
    - ``server_name``: the host that the client requested, in place of a TLS server name.
    - ``sends_password``: true if the client sends its password in clear text, unrequested.
    """

    address: str
    server_name: str
    sends_password: bool = False


class Accepted(NamedTuple):
    """The client's side of a connection. ``is_logged_in`` returns whether a session started."""

    client: socket.socket
    is_logged_in: Callable[[], bool]


class Opened(NamedTuple):
    """A server that has received a client's startup message.

    ``cancel`` sends a cancel request for the session. ``secret`` is the credential, if the password
    was checked.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    cancel: Callable[[CancelRequest], Awaitable[None]]
    secret: bytes | Secret | None = None

    def __repr__(self) -> str:
        return "<Opened>"


class _Connection:
    """A connection to a compute, from its first byte to its last."""

    def __init__(self, endpoint_id: str | None = None) -> None:
        self.handshake: asyncio.Task[None] | None = None
        self.close: CloseSession | None = None
        """Closes the session."""
        self.endpoint_id: str | None = endpoint_id
        self.key: bytes | None = None
        """The session's key, which cancel requests contain."""
        self.unchecked: bool = False
        """True if the server checks the password."""
        self.deadline: asyncio.TimerHandle | None = None
        """Ends a login that the server takes too long to process."""
        self.closed: Final = asyncio.Event()


class _Client(_Connection):
    """A connection whose bytes pass through the proxy. The client's messages name the compute."""

    def __init__(self, client: socket.socket, arrival: Arrival | None = None) -> None:
        super().__init__()
        self.stream: Final = Stream(client)
        self.arrival: Final = arrival


class Proxy:
    """Accepts connections from Postgres clients, and connects each to the server of its compute.

    ``route`` returns the server of an endpoint for the address of a client. It starts an idle
    compute, and raises ComputeRefusedError if the client cannot connect to the endpoint. It
    receives the id without the suffix ``-pooler``.

    ``find_stopped`` returns the login that a stopped compute will accept, for an endpoint id, a
    client address and a role name. It starts no compute. It returns None if the compute is running,
    or if what it will accept is not known until it has started.

    - ``tls``: the TLS context. With a context, clients must use TLS.
    - ``domains``: the domains in which every host is a compute, so that a mistyped host is refused.
    - ``pooler``: true if ids with the suffix ``-pooler`` use the connection pooler.
    - ``handshake_timeout``: the time for everything before the session, in seconds.
    """

    listener: Listener
    """The listener, created by :meth:`start`."""
    _relay: Relay  # created by start(), like the next one
    _handshakes: asyncio.TaskGroup

    def __init__(
        self,
        route: FindRoute,
        find_stopped: FindStoppedLogin,
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None,
        domains: Collection[str] = (),
        pooler: bool = True,
        handshake_timeout: float = 60.0,
    ) -> None:
        self._route = route
        self._find_stopped = find_stopped
        self._host = host
        self._port = port
        self._tls = tls
        self._domains = domains
        self._handshake_timeout = handshake_timeout
        self._pooler = Pooler() if pooler else None
        self._connections: set[_Connection] = set()
        self._paths: dict[bytes, Path] = {}
        """The server socket of each session, by the session's key.

        Keys contain the id of the server process, so no two sessions have the same key.
        """
        self._accepting: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Listen, and return the port. Raise OSError if the port is in use."""
        if self._tls is not None:
            prepare_tls(self._tls)
        self.listener = await listen(self._host, self._port)
        self._handshakes = asyncio.TaskGroup()
        self._relay = Relay()
        self._relay.start()
        self._accepting = asyncio.create_task(self._accept(self.listener))
        return self.listener.port

    def accept(self, arrival: Arrival) -> Accepted:
        """Serve a client that connected to another server.

        That server handles encryption, if there is any.
        """
        ours, theirs = socket.socketpair()
        ours.settimeout(0)
        theirs.settimeout(0)
        connection = _Client(theirs, arrival)
        self._add(connection)
        return Accepted(ours, lambda: connection.close is not None)

    async def open(self, startup: StartupMessage, arrival: Arrival, password: bytes) -> Opened:
        """Connect a client in this process. Unless it uses the pooler, no relay moves its bytes.

        The client logs in afterwards, but a wrong ``password`` never reaches a server. Raise
        ComputeRefusedError if the client is refused, and EOFError or OSError if the connection to
        the server fails.
        """
        compute = find_endpoint(startup, arrival.server_name, self._domains)
        if compute is None or (compute.pooled and self._pooler is not None):
            reader, writer = await open_streams(self.accept(arrival).client)
            writer.write(startup.encode())
            return Opened(reader, writer, self._cancel)
        connection = _Connection(compute.endpoint_id)
        find_route = partial(self._route, compute.endpoint_id, arrival.address)
        limit = asyncio.timeout(self._handshake_timeout)

        def give_up() -> None:
            with suppress(RuntimeError):  # the limit has already expired
                limit.reschedule(_NOW)

        connection.close = give_up
        self._connections.add(connection)
        try:
            async with limit:
                find_stopped = self._stopped(compute.endpoint_id, arrival.address)
                secret = await check_first(None, user_of(startup), password, find_stopped)
                route = await find_route()
                if secret is None:
                    secret = await check_at(route, None, startup, password)
                server, route, first = await open_session(None, startup, find_route, route)
                streams = await open_streams(server.sock, partial(self._end, connection))
                if limit.when() == _NOW:  # this task continued before the limit could expire
                    streams[1].transport.abort()
                    raise TimeoutError  # noqa: TRY301 - it ends as one that the limit raises
        except BaseException as error:
            self._end(connection)
            if not isinstance(error, TimeoutError):
                raise
            if limit.when() == _NOW:
                raise EOFError("the compute stopped while the client connected") from None
            raise ComputeRefusedError(*_TIMED_OUT) from None
        reader, writer = streams
        connection.close = writer.transport.abort
        reader.feed_data(first.encode())
        return Opened(reader, writer, partial(cancel_query, route.socket), secret)

    async def stop(self) -> None:
        """Close the listener and every connection."""
        if self._accepting is None:
            return
        self._accepting.cancel()
        await asyncio.wait([self._accepting])
        if self._pooler is not None:
            await self._pooler.close()
        for connection in self._connections:
            if connection.close is not None:
                connection.close()
        await asyncio.to_thread(self._relay.stop)
        self._accepting = None
        await asyncio.sleep(0)  # the loop runs the callbacks of the finished sessions

    def connections(self, endpoint_id: str | None = None) -> int:
        """Return the number of connections: all, or those to one endpoint.

        Clients that are waiting for their compute to start count too.
        """
        return len(self._of(endpoint_id) if endpoint_id is not None else self._connections)

    async def close_connections(self, endpoint_id: str) -> None:
        """Close every connection to an endpoint."""
        connections = self._of(endpoint_id)
        for connection in connections:
            if connection.close is not None:
                connection.close()
            elif connection.handshake is not None:
                connection.handshake.cancel()
        await asyncio.gather(*(connection.closed.wait() for connection in connections))

    def _stopped(self, endpoint_id: str, address: str) -> FindStopped:
        return partial(self._find_stopped, endpoint_id, address)

    def _of(self, endpoint_id: str) -> list[_Connection]:
        return [one for one in self._connections if one.endpoint_id == endpoint_id]

    async def _accept(self, listener: Listener) -> None:
        try:
            async with self._handshakes:
                while True:
                    client, last = await listener.accept()
                    connection = _Client(client)
                    self._add(connection, last=last)
                    if last:
                        await connection.closed.wait()
                        listener.keep_spare()
        finally:
            listener.close()

    def _add(self, connection: _Client, *, last: bool = False) -> None:
        self._connections.add(connection)
        start = self._refuse_last(connection) if last else self._serve(connection)
        connection.handshake = self._handshakes.create_task(start)
        connection.handshake.add_done_callback(partial(self._forget, connection))

    async def _serve(self, connection: _Client) -> None:
        """Connect a client to its server, or send it the reason why this failed."""
        try:
            async with asyncio.timeout(self._handshake_timeout) as limit:
                await self._start_session(connection, limit)
        except TimeoutError:
            await _refuse(connection.stream, ComputeRefusedError(*_TIMED_OUT))
        except ComputeRefusedError as error:
            await _refuse(connection.stream, error)
        except (EOFError, OSError) as error:
            _logger.debug("a connection broke before its session started: %s", error)
        except Exception:
            _logger.exception("a connection failed before its session started")
            await _refuse(connection.stream, _FAILED)

    async def _start_session(self, connection: _Client, limit: asyncio.Timeout) -> None:
        stream, arrival = connection.stream, connection.arrival
        packet, server_name = await read_hello(stream, None if arrival else self._tls)
        if arrival is not None:
            server_name = arrival.server_name
        if isinstance(packet, CancelRequest):
            await self._cancel(packet)
            return
        sends_password = arrival is not None and arrival.sends_password
        compute, password = await identify(
            stream, packet, server_name, self._domains, sends_password=sends_password
        )
        connection.endpoint_id = compute.endpoint_id
        address = stream.sock.getpeername()[0] if arrival is None else arrival.address
        find_route = partial(self._route, compute.endpoint_id, address)
        find_stopped = self._stopped(compute.endpoint_id, address)
        if compute.pooled and self._pooler is not None:
            end = partial(self._end, connection)
            client = PoolerLogin(
                stream, packet, compute.endpoint_id, password, find_route, find_stopped
            )
            connection.close = await self._pooler.connect(client, end)
            return
        # Postgres sends the key of a session after the login.
        unknown = sum(one.unchecked and one.key is None for one in self._of(compute.endpoint_id))
        connection.unchecked = unknown < UNCHECKED
        connected = await connect(
            stream, packet, password, find_route, find_stopped, unchecked=connection.unchecked
        )
        if connected is not None:
            self._start_relay(connection, connected, limit)

    async def _cancel(self, request: CancelRequest) -> None:
        if (path := self._paths.get(request.key)) is not None:
            await cancel_query(path, request)
        elif self._pooler is not None:
            await self._pooler.cancel(request)

    def _start_relay(
        self, connection: _Client, connected: Connected, limit: asyncio.Timeout
    ) -> None:
        loop = asyncio.get_running_loop()

        def end() -> None:
            with suppress(RuntimeError):  # the program closed the loop without a call of stop()
                loop.call_soon_threadsafe(self._end, connection)

        session = RelayedSession(
            connection.stream.sock,
            connected.server.sock,
            on_key=partial(self._add_key, connection, connected.route.socket),
            on_end=end,
        )
        connection.close = partial(self._relay.close, session)
        self._relay.add(session)
        if (deadline := limit.when()) is not None:  # the server says nothing when it gives up
            refusal = error_response(*_TIMED_OUT)
            connection.deadline = loop.call_at(deadline, self._relay.refuse, session, refusal)

    async def _refuse_last(self, connection: _Client) -> None:
        """Refuse a client because the process has no file descriptor for a session."""
        with suppress(EOFError, OSError, ComputeRefusedError):
            async with asyncio.timeout(_REFUSAL_TIMEOUT):
                await read_hello(connection.stream, self._tls)
                await _refuse(connection.stream, ComputeRefusedError(*TOO_MANY_CONNECTIONS))

    def _add_key(self, connection: _Connection, path: Path, key: bytes) -> None:
        connection.key = key
        self._paths[key] = path

    def _forget(self, connection: _Client, handshake: asyncio.Task[None]) -> None:
        """Close a connection whose handshake finished without a session."""
        if connection.close is None:
            close(connection.stream.sock)
            self._end(connection)
        elif handshake.cancelled():
            connection.close()

    def _end(self, connection: _Connection) -> None:
        self._connections.discard(connection)
        if connection.deadline is not None:
            connection.deadline.cancel()
        if connection.key is not None:
            self._paths.pop(connection.key, None)
        connection.closed.set()


async def _refuse(client: Stream, error: ComputeRefusedError) -> None:
    """Send an error to a client, and wait until the client closes the connection.

    Closing a socket with unread bytes would discard the error.
    """
    with suppress(OSError):
        async with asyncio.timeout(_REFUSAL_TIMEOUT):
            await client.send(error_response(error.message, error.code))
            end_tls(client.sock)
            client.sock.shutdown(socket.SHUT_WR)
            await client.discard()
