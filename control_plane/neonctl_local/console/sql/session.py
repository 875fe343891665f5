"""A session at the proxy of the databases, which speaks the Postgres protocol as clients do.

No driver is used, because drivers read a complete row into memory, and convert its values. This
session keeps the start of each value, in the text form of Postgres.
"""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from struct import Struct
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from neonctl_local.console.sql import messages
from neonctl_local.console.sql.messages import Column, PostgresMessage
from neonctl_local.postgres.proxy.messages import (
    AUTHENTICATION_OK,
    AUTHENTICATION_SASL,
    AUTHENTICATION_SASL_CONTINUE,
    AUTHENTICATION_SASL_FINAL,
    HEADER_LENGTH,
    INT32,
    decode_header,
)
from neonctl_local.postgres.proxy.passwords import Scram
from neonctl_local.postgres.proxy.startup import CancelRequest, StartupMessage

_VERSION: Final = 3 << 16
_SSL_REQUEST: Final = Struct("!ii").pack(8, 1234 << 16 | 5679)
_LONGEST_MESSAGE: Final = 200_000
"""The bytes that are kept of a message. The names of the most columns (1,664) fit."""
_CHUNK: Final = 1 << 16
_CANCEL_TIME: Final = 2.0
_LAST: Final = frozenset({"FATAL", "PANIC"})
"""The severities of errors that end the session."""
_MOST_NOTICES: Final = 100
_VALUE_SIZE: Final = 20
"""The characters that a page needs for a value besides its text."""
_COPY: Final = "this page cannot copy from or to a file: use INSERT or SELECT"


class StatementError(Exception):
    """Postgres refused a statement or the connection."""

    def __init__(self, message: PostgresMessage) -> None:
        super().__init__(message.message)
        self.message = message


class Bounds(NamedTuple):
    """The most that is kept of a result: rows, characters of a value, and of all values."""

    rows: int
    cell: int
    total: int


class Value(NamedTuple):
    """A value of a row: the start of its text, None for NULL, and its length in bytes."""

    text: str | None
    is_cut: bool = False


class Result:
    """The result of a statement. ``status`` is like ``INSERT 0 3``, or empty if it was stopped."""

    def __init__(self) -> None:
        self.columns: Sequence[Column] | None = None
        self.rows: list[Sequence[Value]] = []
        self.status: str = ""
        self.has_more: bool = False
        self.notices: list[PostgresMessage] = []
        self.size: int = 0


