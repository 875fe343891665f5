"""Moves bytes between clients and servers, in one thread for all connections.

A thread is faster than tasks on an event loop, and sessions continue while the loop is busy. The
thread waits for all sockets with one poller, and receives into one buffer.
"""

import select
import socket
import ssl
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Final, Protocol

from neonctl_local.postgres.proxy.messages import with_neons_quotes
from neonctl_local.postgres.proxy.session_keys import SessionKeyScanner
from neonctl_local.postgres.proxy.streams import NOT_NOW, close

_BUFFER_SIZE: Final = 256 * 1024
"""The size of a read. It exceeds that of a TLS record, so no decrypted bytes stay in a socket."""
_READ: Final = 0x1
_WRITE: Final = 0x4


class _Poller(Protocol):
    """The common methods of ``select.epoll`` and ``select.poll``."""

    def register(self, fd: int, eventmask: int, /) -> None: ...
    def modify(self, fd: int, eventmask: int, /) -> None: ...
    def unregister(self, fd: int, /) -> None: ...
    def poll(self) -> list[tuple[int, int]]: ...


def _new_poller() -> _Poller:
    return select.epoll() if sys.platform == "linux" else select.poll()


class RelayedSession:
    """A client and its server, which the relay connects. The sockets are non-blocking.

    ``on_key`` is called with the session's process id and secret, which cancel requests contain.
    ``on_end`` is called after the sockets are closed. Both run in the relay's thread.
    """

    def __init__(
        self,
        client: socket.socket,
        server: socket.socket,
        *,
        on_key: Callable[[bytes], None],
        on_end: Callable[[], None],
    ) -> None:
        self.on_key: Final = on_key
        self.on_end: Final = on_end
        self.client: Final = _End(self, client)
        self.server: Final = _End(self, server)
        self.client.peer, self.server.peer = self.server, self.client
        self.server.scanner = SessionKeyScanner()
        self.closed: bool = False


class _End:
    """One socket of a session."""

    __slots__ = (
        "fd", "finished", "peer", "pending", "recv_into", "scanner", "send", "session", "sock",
        "watched",
    )  # fmt: skip
    peer: "_End"

    def __init__(self, session: RelayedSession, sock: socket.socket) -> None:
        self.session: RelayedSession = session
        self.sock: socket.socket = sock
        self.fd: int = sock.fileno()
        self.recv_into: Callable[[bytearray | memoryview], int] = sock.recv_into
        self.send: Callable[[memoryview], int] = sock.send
        self.pending: memoryview = memoryview(b"")
        """Bytes that this socket could not take yet. Its peer is not read until they are sent."""
        self.finished: bool = False
        """True once no more bytes can arrive from this socket."""
        self.watched: int = 0
        """The events that the poller reports for this socket."""
        self.scanner: SessionKeyScanner | None = None


