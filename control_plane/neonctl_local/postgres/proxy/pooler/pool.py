"""The clients and server connections of one role and one database."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from socket import socket
from typing import Final, NamedTuple, TypeAlias

from neonctl_local.postgres.proxy.errors import ComputeRefusedError, ProtocolError
from neonctl_local.postgres.proxy.messages import error_response
from neonctl_local.postgres.proxy.pooler.budget import Budget, Share
from neonctl_local.postgres.proxy.pooler.exchange import ClientState, ServerState, refusal
from neonctl_local.postgres.proxy.pooler.frames import (
    CLIENT_KINDS,
    CLIENT_LENGTHS,
    SERVER_KINDS,
    Frame,
    Splitter,
)
from neonctl_local.postgres.proxy.pooler.phases import FROM_CLIENT, Effect, Phase
from neonctl_local.postgres.proxy.pooler.port import Port

QUERY_WAIT_TIMEOUT: Final = 120.0
"""How long a client waits for a server connection, in seconds, as on Neon."""

RESET_TIMEOUT: Final = 5.0
"""How long a reset may take, in seconds. A slower connection is closed; its client continues."""
RETRY_DELAY: Final = 1.0
"""The time until the next attempt to open a server connection after a refusal, in seconds."""

_MAX_HELD: Final = 256 * 1024
"""How many bytes of a client may wait for a server before the pooler stops receiving."""
_FRAME: Final = 150
"""The approximate memory that a message needs in addition to its data, in bytes."""


_RESET_EARLY: Final = (Phase.RESETTING, Phase.IDLE)
"""The phases after a request that was directly followed by a reset."""


class Opened(NamedTuple):
    """A server connection after the login."""

    sock: socket
    settings: dict[bytes, bytes]
    """The settings that follow a client to its next server, with their values in a new session."""
    welcome: bytes
    """The messages that report all other settings to a client."""
    cancel: Callable[[], Awaitable[None]]
    """Cancels the query of the session, and returns once the server has done so."""
    unread: bytes
    size: int
    """The largest number of connections in the pool: 90 % of ``max_connections``."""
    is_running: Callable[[], Awaitable[bool]]
    """Returns whether the server accepts more connections now."""


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
        self._held = 0
        """The memory that the frames need, in bytes."""
        self._is_waiting = False
        self._timer: asyncio.TimerHandle | None = None
        """Limits how long the client waits."""
        self._pool = pool
        self._on_end = on_end
        self._splitter = Splitter(CLIENT_KINDS, CLIENT_LENGTHS)
        self._share = Share(pool.budget, self._refuse_later)
        self._ended = False
        self.port: Final = Port(
            sock, on_data=self.receive, on_end=self.end, on_drained=self._continue
        )

    def receive(self, data: bytes) -> None:
        """Process bytes that the client has sent."""
        for frame in self._splitter.feed(data):
            self.frames.append(frame)
            self._held += _FRAME + len(frame.data)
        self.advance()

    def advance(self) -> None:
        """Pass the frames on to the server, or wait for a server."""
        if self._ended:
            return
        if self.server is not None:
            self.server.forward()
            return
        if (effect := self.next_effect()) is Effect.END:
            self.end()
        elif effect is Effect.REFUSE:
            self.refuse(refusal(self.frames[0]))
        elif effect is Effect.HOLD and not self._is_waiting:
            self._wait()
        if self.server is None:
            self.control_flow()

    def next_effect(self) -> Effect | None:
        """Drop ignored frames, and return the effect of the next frame, between transactions."""
        while self.frames:
            effect, _ = FROM_CLIENT[Phase.IDLE][self.frames[0].kind]
            if effect is not Effect.DROP:
                return effect
            self.take()
        return None

    def take(self) -> None:
        """Remove the next frame."""
        self._held -= _FRAME + len(self.frames.popleft().data)

    def control_flow(self) -> None:
        """Pause receiving while too many bytes wait for a server.

        Some bytes are received even without a server, because only receiving shows that a client
        has left. A client that holds too much memory is refused.
        """
        if self._ended:
            return
        unsent = 0 if self.server is None else self.server.port.unsent
        held = self._splitter.held + self._held + self.state.statements.size + unsent
        try:
            self._share.update(held, self._splitter.needed)
        except ComputeRefusedError as error:
            self.refuse(error)
            return
        if self._held > _MAX_HELD or (self.server is not None and self.server.port.is_full):
            self.port.pause()
        else:
            self.port.read()

    def _wait(self) -> None:
        """Request a server, and limit the time until one is free."""
        self._is_waiting = True
        self._pool.request(self)
        if self._is_waiting:
            self._timer = asyncio.get_running_loop().call_later(QUERY_WAIT_TIMEOUT, self._give_up)

    def stop_waiting(self) -> None:
        """Record that a server has started to serve the client."""
        self._is_waiting = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def refuse(self, error: ComputeRefusedError) -> None:
        """Send an error, and close the connection."""
        self.port.send(error_response(error.message, error.code))
        self.end()

    def end(self) -> None:
        """Close the client's connection. Its server connection is reset if possible, or closed."""
        if self._ended:
            return
        self._ended = True
        self.stop_waiting()
        self.frames.clear()
        self._splitter.clear()
        self.state.statements.clear()
        self._share.release()
        self.port.close()
        self._pool.forget(self)
        self._on_end()

    def _refuse_later(self, error: ComputeRefusedError) -> None:
        """Refuse this client after the call that is serving another client has returned."""
        asyncio.get_running_loop().call_soon(self.refuse, error)

    def _give_up(self) -> None:
        self.refuse(ProtocolError("query_wait_timeout"))

    def _continue(self) -> None:
        if self.server is not None:
            self.server.port.read()


