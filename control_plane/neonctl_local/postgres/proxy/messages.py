"""Messages of the Postgres protocol: a type byte, a length, and a payload."""

import re
from struct import Struct
from typing import Final, NamedTuple

INT32: Final = Struct("!i")
_HEADER: Final = Struct("!ci")
HEADER_LENGTH: Final = _HEADER.size

_WRONG_PASSWORD: Final = re.compile(
    rb'(\0C28P01\0Mpassword authentication failed for user )"([^\0]*)"\0'
)

ERROR: Final = b"E"
READY: Final = b"Z"
BACKEND_KEY: Final = b"K"
PARAMETER_STATUS: Final = b"S"
AUTHENTICATION_OK: Final = 0
AUTHENTICATION_CLEARTEXT: Final = 3
AUTHENTICATION_SASL: Final = 10
AUTHENTICATION_SASL_CONTINUE: Final = 11
AUTHENTICATION_SASL_FINAL: Final = 12


class Message(NamedTuple):
    """One message. Payloads may contain passwords, so they are not in the repr."""

    kind: bytes
    payload: bytes

    def __repr__(self) -> str:
        return f"<Message {self.kind!r} of {len(self.payload)} bytes>"

    def encode(self) -> bytes:
        """Return the bytes of the message."""
        return _HEADER.pack(self.kind, len(self.payload) + 4) + self.payload


def decode_header(header: bytes) -> tuple[bytes, int]:
    """Return the type of a message and the length of its payload."""
    kind, length = _HEADER.unpack(header)
    return kind, length - 4


def error_fields(payload: bytes) -> dict[str, str]:
    """Return the fields of an ErrorResponse by their letters."""
    fields = payload.rstrip(b"\0").split(b"\0")
    return {chr(field[0]): field[1:].decode(errors="replace") for field in fields if field}


def error_response(message: str, code: str) -> bytes:
    """Return an ErrorResponse with severity FATAL."""
    text = message.replace("\0", " ")  # a field of the message cannot contain zero bytes
    return Message(ERROR, f"SFATAL\0VFATAL\0C{code}\0M{text}\0\0".encode(errors="replace")).encode()


def with_neons_quotes(data: bytes) -> bytes:
    """Return a server's messages, with Neon's quotation marks in the error for a wrong password."""
    return _WRONG_PASSWORD.sub(rb"\1'\2'\0", data)


def authentication(kind: int, data: bytes = b"") -> bytes:
    """Return the message with which a server requests a kind of authentication."""
    return Message(b"R", INT32.pack(kind) + data).encode()
