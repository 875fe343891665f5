"""A session that speaks the Postgres protocol as clients do.

No driver is used, because drivers convert values, and read complete rows into memory.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from neonctl_local.postgres.client import messages
from neonctl_local.postgres.client.messages import PostgresMessage
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.hashing import hash_for
from neonctl_local.postgres.proxy.messages import (
    AUTHENTICATION_CLEARTEXT,
    AUTHENTICATION_OK,
    AUTHENTICATION_SASL,
    AUTHENTICATION_SASL_CONTINUE,
    AUTHENTICATION_SASL_FINAL,
    HEADER_LENGTH,
    INT32,
    decode_header,
)
from neonctl_local.postgres.proxy.scram import Scram, Secret
from neonctl_local.postgres.proxy.startup import StartupMessage

_LAST: Final = frozenset({"FATAL", "PANIC"})
_VERSION: Final = 3 << 16
_LONGEST_MESSAGE: Final = 200_000
"""How many bytes of a message are kept: enough for the names of 1,664 columns, the maximum."""
_CHUNK: Final = 1 << 16


class StatementError(Exception):
    """Postgres refused a statement or the connection."""

    def __init__(self, message: PostgresMessage) -> None:
        super().__init__(message.message)
        self.message: Final = message

    @property
    def is_last(self) -> bool:
        """True if the server ends the session."""
        return self.message.severity in _LAST


def startup_message(parameters: Mapping[str, str]) -> StartupMessage:
    """Return the first message of a session."""
    encoded = {name.encode(): value.encode() for name, value in parameters.items()}
    return StartupMessage(_VERSION, encoded)


class WireSession:
    """The client's side of a session. Its methods raise StatementError, OSError and EOFError."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader: Final = reader
        self.key: bytes = b""
        """The session's process id and secret, which cancel requests contain."""
        self._writer = writer

    async def log_in(self, password: str, secret: bytes | Secret | None = None) -> None:
        """Start the session, after the server has received :func:`startup_message`.

        The ``secret`` of a password that was checked earlier makes this faster.
        """
        scram = Scram(secret or password.encode())
        while True:
            kind, length = await self.header()
            payload = await self.payload(length)
            if kind == b"R":
                await self._authenticate(scram, payload, password)
            elif kind == b"K":
                self.key = payload
            elif kind == b"E":
                raise StatementError(messages.decode_message(payload))
            elif kind == b"Z":
                return

    async def send(self, data: bytes) -> None:
        """Send messages. Wait if the server reads them too slowly."""
        self._writer.write(data)
        await self._writer.drain()

    async def header(self) -> tuple[bytes, int]:
        """Return the type of the next message, and the length of its payload."""
        return decode_header(await self.reader.readexactly(HEADER_LENGTH))

    async def payload(self, length: int, longest: int = _LONGEST_MESSAGE) -> bytes:
        """Read a payload. Drop everything beyond ``longest`` bytes, such as a long error's end."""
        if length < 0:
            raise EOFError("the server sent a malformed message")
        payload = await self.reader.readexactly(min(length, longest))
        await self.skip(length - len(payload))
        return payload

    async def skip(self, length: int) -> None:
        """Read the next ``length`` bytes, and drop them."""
        while length > 0:
            length -= len(await self.reader.readexactly(min(length, _CHUNK)))

    async def close(self) -> None:
        """End the session."""
        self._writer.write(messages.TERMINATE)
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()

    async def _authenticate(self, scram: Scram, payload: bytes, password: str) -> None:
        [kind] = INT32.unpack_from(payload)
        if kind == AUTHENTICATION_SASL:
            await self.send(scram.first())
        elif kind == AUTHENTICATION_SASL_CONTINUE:
            address = self._writer.get_extra_info("peername")
            try:
                final = await hash_for(address, scram.final, payload[INT32.size :])
            except ComputeRefusedError as error:
                raise StatementError(
                    PostgresMessage(severity="FATAL", sqlstate=error.code, message=error.message)
                ) from error
            await self.send(final)
        elif kind == AUTHENTICATION_CLEARTEXT:
            await self.send(messages.password(password))
        elif kind not in (AUTHENTICATION_OK, AUTHENTICATION_SASL_FINAL):
            raise StatementError(
                PostgresMessage(severity="FATAL", message=f"unknown authentication method {kind}")
            )