class Session:
    """A session. Its methods raise StatementError, OSError and EOFError."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, uri: SplitResult
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._uri = uri
        self._key = b""

    async def log_in(self, settings: dict[str, str]) -> None:
        """Start the session. This starts a suspended compute."""
        parameters = {
            "user": unquote(self._uri.username or ""),
            "database": unquote(self._uri.path[1:]),
            "client_encoding": "UTF8",
            "options": dict(parse_qsl(self._uri.query)).get("options", ""),
            **settings,
        }
        encoded = {name.encode(): value.encode() for name, value in parameters.items()}
        self._writer.write(StartupMessage(_VERSION, encoded).encode())
        scram = Scram(unquote(self._uri.password or "").encode())
        while True:
            kind, payload = await self._message()
            if kind == b"R":
                await self._authenticate(scram, payload)
            elif kind == b"K":
                self._key = payload
            elif kind == b"E":
                raise StatementError(messages.decode_message(payload))
            elif kind == b"Z":
                return

    async def execute(self, sql: str) -> None:
        """Run a statement without a result."""
        self._writer.write(messages.query(sql))
        await self._result(Result(), Bounds(0, 0, 0))

    async def run(self, sql: str, bounds: Bounds, *, stops: bool) -> Result:
        """Run one statement. With ``stops``, Postgres stops after the rows of the bounds.

        Without it, the other rows are computed and dropped, because computing them may change data.
        """
        self._writer.write(messages.statement(sql, bounds.rows + 1 if stops else 0))
        result = Result()
        await self._result(result, bounds)
        return result

    async def cancel(self) -> None:
        """Cancel the running statement, if that is possible within two seconds."""
        with suppress(OSError, EOFError, TimeoutError, ssl.SSLError):
            async with asyncio.timeout(_CANCEL_TIME):
                reader, writer = await _open(self._uri)
                try:
                    writer.write(CancelRequest(self._key).encode())
                    await reader.read()
                finally:
                    writer.transport.abort()

    async def close(self) -> None:
        """End the session."""
        self._writer.write(messages.TERMINATE)
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()

    def abort(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()

    async def _authenticate(self, scram: Scram, payload: bytes) -> None:
        [kind] = INT32.unpack_from(payload)
        if kind == AUTHENTICATION_SASL:
            self._writer.write(scram.first())
        elif kind == AUTHENTICATION_SASL_CONTINUE:
            self._writer.write(await asyncio.to_thread(scram.final, payload[INT32.size :]))
        elif kind not in (AUTHENTICATION_OK, AUTHENTICATION_SASL_FINAL):
            raise StatementError(
                PostgresMessage(severity="FATAL", message=f"unknown authentication method {kind}")
            )

    async def _result(self, result: Result, bounds: Bounds) -> None:
        """Read messages until the server is ready for the next statement."""
        await self._writer.drain()
        error: PostgresMessage | None = None
        while True:
            kind, length = decode_header(await self._reader.readexactly(HEADER_LENGTH))
            if kind == b"D":
                await self._row(result, bounds)
                continue
            if kind == b"d":  # data of COPY TO STDOUT
                await self._skip(length)
                continue
            payload = await self._payload(length)
            if kind == b"Z":
                break
            if kind == b"E":
                error = error or messages.decode_message(payload)
                if error.severity in _LAST:
                    raise StatementError(error)
            elif kind in (b"G", b"H"):
                error = PostgresMessage(severity="ERROR", message=_COPY)
                if kind == b"G":
                    # The server has ignored the Sync message after the statement.
                    self._writer.write(messages.copy_fail(_COPY) + messages.SYNC)
            else:
                _note(result, kind, payload)
        if error is not None:
            raise StatementError(error)

    async def _row(self, result: Result, bounds: Bounds) -> None:
        """Read a row, and keep it if it is within the bounds."""
        count = messages.decode_count(await self._reader.readexactly(2))
        is_kept = len(result.rows) < bounds.rows and result.size < bounds.total
        row: list[Value] = []
        for _ in range(count):
            [length] = INT32.unpack(await self._reader.readexactly(INT32.size))
            if not is_kept:
                await self._skip(length)
                continue
            # One row can be large too: it may have 1,664 columns.
            most = max(0, min(bounds.cell, bounds.total - result.size))
            value = Value(None) if length < 0 else await self._value(length, most)
            row.append(value)
            result.size += _VALUE_SIZE + len(value.text or "")
        if is_kept:
            result.rows.append(row)
        else:
            result.has_more = True

    async def _value(self, length: int, most: int) -> Value:
        start = await self._reader.readexactly(min(length, 4 * most))
        await self._skip(length - len(start))
        text = start.decode(errors="replace")
        return Value(text[:most], is_cut=len(text) > most or len(start) < length)

    async def _message(self) -> tuple[bytes, bytes]:
        await self._writer.drain()
        kind, length = decode_header(await self._reader.readexactly(HEADER_LENGTH))
        return kind, await self._payload(length)

    async def _payload(self, length: int) -> bytes:
        """Read a payload. Drop the rest of a very long one, such as the text of an error."""
        if length < 0:
            raise EOFError("the server sent a malformed message")
        payload = await self._reader.readexactly(min(length, _LONGEST_MESSAGE))
        await self._skip(length - len(payload))
        return payload

    async def _skip(self, length: int) -> None:
        while length > 0:
            length -= len(await self._reader.readexactly(min(length, _CHUNK)))


def _note(result: Result, kind: bytes, payload: bytes) -> None:
    if kind == b"T":
        result.columns = messages.decode_columns(payload)
    elif kind == b"C":
        result.status = messages.decode_status(payload)
    elif kind == b"N" and len(result.notices) < _MOST_NOTICES:
        result.notices.append(messages.decode_message(payload))


@asynccontextmanager
async def connect(uri: str, seconds: float, settings: dict[str, str]) -> AsyncGenerator[Session]:
    """Open a session at a connection URI. Cancel what runs in it if the block is left early."""
    parts = urlsplit(uri)
    async with asyncio.timeout(seconds):
        session = Session(*await _open(parts), parts)
        try:
            await session.log_in(settings)
        except BaseException:
            session.abort()
            raise
    try:
        yield session
        await session.close()
    except BaseException as error:
        if not isinstance(error, StatementError):
            await session.cancel()
        raise
    finally:
        session.abort()


async def _open(uri: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    options = dict(parse_qsl(uri.query))
    host = uri.hostname or ""
    reader, writer = await asyncio.open_connection(host, uri.port)
    try:
        if options.get("sslmode") != "disable":
            context = await asyncio.to_thread(
                ssl.create_default_context, cafile=options.get("sslrootcert")
            )
            writer.write(_SSL_REQUEST)
            await reader.readexactly(1)  # without TLS, the handshake fails
            await writer.start_tls(context, server_hostname=host)
    except BaseException:
        writer.transport.abort()
        raise
    return reader, writer