class Relay:
    """The thread that moves the bytes of all sessions."""

    def __init__(self) -> None:
        self._poller = _new_poller()
        self._ends: dict[int, _End] = {}
        self._buffer = bytearray(_BUFFER_SIZE)
        self._view = memoryview(self._buffer)
        self._calls: deque[Callable[[], None]] = deque()
        self._waking, self._wake = socket.socketpair()
        self._waking.settimeout(0)
        self._wake.settimeout(0)
        self._running = True
        self._thread = Thread(target=self._run, name="neonctl-async-proxy", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._poller.register(self._waking.fileno(), _READ)
        self._thread.start()

    def add(self, session: RelayedSession) -> None:
        """Start moving the bytes of a session. The relay closes the session's sockets."""
        self._call(partial(self._add, session))

    def close(self, session: RelayedSession) -> None:
        """Close the sockets of a session."""
        self._call(partial(self._close, session))

    def refuse(self, session: RelayedSession, error: bytes) -> None:
        """Send an error to the client and close the sockets, unless the client has logged in."""
        self._call(partial(self._refuse, session, error))

    def stop(self) -> None:
        """Close all sessions, and block until the thread has finished."""
        self._call(self._stop)
        self._thread.join()
        self._waking.close()
        self._wake.close()

    def _call(self, function: Callable[[], None]) -> None:
        """Call a function in the thread."""
        self._calls.append(function)
        with suppress(BlockingIOError):  # a full buffer wakes the thread too
            self._wake.send(b"\0")

    def _run(self) -> None:
        ends, poll = self._ends, self._poller.poll
        while self._running:
            for fd, events in poll():
                end = ends.get(fd)
                if end is not None:
                    self._serve(end, events)
                elif fd == self._waking.fileno():
                    self._run_calls()
        self._release()

    def _run_calls(self) -> None:
        with suppress(BlockingIOError):
            while self._waking.recv(_BUFFER_SIZE):
                pass
        while self._calls:
            self._calls.popleft()()

    def _stop(self) -> None:
        self._running = False

    def _release(self) -> None:
        for end in list(self._ends.values()):
            self._close(end.session)
        if sys.platform == "linux" and isinstance(self._poller, select.epoll):
            self._poller.close()

    def _add(self, session: RelayedSession) -> None:
        for end in (session.server, session.client):
            self._ends[end.fd] = end
            self._watch(end, _READ)
        client = session.client
        if isinstance(client.sock, ssl.SSLSocket) and client.sock.pending():
            self._serve(client, _READ)  # the poller reports no bytes that are decrypted already

    def _close(self, session: RelayedSession) -> None:
        if session.closed:
            return
        session.closed = True
        for end in (session.client, session.server):
            self._watch(end, 0)
            self._ends.pop(end.fd, None)
            close(end.sock)
        session.on_end()

    def _refuse(self, session: RelayedSession, error: bytes) -> None:
        if session.closed or session.server.scanner is None:
            return
        if not session.client.pending:
            with suppress(OSError):
                session.client.send(memoryview(error))
        self._close(session)

    def _watch(self, end: _End, events: int) -> None:
        """Change the events that the poller reports. A socket without events is unregistered."""
        if events == end.watched:
            return
        if not end.watched:
            self._poller.register(end.fd, events)
        elif events:
            self._poller.modify(end.fd, events)
        else:
            self._poller.unregister(end.fd)
        end.watched = events

    def _serve(self, end: _End, events: int) -> None:
        try:
            if events & ~_READ and end.pending:
                self._flush(end)
            if events & ~_WRITE and end.watched & _READ:
                self._pump(end)
        except OSError:
            self._close(end.session)

    def _pump(self, end: _End) -> None:
        """Move received bytes from one socket to its peer."""
        try:
            received = end.recv_into(self._buffer)
        except NOT_NOW:
            return
        except OSError:
            if end is end.session.client:
                raise
            received = 0  # the server closed before it had read everything
        if not received:
            self._finish(end)
            return
        data = self._view[:received]
        if end.scanner is not None:
            data = self._scan(end, end.scanner, bytes(data))
        self._forward(end, data)

    def _forward(self, end: _End, data: memoryview) -> None:
        """Send bytes from ``end`` to its peer. Stop reading if the peer cannot take all of them."""
        peer = end.peer
        try:
            sent = peer.send(data)
        except NOT_NOW:
            sent = 0
        except OSError:
            if peer is end.session.client:
                raise
            self._finish(end)  # the last messages of the server still reach the client
            return
        if sent < len(data):
            peer.pending = memoryview(bytes(data[sent:]))
            self._watch(peer, peer.watched | _WRITE)
            self._watch(end, end.watched & ~_READ)

    def _flush(self, end: _End) -> None:
        """Send pending bytes. Read the peer again once all are sent."""
        try:
            sent = end.send(end.pending)
        except NOT_NOW:
            return
        except OSError:
            if end is end.session.client:
                raise
            end.peer.finished = True  # the last messages of the server still reach the client
            sent = len(end.pending)
        end.pending = end.pending[sent:]
        if end.pending:
            return
        self._watch(end, end.watched & ~_WRITE)
        if end.peer.finished:
            self._finish(end.peer)
            return
        self._watch(end.peer, end.peer.watched | _READ)

    def _finish(self, end: _End) -> None:
        """Notify the peer of ``end`` that no more bytes follow, once all earlier bytes are sent."""
        end.finished = True
        self._watch(end, end.watched & ~_READ)
        if end.peer.pending:
            return
        if end is end.session.server:
            self._close(end.session)
        else:
            with suppress(OSError):  # the server has closed its side too
                end.peer.sock.shutdown(socket.SHUT_WR)

    def _scan(self, end: _End, scanner: SessionKeyScanner, data: bytes) -> memoryview:
        """Search the first messages of a session for its key. Return the messages for the client.

        Quotation marks in a login error are replaced. Postgres sends this error in one piece.
        """
        scanner.feed(data)
        if scanner.key is not None:
            end.session.on_key(scanner.key)
        if scanner.done:
            end.scanner = None
        return memoryview(with_neons_quotes(data))
