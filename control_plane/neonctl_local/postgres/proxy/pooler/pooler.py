"""All pools, and the logins of pooled clients."""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple

from neonctl_local.postgres.proxy.connector import (
    Connected,
    FindRoute,
    FindStopped,
    cancel_query,
    check_first,
    database_of,
    is_serving,
    open_session,
    user_of,
    while_connected,
)
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.messages import (
    AUTHENTICATION_OK,
    BACKEND_KEY,
    ERROR,
    INT32,
    PARAMETER_STATUS,
    READY,
    Message,
    authentication,
    error_fields,
)
from neonctl_local.postgres.proxy.passwords import authenticate, log_in
from neonctl_local.postgres.proxy.pooler.budget import Budget
from neonctl_local.postgres.proxy.pooler.exchange import ClientState
from neonctl_local.postgres.proxy.pooler.pool import Opened, OpenServer, Pool, PooledClient
from neonctl_local.postgres.proxy.pooler.startup import (
    TRACKED,
    find_settings,
    unsupported_extensions,
)
from neonctl_local.postgres.proxy.scram import Secret
from neonctl_local.postgres.proxy.startup import CancelRequest, StartupMessage
from neonctl_local.postgres.proxy.streams import Stream

MAX_CLIENTS: Final = 10_000
"""The largest number of clients per compute, as on Neon."""

_VERSION: Final = 3 << 16
_SIZE_QUERY: Final = Message(b"Q", b"SHOW max_connections\0").encode()
"""The query for the size of a pool. It calls no functions, so it never runs users' code."""
_LOGIN_TIMEOUT: Final = 60.0
"""How long opening a server connection may take, in seconds, like ``authentication_timeout``."""
_ROW: Final = b"D"


class PoolerLogin(NamedTuple):
    """A client that wants to log in. ``password`` is None if the pooler has to request it."""

    stream: Stream
    startup: StartupMessage
    endpoint_id: str
    password: bytes | None
    find_route: FindRoute
    find_stopped: FindStopped

    def __repr__(self) -> str:
        return f"<PoolerLogin at {self.endpoint_id}>"


class _Key(NamedTuple):
    endpoint_id: str
    user: bytes
    database: bytes


class Pooler:
    """The poolers of all computes."""

    def __init__(self) -> None:
        self._pools: dict[_Key, Pool] = {}
        self._clients: dict[bytes, PooledClient] = {}
        """All clients, by the keys of their cancel requests."""
        self._counts: Counter[str] = Counter()
        self._budget: Final = Budget()

    async def connect(self, login: PoolerLogin, on_end: Callable[[], None]) -> Callable[[], None]:
        """Log a client in, and return a function that closes its connection.

        ``on_end`` is called when the connection is closed. Raise ComputeRefusedError if the client
        cannot have a pooled connection.
        """
        stream, startup, endpoint_id, password, find_route, find_stopped = login
        settings = find_settings(startup)
        if self._counts[endpoint_id] >= MAX_CLIENTS:
            raise ComputeRefusedError("no more connections allowed (max_client_conn)", "08P01")
        user = startup.parameters.get(b"user", b"")
        key = _Key(endpoint_id, user, startup.parameters.get(b"database") or user)
        await _negotiate(stream, startup)
        secret = await check_first(stream, user_of(startup), password, find_stopped)
        route = await while_connected(stream, find_route())
        found = await route.find_login(user_of(startup), database_of(startup))
        if secret is None:
            secret = await authenticate(
                stream, user_of(startup), found.verifier, password, compute=found.compute
            )
        if not found.may_connect:  # the pool may have older connections
            (await _open(key, secret, find_route)).sock.close()
        async with self._pool(key, partial(_open, key, secret, find_route)) as pool:
            state = ClientState({**pool.settings, **settings})
            cancel_key = secrets.token_bytes(8)
            await stream.send(_welcome(pool, state, cancel_key))
            client = PooledClient(
                stream.sock, pool, state, partial(self._forget, key, cancel_key, on_end)
            )
            pool.clients.add(client)
            self._clients[cancel_key] = client
            self._counts[endpoint_id] += 1
        client.port.read()
        client.receive(stream.take_unread())
        return client.end

    async def cancel(self, request: CancelRequest) -> None:
        """Cancel the query of the pooled client with this key, if there is one."""
        client = self._clients.get(request.key)
        if client is not None and client.server is not None and client.server.is_cancellable:
            await client.server.cancel()

    async def close(self) -> None:
        """Close all connections."""
        await asyncio.gather(*(pool.close() for pool in tuple(self._pools.values())))

    @asynccontextmanager
    async def _pool(self, key: _Key, open_server: OpenServer) -> AsyncGenerator[Pool]:
        """Yield a pool with a server connection. Keep the pool while a client logs in."""
        pool = self._pools.setdefault(key, Pool(open_server, self._budget))
        pool.open_server = open_server  # the password may have changed
        pool.logins += 1
        try:
            await pool.prepare()
            yield pool
        finally:
            pool.logins -= 1
            self._drop_unused(key)

    def _drop_unused(self, key: _Key) -> None:
        if self._pools[key].close_unused():
            del self._pools[key]

    def _forget(self, key: _Key, cancel_key: bytes, on_end: Callable[[], None]) -> None:
        del self._clients[cancel_key]
        self._counts[key.endpoint_id] -= 1
        self._drop_unused(key)
        on_end()


