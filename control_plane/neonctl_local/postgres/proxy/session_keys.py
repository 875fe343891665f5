"""Finds a session's key, for cancel requests. Pure: bytes from the server in, the key out."""

from neonctl_local.postgres.proxy.messages import BACKEND_KEY, HEADER_LENGTH, READY, decode_header


class SessionKeyScanner:
    """Reads the messages of a server until it is ready for the first query.

    ``key`` is the session's process id and secret, once the server has sent them.
    ``done`` is true as soon as the key is known, or no later message can contain it.
    """

    def __init__(self) -> None:
        self.key: bytes | None = None
        self.done: bool = False
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Read the next bytes from the server."""
        rest = self._rest + data
        while not self.done and len(rest) >= HEADER_LENGTH:
            kind, length = decode_header(rest[:HEADER_LENGTH])
            end = HEADER_LENGTH + length
            if kind == READY or length < 0:
                self.done = True
            elif len(rest) < end:
                break
            elif kind == BACKEND_KEY:
                self.key = rest[HEADER_LENGTH:end]
                self.done = True
            rest = rest[end:]
        self._rest = b"" if self.done else rest
