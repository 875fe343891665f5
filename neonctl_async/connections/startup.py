"""The start of a Postgres session, up to the request for authentication. Pure: bytes in and out."""

from collections.abc import Mapping
from enum import Enum, auto
from struct import Struct
from typing import Final, Literal

MAX_MESSAGE_BYTES: Final = 30_000
"""The maximum length of a message before authentication, as in libpq."""
MAX_TEXT_CHARACTERS: Final = 300
"""The length to which error messages are cut."""

_INT32: Final = Struct("!i")
_HEADER: Final = Struct("!ci")
_PROTOCOL_3_0: Final = 3 << 16
_SSL_REQUEST: Final = Struct("!ii").pack(8, 1234 << 16 | 5679)

_AUTHENTICATION: Final = b"R"
_ERROR: Final = b"E"
_SKIPPED: Final = (b"N", b"v")
"""NoticeResponse and NegotiateProtocolVersion."""

FINAL_STATES: Final = ("0A", "22", "28", "3D", "42", "08P01")
"""The SQLSTATEs, or SQLSTATE classes, that a later attempt would get again.

They stand for an unsupported feature, an invalid parameter, a refused role, an unknown database, a
missing object and a protocol violation. All others may be transient, such as ``57P03`` while the
server starts, and ``53300`` while it has too many connections. Neon's proxy sends ``XX000`` for
every error of its own, even when it does not yet know about a new compute.
"""


class ServerRefusedError(Exception):
    """The server did not request authentication; the message says why.

    ``is_final`` is True if a later attempt would have the same result.
    """

    def __init__(
        self, stage: Literal["tls", "startup"], reason: str, *, is_final: bool = False
    ) -> None:
        super().__init__(reason)
        self.stage: Literal["tls", "startup"] = stage
        self.is_final = is_final


class Step(Enum):
    """The step that follows the bytes received so far."""

    RECEIVE = auto()
    """Receive more bytes."""
    START_TLS = auto()
    """Do the TLS handshake, then send :meth:`StartupExchange.startup_message`."""
    SEND_STARTUP = auto()
    """Send :meth:`StartupExchange.startup_message`: the server does not use TLS."""
    DONE = auto()
    """The server requests authentication."""


class StartupExchange:
    """One attempt to start a session, without a password.

    Send :attr:`first_bytes`, and pass everything that arrives to :meth:`receive`. ``parameters``
    are the parameters of the startup message, such as ``user``.
    """

    def __init__(self, parameters: Mapping[str, str], *, tls: bool, needs_tls: bool) -> None:
        self._parameters = parameters
        self._needs_tls = needs_tls
        self._is_negotiating = tls
        self._unread = b""

    @property
    def first_bytes(self) -> bytes:
        """The first packet: the request for TLS, or the startup message without TLS."""
        return _SSL_REQUEST if self._is_negotiating else self.startup_message()

    def startup_message(self) -> bytes:
        """Return the startup message."""
        pairs = "".join(f"{name}\0{value}\0" for name, value in self._parameters.items())
        body = _INT32.pack(_PROTOCOL_3_0) + pairs.encode() + b"\0"
        return _INT32.pack(len(body) + _INT32.size) + body

    def receive(self, data: bytes) -> Step:
        """Return the next step. Raises ServerRefusedError for an error or another protocol."""
        self._unread += data
        if self._is_negotiating and self._unread[:1] not in (b"", _ERROR):
            return self._negotiate()
        while self._unread:
            kind, payload = self._next_message()
            if payload is None:
                return Step.RECEIVE
            if kind == _AUTHENTICATION:
                return Step.DONE
            if kind == _ERROR:
                raise _refusal(payload)
        return Step.RECEIVE

    def _negotiate(self) -> Step:
        reply, self._unread, self._is_negotiating = self._unread, b"", False
        if reply == b"S":
            return Step.START_TLS
        if reply != b"N":
            raise _wrong_protocol(reply)
        if self._needs_tls:
            raise ServerRefusedError("tls", "it does not accept TLS connections")
        return Step.SEND_STARTUP

    def _next_message(self) -> tuple[bytes, bytes | None]:
        """Return the type and payload of the first message. An incomplete payload is None."""
        kind = self._unread[:1]
        if kind not in (_AUTHENTICATION, _ERROR, *_SKIPPED):
            raise _wrong_protocol(self._unread)
        if len(self._unread) < _HEADER.size:
            return kind, None
        end = _HEADER.unpack_from(self._unread)[1] + 1
        if not _HEADER.size <= end <= MAX_MESSAGE_BYTES:
            raise _wrong_protocol(self._unread)
        if len(self._unread) < end:
            return kind, None
        payload = self._unread[_HEADER.size : end]
        self._unread = self._unread[end:]
        return kind, payload


def _refusal(payload: bytes) -> ServerRefusedError:
    """Return the error for the payload of an ErrorResponse."""
    fields = {field[:1]: field[1:].decode(errors="replace") for field in payload.split(b"\0")}
    code = _one_line(fields.get(b"C", ""))
    text = _one_line(fields.get(b"M", "")) or "an error without a message"
    state = f" (SQLSTATE {code})" if code else ""
    is_final = code.startswith(FINAL_STATES)
    return ServerRefusedError("startup", f"it responded: {text}{state}", is_final=is_final)


def _wrong_protocol(data: bytes) -> ServerRefusedError:
    reason = f"it does not speak the Postgres protocol, but sent {data[:20]!r}"
    return ServerRefusedError("startup", reason)


def _one_line(text: str) -> str:
    """Return text from the server, shortened and without control characters."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(printable.split())[:MAX_TEXT_CHARACTERS]
