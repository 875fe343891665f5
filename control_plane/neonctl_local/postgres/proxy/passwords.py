"""Logs in to a server with a password, for clients whose password has the endpoint id.

The server requires SCRAM-SHA-256 (RFC 5802 and RFC 7677). Its signature is not checked: its socket
is in a directory that only the servers' account can write to.
"""

import asyncio
import base64
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from typing import Final

from neonctl_local.postgres.proxy.errors import ComputeRefusedError, ProtocolError
from neonctl_local.postgres.proxy.messages import (
    AUTHENTICATION_CLEARTEXT,
    AUTHENTICATION_OK,
    AUTHENTICATION_SASL,
    AUTHENTICATION_SASL_CONTINUE,
    AUTHENTICATION_SASL_FINAL,
    ERROR,
    HEADER_LENGTH,
    INT32,
    Message,
    authentication,
    decode_header,
)
from neonctl_local.postgres.proxy.routing import MISSING_ENDPOINT
from neonctl_local.postgres.proxy.streams import Stream

MAX_PASSWORD_LENGTH: Final = 10_000

_AUTHENTICATION: Final = b"R"
_PASSWORD: Final = b"p"
_MECHANISM: Final = b"SCRAM-SHA-256"
_CHANNEL_BINDING: Final = b"n,,"
_CHALLENGE: Final = re.compile(rb"r=([!-+\--~]+),s=([A-Za-z0-9+/]+)=*,i=([1-9][0-9]{0,8})")


async def request_password(client: Stream) -> bytes:
    """Request the password of a client as clear text. Refuse it where others could read it."""
    if not client.is_private():
        raise ComputeRefusedError(MISSING_ENDPOINT)
    await client.send(authentication(AUTHENTICATION_CLEARTEXT))
    kind, length = decode_header(await client.read_exactly(HEADER_LENGTH))
    if kind != _PASSWORD or length < 1:
        raise ProtocolError("expected password response")
    if length > MAX_PASSWORD_LENGTH:
        raise ProtocolError(
            f"the password message has {length} bytes: expected at most {MAX_PASSWORD_LENGTH}"
        )
    password = await client.read_exactly(length)
    if not password.endswith(b"\0"):
        raise ProtocolError("Malformed password message: missing terminator")
    return password[:-1]


async def log_in(server: Stream, client: Stream, password: bytes, message: Message) -> bool:
    """Log in to a server. Return True if it accepted the password.

    ``message`` is the first message of the server. The client receives all messages that are not
    part of the login, like the error of a wrong password.
    """
    exchange = Scram(password)
    while True:
        kind, data = _authentication(message)
        if kind in (None, AUTHENTICATION_OK):
            await client.send(message.encode())
        if kind == AUTHENTICATION_OK or message.kind == ERROR:
            return kind == AUTHENTICATION_OK
        if kind == AUTHENTICATION_SASL:
            await server.send(exchange.first())
        elif kind == AUTHENTICATION_SASL_CONTINUE:
            await server.send(await asyncio.to_thread(exchange.final, data))
        elif kind not in (None, AUTHENTICATION_SASL_FINAL):
            raise ComputeRefusedError(f"Unsupported authentication method: {kind}")
        message = await server.read_message()


def _authentication(message: Message) -> tuple[int | None, bytes]:
    """Return the kind and the data of an authentication message, or None for other messages."""
    if message.kind != _AUTHENTICATION or len(message.payload) < INT32.size:
        return None, b""
    [kind] = INT32.unpack_from(message.payload)
    return kind, message.payload[INT32.size :]


class Scram:
    """The client's side of one SCRAM-SHA-256 exchange.

    Postgres takes the name of the user from the startup message, so ``user`` stays empty.
    """

    def __init__(self, password: bytes, *, user: str = "", nonce: str | None = None) -> None:
        self._password = password
        self._first = f"n={user},r={nonce or secrets.token_urlsafe(18)}".encode()

    def __repr__(self) -> str:
        return "<Scram>"

    def first(self) -> bytes:
        """Return the message that starts the exchange."""
        data = _CHANNEL_BINDING + self._first
        return Message(_PASSWORD, _MECHANISM + b"\0" + INT32.pack(len(data)) + data).encode()

    def final(self, challenge: bytes) -> bytes:
        """Return the response to the server's challenge. Takes a few milliseconds."""
        match = _CHALLENGE.fullmatch(challenge)
        if match is None:
            raise ComputeRefusedError("the server sent a malformed SCRAM challenge")
        nonce, salt, iterations = match[1], base64.b64decode(match[2] + b"=="), int(match[3])
        unproven = b"c=" + base64.b64encode(_CHANNEL_BINDING) + b",r=" + nonce
        salted = hashlib.pbkdf2_hmac("sha256", prepare_password(self._password), salt, iterations)
        key = hmac.digest(salted, b"Client Key", "sha256")
        signature = hmac.digest(
            hashlib.sha256(key).digest(), b",".join((self._first, challenge, unproven)), "sha256"
        )
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return Message(_PASSWORD, unproven + b",p=" + base64.b64encode(proof)).encode()


def prepare_password(password: bytes) -> bytes:
    """Return the SASLprep form (RFC 4013) of a password.

    Like Postgres, return the password itself if it has no such form.
    """
    try:
        text = password.decode()
    except UnicodeDecodeError:
        return password
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char
        for char in text
        if not stringprep.in_table_b1(char)
    )
    normal = unicodedata.normalize("NFKC", mapped)
    return normal.encode() if normal and not _is_prohibited(normal) else password


_PROHIBITED: Final = (
    stringprep.in_table_a1,
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def _is_prohibited(text: str) -> bool:
    """Return whether SASLprep refuses a text: for a character, or for mixed directions."""
    if any(in_table(char) for in_table in _PROHIBITED for char in text):
        return True
    if not any(map(stringprep.in_table_d1, text)):
        return False
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return not ends or any(map(stringprep.in_table_d2, text))