class PooledServer:
    """A server connection, which serves one client at a time."""

    def __init__(self, opened: Opened, pool: "Pool") -> None:
        self.is_running: Final = opened.is_running
        self.state: Final = ServerState(opened.settings)
        self.client: PooledClient | None = None
        self._pool = pool
        self._cancel = opened.cancel
        self._held = b""
        """What the client receives after the reset."""
        self._cancels = 0
        self._closed = False
        self.is_resetting: bool = False
        """True from the end of the client's transaction until the server is free again."""
        self._timer: asyncio.TimerHandle | None = None
        """Limits how long the reset may take."""
        self._splitter = Splitter(SERVER_KINDS)
        self.port: Final = Port(
            opened.sock, on_data=self._receive, on_end=self._end, on_drained=self._continue
        )
        self.port.read()
        self._receive(opened.unread)

    @property
    def is_cancellable(self) -> bool:
        """True while the server may be executing a query of its client."""
        return self.client is not None and not (self.is_resetting or self.state.is_ours)

    def serve(self, client: PooledClient) -> None:
        """Start a client's transaction."""
        self.client = client
        client.server = self
        self.port.send(self.state.begin(client.state))
        self.forward()

    def forward(self) -> None:
        """Send the client's messages to the server, as far as the server can take them now."""
        client = self.client
        if client is None:
            return
        if self.is_resetting:
            client.control_flow()
            return
        if not self.state.is_ours:
            client.stop_waiting()
        parts: list[bytes] = []
        while client.frames:
            try:
                effect, data = self.state.offer(client.frames[0])
            except ProtocolError as error:
                client.refuse(error)
                return
            if data:
                parts.append(data)
            if effect is Effect.HOLD:
                break
            client.take()
            if effect is Effect.END:
                client.end()
                return
        if not client.frames:
            parts.append(self.state.reset_early())
        self.port.send(b"".join(parts))
        client.control_flow()
        if self.state.is_done:
            self._finish()

    def leave(self) -> None:
        """Reset or close the connection, because its client has left."""
        self.client = self.state.client = None
        if self.state.is_done and not self.state.failed:
            self._finish()
        elif not self.is_resetting:
            self.close()

    async def cancel(self) -> None:
        """Cancel the query. Keep the client until then, so only its query can be cancelled."""
        self._cancels += 1
        try:
            await self._cancel()
        finally:
            self._cancels -= 1
            self._proceed()

    def _receive(self, data: bytes) -> None:
        try:
            parts = [self.state.receive(frame) for frame in self._splitter.feed(data)]
        except ProtocolError:
            self._lose(ends_idle=False)
            return
        client, output = self.client, b"".join(parts)
        if self.is_resetting:
            self._proceed()
        elif client is None:
            if self.state.fatal is not None:
                self._end()
        elif self.state.phase in _RESET_EARLY:
            self._held += output
            self._finish()
        elif self.state.failed and self.state.fatal is None:
            client.refuse(ProtocolError("invalid server parameter"))
        elif self.state.is_done and output and client.next_effect() is None:
            self._held += output
            self._finish()
        else:
            client.port.send(output)
            if client.port.is_full:
                self.port.pause()
            self.forward()

    def _finish(self) -> None:
        """Reset the session after a transaction. Close the connection if that takes too long."""
        if not self.is_resetting:
            self.is_resetting = True
            self.port.read()  # it may be paused for a client that has left
            self._proceed()
            if self.is_resetting and self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(RESET_TIMEOUT, self._expire)

    def _proceed(self) -> None:
        """Reset the session, or let the client continue if the reset is done."""
        if not self.is_resetting or self._cancels:
            return
        if self.state.needs_reset:
            self.port.send(self.state.reset())
        elif self.state.phase is Phase.IDLE:
            self._give_back()

    def _give_back(self) -> None:
        """Let the client continue, and serve another client."""
        client = self._release()
        if self.state.failed:
            self.close()
        else:
            self._pool.take_back(self)
        if client is not None:
            client.advance()

    def _release(self) -> PooledClient | None:
        """Send the client the last messages of its transaction, and stop serving it."""
        client, self.client = self.client, None
        self.state.client = None
        self.is_resetting = False
        self._stop_timer()
        held, self._held = self._held, b""
        if client is not None:
            client.server = None
            client.port.send(held)
        return client

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        """Close a connection whose reset has taken too long. Its client continues."""
        client = self._release()
        self.close()
        if client is not None:
            client.advance()

    def _end(self) -> None:
        self._lose(ends_idle=self.state.is_shut_down)

    def _lose(self, *, ends_idle: bool) -> None:
        """Close the connection, and end the client as well if it is in a transaction."""
        if self._closed:
            return
        client, is_done = self.client, self.is_resetting
        self.close()
        if ends_idle:
            self._pool.note_end(self)
        if is_done:
            self._release()
        if client is None:
            return
        client.server = None
        if is_done:
            client.advance()
        elif self.state.phase is Phase.SETTINGS:  # no message of the client was sent
            self._pool.request(client)
        elif self.state.fatal is not None:  # the client has received the error
            client.end()
        else:
            client.refuse(ProtocolError("server conn crashed?"))

    def close(self) -> None:
        """Close the connection. The server rolls back an open transaction."""
        self._closed = True
        self._stop_timer()
        self.state.close()
        self.port.abort()
        self._pool.remove(self)

    def _continue(self) -> None:
        if self.client is not None:
            self.client.control_flow()


