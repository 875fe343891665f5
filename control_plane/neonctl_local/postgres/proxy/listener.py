"""Accepts connections, even when the process has no file descriptors left."""

import asyncio
import errno
import os
import socket
from contextlib import suppress
from typing import Final, NamedTuple

from neonctl_local.postgres.proxy.streams import wait_for

_BACKLOG: Final = 1024
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE})
_BROKEN: Final = frozenset({errno.EBADF, errno.EINVAL, errno.ENOTSOCK})
"""Errors of the listening socket. Other errors affect one connection, or are transient."""
_PAUSE: Final = 0.05


class Accepted(NamedTuple):
    """A new connection."""

    client: socket.socket
    last: bool
    """True if no file descriptor was left for a session, so the connection has to be refused."""


class Listener:
    """A listening TCP socket, and a spare file descriptor to refuse connections with."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._spare: int | None = None
        self.keep_spare()

    @property
    def port(self) -> int:
        """The port of the socket."""
        return int(self._listening.getsockname()[1])

    def fileno(self) -> int:
        """Return the file descriptor of the socket."""
        return self._listening.fileno()

    async def accept(self) -> Accepted:
        """Return the next connection. Call ``keep_spare`` after refusing a connection."""
        while True:
            # Without file descriptors, accept() fails even if no client is waiting.
            await wait_for(self._listening, writes=False)
            try:
                return Accepted(self._accept(), last=False)
            except BlockingIOError:
                continue
            except OSError as error:
                if error.errno in _BROKEN:
                    raise
                use_spare = self._spare is not None and error.errno in _EXHAUSTED
            if use_spare:
                self._release_spare()
                with suppress(OSError):
                    return Accepted(self._accept(), last=True)
            await asyncio.sleep(_PAUSE)
            self.keep_spare()

    def keep_spare(self) -> None:
        """Open the spare file descriptor again, if one is left."""
        if self._spare is None:
            with suppress(OSError):
                self._spare = os.dup(self._listening.fileno())

    def close(self) -> None:
        """Stop accepting connections."""
        self._release_spare()
        self._listening.close()

    def _accept(self) -> socket.socket:
        client, _ = self._listening.accept()
        client.settimeout(0)
        with suppress(OSError):  # some systems refuse this once the client has disconnected
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return client

    def _release_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None


async def listen(host: str, port: int) -> Listener:
    """Listen on a host and port. Port 0 selects a free port.

    Raise OSError, naming the address, if the port is in use.
    """
    loop = asyncio.get_running_loop()
    [(family, _, _, _, address), *_] = await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    try:
        listening = socket.create_server((str(address[0]), port), family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        message = f"cannot listen on {host}:{port} for databases: {reason}"
        raise OSError(error.errno, message) from None
    listening.settimeout(0)
    return Listener(listening)