async def _open(key: _Key, secret: bytes | Secret, find_route: FindRoute) -> Opened:
    """Open a server connection. Raise ComputeRefusedError with the server's error."""
    startup = StartupMessage(_VERSION, {b"user": key.user, b"database": key.database})
    try:
        connected = await open_session(None, startup, find_route, await find_route())
        try:
            async with asyncio.timeout(_LOGIN_TIMEOUT):
                return await _read_session(connected, secret)
        except BaseException:
            connected.server.sock.close()
            raise
    except (EOFError, OSError) as error:
        raise ComputeRefusedError("server conn crashed?", "08P01") from error


async def _negotiate(stream: Stream, startup: StartupMessage) -> None:
    """Notify a client that requests more than protocol 3.0 which features are not supported."""
    names = unsupported_extensions(startup.parameters)
    if startup.version != _VERSION or names:
        listed = b"".join(b"%b\0" % name for name in names)
        payload = INT32.pack(_VERSION) + INT32.pack(len(names)) + listed
        await stream.send(Message(b"v", payload).encode())


def _welcome(pool: Pool, state: ClientState, key: bytes) -> bytes:
    """Return the messages that start a session."""
    return b"".join(
        (
            authentication(AUTHENTICATION_OK),
            pool.welcome,
            *(
                Message(PARAMETER_STATUS, b"%b\0%b\0" % setting).encode()
                for setting in state.settings.items()
            ),
            Message(BACKEND_KEY, key).encode(),
            Message(READY, b"I").encode(),
        )
    )


async def _read_session(connected: Connected, secret: bytes | Secret) -> Opened:
    """Log in to a server, and read its messages until it is ready for clients' queries."""
    server = connected.server
    errors: list[bytes] = []

    async def receive(message: bytes) -> None:
        errors.append(message)

    if not await log_in(server, secret, connected.first, receive):
        raise _error_of(Message(ERROR, errors[-1][5:]))
    welcome, settings, key = b"", dict[bytes, bytes](), b""
    while (message := await _read(server)).kind != READY:
        if message.kind == BACKEND_KEY:
            key = message.payload
        elif message.kind == PARAMETER_STATUS:
            name, value, _ = message.payload.split(b"\0")
            if name in TRACKED.values():
                settings[name] = value
            else:
                welcome += message.encode()
    size = await _read_size(server)
    cancel = partial(cancel_query, connected.route.socket, CancelRequest(key))
    is_running = partial(is_serving, connected.route)
    return Opened(server.sock, settings, welcome, cancel, server.take_unread(), size, is_running)


async def _read_size(server: Stream) -> int:
    """Return the largest number of connections in a pool: 90 % of ``max_connections``."""
    await server.send(_SIZE_QUERY)
    size = 1
    while (message := await _read(server)).kind != READY:
        if message.kind == _ROW:
            size = max(1, int(message.payload[6:]) * 9 // 10)
    return size


async def _read(server: Stream) -> Message:
    message = await server.read_message()
    if message.kind == ERROR:
        raise _error_of(message)
    return message


def _error_of(message: Message) -> ComputeRefusedError:
    fields = error_fields(message.payload)
    return ComputeRefusedError(fields.get("M", "server login failed"), fields.get("C", "08P01"))
