"""The clients and server connections of one role and one database."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from socket import socket
from typing import Final, NamedTuple, TypeAlias

from neonctl_local.postgres.proxy.errors import ComputeRefusedError, ProtocolError
from neonctl_local.postgres.proxy.messages import error_response
from neonctl_local.postgres.proxy.pooler.exchange import (
    CLIENT_KINDS,
    SERVER_KINDS,
    TERMINATE,
    ClientState,
    ServerState,
)
from neonctl_local.postgres.proxy.pooler.frames import Frame, Splitter
from neonctl_local.postgres.proxy.pooler.port import Port

QUERY_WAIT_TIMEOUT: Final = 120.0
"""The seconds that a client waits for a server connection, as at Neon."""

_CODE: Final = "08P01"
_WITHOUT_EFFECT: Final = frozenset(b"cfH\0")
"""Messages that a server ignores between transactions. Those that no frame has are copied data."""


class Opened(NamedTuple):
    """A server connection after the login."""

    sock: socket
    settings: dict[bytes, bytes]
    """The settings that follow clients, with the values of a new session."""
    welcome: bytes
    """The messages about all other settings."""
    key: bytes
    """The process id and the secret, for cancel requests."""
    unread: bytes
    size: int
    """The number of connections that the pool may have: 90 % of ``max_connections``."""


OpenServer: TypeAlias = Callable[[], Awaitable[Opened]]


class PooledClient:
    """A client after its login. ``on_end`` is called when its connection is closed."""

    def __init__(
        self, sock: socket, pool: "Pool", state: ClientState, on_end: Callable[[], None]
    ) -> None:
        self.state: Final = state
        self.server: PooledServer | None = None
        self.frames: Final[deque[Frame]] = deque()
        """What the client has sent, but no server has received yet."""
        self.timer: asyncio.TimerHandle | None = None
        self._pool = pool
        self._on_end = on_end
        self._splitter = Splitter(CLIENT_KINDS)
        self._ended = False
        self.port: Final = Port(
            sock, on_data=self.receive, on_end=self.end, on_drained=self._continue
        )

    def receive(self, data: bytes) -> None:
        """Take bytes of the client."""
        try:
            self.frames.extend(self._splitter.feed(data))
        except ProtocolError as error:
            self.refuse(error_response(error.message, error.code))
            return
        self.advance()

    def advance(self) -> None:
        """Pass the frames on to the server, or wait for a server."""
        if self._ended:
            return
        if self.server is not None:
            self.server.forward()
            return
        while self.frames and self.frames[0].kind in _WITHOUT_EFFECT:
            self.frames.popleft()
        if self.frames and self.frames[0].kind == TERMINATE:
            self.end()
        elif self.frames and self.timer is None:
            self.port.pause()
            self.timer = asyncio.get_running_loop().call_later(QUERY_WAIT_TIMEOUT, self._give_up)
            self._pool.request(self)

    def link(self, server: "PooledServer | None") -> None:
        """Take a server connection, or give it back."""
        self.server = server
        if server is not None and self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.port.read()

    def refuse(self, response: bytes) -> None:
        """Send an error, and close the connection."""
        self.port.send(response)
        self.end()

    def end(self) -> None:
        """Close the connection. A server that it has is closed as well."""
        if self._ended:
            return
        self._ended = True
        if self.timer is not None:
            self.timer.cancel()
        self.port.close()
        self._pool.forget(self)
        self._on_end()

    def _give_up(self) -> None:
        self.refuse(error_response("query_wait_timeout", _CODE))

    def _continue(self) -> None:
        if self.server is not None:
            self.server.port.read()


class PooledServer:
    """A server connection, which serves one client at a time."""

    def __init__(self, opened: Opened, pool: "Pool") -> None:
        self.key: Final = opened.key
        self.state: Final = ServerState(opened.settings)
        self.client: PooledClient | None = None
        self.is_resetting: bool = False
        self._pool = pool
        self._held = b""
        """What the client receives after the reset."""
        self._cancels = 0
        self._splitter = Splitter(SERVER_KINDS)
        self.port: Final = Port(
            opened.sock, on_data=self._receive, on_end=self._end, on_drained=self._continue
        )
        self.port.read()
        self._receive(opened.unread)

    def serve(self, client: PooledClient) -> None:
        """Start a transaction of a client."""
        self.client = client
        client.link(self)
        self.port.send(self.state.begin(client.state))
        self.forward()

    def forward(self) -> None:
        """Send what the client has sent, unless the server is busy with a query of the pooler."""
        client = self.client
        if client is None or self.is_resetting or self.state.is_ours:
            return
        parts: list[bytes] = []
        while client.frames:
            frame = client.frames.popleft()
            if frame.kind == TERMINATE:
                client.end()
                return
            try:
                parts.append(self.state.send(frame))
            except ProtocolError as error:
                client.refuse(error_response(error.message, error.code))
                return
        self.port.send(b"".join(parts))
        if self.port.is_full:
            client.port.pause()

    def start_cancel(self) -> None:
        """Keep the client until ``end_cancel`` is called, so that the request hits no other one."""
        self._cancels += 1

    def end_cancel(self) -> None:
        """Continue after a cancel request was executed."""
        self._cancels -= 1
        self._finish_transaction()

    def _receive(self, data: bytes) -> None:
        try:
            parts = [self.state.receive(frame) for frame in self._splitter.feed(data)]
        except ProtocolError:
            self._end()
            return
        client = self.client
        if client is None:
            return
        output = b"".join(parts)
        if self.is_resetting:
            if self.state.is_ready:
                self._give_back(client)
        elif self.state.failed:
            client.refuse(error_response("invalid server parameter", _CODE))
        elif output and self.state.is_ready:
            self._held += output
            self._finish_transaction()
        else:
            client.port.send(output)
            if client.port.is_full:
                self.port.pause()
            self.forward()

    def _finish_transaction(self) -> None:
        if self._held and not self._cancels and not self.port.closed:
            self.is_resetting = True
            self._pool.resetting += 1
            self.port.send(self.state.reset())

    def _give_back(self, client: PooledClient) -> None:
        """Let the client continue, and serve another one."""
        held, self._held = self._held, b""
        self._leave()
        client.port.send(held)
        client.link(None)
        if self.state.failed:
            self.close()
        else:
            self._pool.take_back(self)
        client.advance()

    def _leave(self) -> None:
        self._pool.resetting -= self.is_resetting
        self.is_resetting = False
        self.client = self.state.client = None

    def _end(self) -> None:
        """Pass the last messages on, and end the client as well."""
        client, held = self.client, self._held
        self.close()
        self._pool.note_end()
        if client is not None:
            client.server = None
            if held:  # the transaction was complete
                client.port.send(held)
                client.link(None)
                client.advance()
            else:
                client.refuse(error_response("server conn crashed?", _CODE))

    def close(self) -> None:
        """Close the connection. The server rolls back."""
        self._leave()
        self.port.abort()
        self._pool.remove(self)

    def _continue(self) -> None:
        if self.client is not None:
            self.client.port.read()


class Pool:
    """Server connections, which are opened when clients need them. All use one event loop.

    ``open_server`` raises ComputeRefusedError. Server connections are closed when the last client
    has left, so an unused pool has no effect on its database.
    """

    def __init__(self, open_server: OpenServer) -> None:
        self.open_server = open_server
        """Opens a server connection as the last client that logged in."""
        self.logins = 0
        """The number of clients that log in now."""
        self.clients: Final[set[PooledClient]] = set()
        self.settings: dict[bytes, bytes] = {}
        self.welcome: bytes = b""
        self.resetting = 0
        """The number of servers that are free soon."""
        self._servers: set[PooledServer] = set()
        self._idle: list[PooledServer] = []
        self._waiting: deque[PooledClient] = deque()
        self._opening: set[asyncio.Task[None]] = set()
        self._size = 1
        self._first = asyncio.Lock()

    async def prepare(self) -> None:
        """Open a server connection, unless there is one. Raise ComputeRefusedError."""
        async with self._first:
            if not self._servers:
                self._add(await self.open_server())

    def request(self, client: PooledClient) -> None:
        """Link a client with the next free server."""
        self._waiting.append(client)
        self._match()

    def take_back(self, server: PooledServer) -> None:
        """Take a server that is free again."""
        self._idle.append(server)
        self._match()
        self.close_unused()

    def remove(self, server: PooledServer) -> None:
        """Forget a closed server."""
        self._servers.discard(server)
        if server in self._idle:
            self._idle.remove(server)
        self._match()

    def note_end(self) -> None:
        """Close the idle clients if no server is left: the compute was suspended."""
        if not self._servers and not self._opening:
            response = error_response(
                "terminating connection due to administrator command", "57P01"
            )
            for client in [one for one in self.clients if one.server is None]:
                client.refuse(response)

    def forget(self, client: PooledClient) -> None:
        """Forget a client that has left."""
        self.clients.discard(client)
        if client in self._waiting:
            self._waiting.remove(client)
        server = client.server
        if server is not None and not server.is_resetting:
            server.close()

    def close_unused(self) -> bool:
        """Close the free servers if there is no client. Return whether the pool is unused."""
        if self.clients or self.logins:
            return False
        for server in tuple(self._idle):
            server.close()
        return True

    async def close(self) -> None:
        """Close all connections."""
        for client in tuple(self.clients):
            client.end()
        for server in tuple(self._servers):
            server.close()
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)

    def _match(self) -> None:
        while self._waiting and self._idle:
            self._idle.pop().serve(self._waiting.popleft())
        missing = len(self._waiting) - len(self._opening) - self.resetting
        allowed = self._size - len(self._servers) - len(self._opening)
        for _ in range(min(missing, allowed)):
            task = asyncio.create_task(self._open())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)

    async def _open(self) -> None:
        try:
            opened = await self.open_server()
        except ComputeRefusedError as error:
            if not self._servers:
                response = error_response(error.message, error.code)
                for client in tuple(self._waiting):
                    client.refuse(response)
            return
        self._add(opened)

    def _add(self, opened: Opened) -> None:
        self.settings, self.welcome = dict(opened.settings), opened.welcome
        self._size = opened.size
        server = PooledServer(opened, self)
        self._servers.add(server)
        self.take_back(server)
