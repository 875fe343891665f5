"""Reads the packets that a client sends before authentication. Pure: bytes in, records out."""

from collections.abc import Mapping
from struct import Struct
from typing import Final, NamedTuple, TypeAlias

from neonctl_local.postgres.proxy.errors import ProtocolError
from neonctl_local.postgres.proxy.messages import INT32

MAX_STARTUP_LENGTH: Final = 10_000
"""The length of the longest startup packet that Postgres accepts."""

TLS_RECORD: Final = 0x16
"""The first byte of a TLS handshake. A startup packet never starts with this byte."""

_MIN_LENGTH: Final = 8
_VERSION_3_0: Final = 3 << 16
_CANCEL: Final = 1234 << 16 | 5678
_SSL: Final = 1234 << 16 | 5679
_GSS: Final = 1234 << 16 | 5680
_CANCEL_KEY_LENGTHS: Final = range(4, 257)
_HEADER: Final = Struct("!ii")


class SSLRequest(NamedTuple):
    """A request for TLS."""


class GSSENCRequest(NamedTuple):
    """A request for GSSAPI encryption, which the proxy does not support."""


class CancelRequest(NamedTuple):
    """A request to cancel the query of a session. ``key`` is the process id and the secret."""

    key: bytes

    def __repr__(self) -> str:
        return "<CancelRequest>"

    def encode(self) -> bytes:
        """Return the packet."""
        return _HEADER.pack(len(self.key) + _MIN_LENGTH, _CANCEL) + self.key


class StartupMessage(NamedTuple):
    """The start of a session: the protocol version, and parameters like ``user``."""

    version: int
    parameters: Mapping[bytes, bytes]

    def __repr__(self) -> str:
        return f"<StartupMessage of version {self.version >> 16}.{self.version & 0xFFFF}>"

    def encode(self) -> bytes:
        """Return the packet."""
        pairs = b"".join(b"%b\0%b\0" % pair for pair in self.parameters.items())
        return _HEADER.pack(len(pairs) + _MIN_LENGTH + 1, self.version) + pairs + b"\0"


StartupPacket: TypeAlias = SSLRequest | GSSENCRequest | CancelRequest | StartupMessage


def decode_length(prefix: bytes) -> int:
    """Return the length of the rest of a startup packet, from its first 4 bytes."""
    [length] = INT32.unpack(prefix)
    if not _MIN_LENGTH <= length <= MAX_STARTUP_LENGTH:
        raise ProtocolError("invalid length of startup packet")
    return int(length) - len(prefix)


def decode_startup(body: bytes) -> StartupPacket:
    """Decode a startup packet from the bytes after its length."""
    [code] = INT32.unpack_from(body)
    rest = body[INT32.size :]
    if code == _CANCEL:
        return _decode_cancel(rest)
    if code in (_SSL, _GSS):
        if rest:
            raise ProtocolError("invalid length of startup packet")
        return SSLRequest() if code == _SSL else GSSENCRequest()
    if code >> 16 != _VERSION_3_0 >> 16:
        raise ProtocolError(
            f"unsupported frontend protocol {(code >> 16) & 0xFFFF}.{code & 0xFFFF}:"
            " server supports 3.0 to 3.2",
            "0A000",
        )
    return StartupMessage(code, _decode_parameters(rest))


def _decode_cancel(rest: bytes) -> CancelRequest:
    if len(rest) - INT32.size not in _CANCEL_KEY_LENGTHS:
        raise ProtocolError("invalid length of cancel request packet")
    return CancelRequest(rest)


def _decode_parameters(rest: bytes) -> dict[bytes, bytes]:
    if not rest.endswith(b"\0"):
        raise ProtocolError("invalid startup packet layout: expected terminator as last byte")
    words = rest[:-1].split(b"\0")
    if words.pop() or len(words) % 2 or b"" in words[::2]:
        raise ProtocolError("invalid startup packet layout: expected pairs of terminated strings")
    return dict(zip(words[::2], words[1::2], strict=True))