class Pool:
    """Server connections, which are opened when clients need them. All use one event loop.

    ``open_server`` raises ComputeRefusedError if the connection is refused. Server connections are
    closed when the last client has left, so an unused pool has no effect on its database.
    """

    def __init__(self, open_server: OpenServer, budget: Budget) -> None:
        self.open_server = open_server
        """Opens a server connection, with the password of the latest client to log in."""
        self.budget: Final = budget
        self.logins = 0
        """The number of clients that are logging in."""
        self.clients: Final[set[PooledClient]] = set()
        self.settings: dict[bytes, bytes] = {}
        self.welcome: bytes = b""
        self._servers: set[PooledServer] = set()
        self._idle: list[PooledServer] = []
        self._waiting: deque[PooledClient] = deque()
        self._opening: set[asyncio.Task[None]] = set()
        self._checks: set[asyncio.Task[None]] = set()
        self._size = 1
        self._first = asyncio.Lock()

    async def prepare(self) -> None:
        """Open a server connection if there is none.

        Raise ComputeRefusedError if the connection is refused.
        """
        async with self._first:
            if not self._servers:
                self._add(await self.open_server())

    def request(self, client: PooledClient) -> None:
        """Assign the next free server to a client."""
        self._waiting.append(client)
        self._match()

    def take_back(self, server: PooledServer) -> None:
        """Take back a server that is free again."""
        self._idle.append(server)
        self._match()
        self.close_unused()

    def remove(self, server: PooledServer) -> None:
        """Forget a closed server."""
        self._servers.discard(server)
        if server in self._idle:
            self._idle.remove(server)
        self._match()

    def note_end(self, server: PooledServer) -> None:
        """Close the idle clients if the last server ended because the compute was suspended."""
        if self._is_empty and self.clients:
            task = asyncio.create_task(self._end_idle(server))
            self._checks.add(task)
            task.add_done_callback(self._checks.discard)

    @property
    def _is_empty(self) -> bool:
        return not self._servers and not self._opening

    async def _end_idle(self, ended: PooledServer) -> None:
        """Close the idle clients, unless the compute is running or the pool has servers again."""
        if await ended.is_running() or not self._is_empty:
            return
        error = ComputeRefusedError("terminating connection due to administrator command", "57P01")
        for client in [one for one in self.clients if one.server is None]:
            client.refuse(error)

    def forget(self, client: PooledClient) -> None:
        """Forget a client that has left."""
        self.clients.discard(client)
        if client in self._waiting:
            self._waiting.remove(client)
        server, client.server = client.server, None
        if server is not None:
            server.leave()

    def close_unused(self) -> bool:
        """Close the servers if there is no client. Return whether the pool is unused."""
        if self.clients or self.logins:
            return False
        self._close_servers()
        return True

    async def close(self) -> None:
        """Close all connections."""
        for client in tuple(self.clients):
            client.end()
        self._close_servers()
        await asyncio.gather(*self._opening, *self._checks, return_exceptions=True)

    def _close_servers(self) -> None:
        for server in tuple(self._servers):
            server.close()
        for task in (*self._opening, *self._checks):
            task.cancel()

    def _match(self) -> None:
        while self._waiting and self._idle:
            self._idle.pop().serve(self._waiting.popleft())
        if not self._waiting:
            return
        free_soon = sum(server.is_resetting for server in self._servers)
        missing = len(self._waiting) - len(self._opening) - free_soon
        allowed = self._size - len(self._servers) - len(self._opening)
        for _ in range(min(missing, allowed)):
            task = asyncio.create_task(self._open())
            self._opening.add(task)
            task.add_done_callback(self._stop_opening)

    def _stop_opening(self, task: asyncio.Task[None]) -> None:
        self._opening.discard(task)
        self._match()

    async def _open(self) -> None:
        try:
            opened = await self.open_server()
        except ComputeRefusedError as error:
            if self._servers:
                await asyncio.sleep(RETRY_DELAY)
            else:
                for client in tuple(self._waiting):
                    client.refuse(error)
            return
        self._add(opened)

    def _add(self, opened: Opened) -> None:
        self.settings, self.welcome = dict(opened.settings), opened.welcome
        self._size = opened.size
        server = PooledServer(opened, self)
        self._servers.add(server)
        self.take_back(server)
