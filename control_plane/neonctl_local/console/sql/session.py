"""A session through the databases' proxy that keeps only the start of each value."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from struct import Struct
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec

from neonctl_local.postgres.client import messages
from neonctl_local.postgres.client.messages import Column, PostgresMessage
from neonctl_local.postgres.client.session import StatementError, WireSession, startup_message
from neonctl_local.postgres.proxy.messages import INT32
from neonctl_local.postgres.proxy.startup import CancelRequest

MESSAGE_LENGTH: Final = 2000
"""How many characters of each field in an error or notice are kept."""

_SSL_REQUEST: Final = Struct("!ii").pack(8, 1234 << 16 | 5679)
_CANCEL_TIME: Final = 2.0
_LAST: Final = frozenset({"FATAL", "PANIC"})
"""The severities of errors that end the session."""
_MOST_NOTICES: Final = 100
_VALUE_SIZE: Final = 20
"""The characters that a page needs for a value besides its text."""
_COPY: Final = "this page cannot copy from or to a file: use INSERT or SELECT"


class Bounds(NamedTuple):
    """How much of a result is kept: rows, characters per value, and characters in total."""

    rows: int
    cell: int
    total: int


class Value(NamedTuple):
    """A value of a row: the start of its text, or None for NULL, and whether the text is cut."""

    text: str | None
    is_cut: bool = False


class Result:
    """The result of a statement.

    ``status`` is a command tag such as ``INSERT 0 3``, or empty if the statement was stopped.
    """

    def __init__(self) -> None:
        self.columns: Sequence[Column] | None = None
        self.rows: list[Sequence[Value]] = []
        self.status: str = ""
        self.has_more: bool = False
        self.notices: list[PostgresMessage] = []
        self.size: int = 0


class BoundedSession:
    """A session whose results are bounded. Methods raise StatementError, OSError and EOFError."""

    def __init__(self, session: WireSession, uri: SplitResult) -> None:
        self._session = session
        self._uri = uri

    async def execute(self, sql: str) -> None:
        """Run a statement that returns no rows."""
        await self._session.send(messages.query(sql))
        await self._result(Result(), Bounds(0, 0, 0))

    async def run(self, sql: str, bounds: Bounds, *, stops: bool) -> Result:
        """Run one statement. With ``stops``, Postgres stops after the rows that the bounds allow.

        Without ``stops``, the other rows are computed and dropped, because computing them may
        change data.
        """
        most_rows = bounds.rows + 1 if stops else 0
        await self._session.send(messages.statement(sql, most_rows=most_rows))
        result = Result()
        await self._result(result, bounds)
        return result

    async def cancel(self) -> None:
        """Cancel the running statement, if that is possible within two seconds."""
        with suppress(OSError, EOFError, TimeoutError, ssl.SSLError):
            async with asyncio.timeout(_CANCEL_TIME):
                reader, writer = await _open(self._uri)
                try:
                    writer.write(CancelRequest(self._session.key).encode())
                    await reader.read()
                finally:
                    writer.transport.abort()

    async def _result(self, result: Result, bounds: Bounds) -> None:
        """Read messages until the server is ready for the next statement."""
        error: PostgresMessage | None = None
        while True:
            kind, length = await self._session.header()
            if kind == b"D":
                await self._row(result, bounds)
                continue
            if kind == b"d":  # data of COPY TO STDOUT
                await self._session.skip(length)
                continue
            payload = await self._session.payload(length)
            if kind == b"Z":
                break
            if kind == b"E":
                error = error or _shortened(messages.decode_message(payload))
                if error.severity in _LAST:
                    raise StatementError(error)
            elif kind in (b"G", b"H"):
                error = PostgresMessage(severity="ERROR", message=_COPY)
                if kind == b"G":
                    # The server has ignored the Sync message after the statement.
                    await self._session.send(messages.copy_fail(_COPY) + messages.SYNC)
            else:
                _note(result, kind, payload)
        if error is not None:
            raise StatementError(error)

    async def _row(self, result: Result, bounds: Bounds) -> None:
        """Read a row, and keep it if it is within the bounds."""
        count = messages.decode_count(await self._session.reader.readexactly(2))
        is_kept = len(result.rows) < bounds.rows and result.size < bounds.total
        row: list[Value] = []
        for _ in range(count):
            [length] = INT32.unpack(await self._session.reader.readexactly(INT32.size))
            if not is_kept:
                await self._session.skip(length)
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
        start = await self._session.reader.readexactly(min(length, 4 * most))
        await self._session.skip(length - len(start))
        text = start.decode(errors="replace")
        return Value(text[:most], is_cut=len(text) > most or len(start) < length)


def _note(result: Result, kind: bytes, payload: bytes) -> None:
    if kind == b"T":
        result.columns = messages.decode_columns(payload)
    elif kind == b"C":
        result.status = messages.decode_status(payload)
    elif kind == b"N" and len(result.notices) < _MOST_NOTICES:
        result.notices.append(_shortened(messages.decode_message(payload)))


def _shortened(message: PostgresMessage) -> PostgresMessage:
    """Return a message with its fields shortened to fit on a page."""
    return msgspec.structs.replace(
        message,
        message=message.message[:MESSAGE_LENGTH],
        detail=(message.detail or "")[:MESSAGE_LENGTH],
        hint=(message.hint or "")[:MESSAGE_LENGTH],
        context=(message.context or "")[:MESSAGE_LENGTH],
    )


@asynccontextmanager
async def connect(
    uri: str, seconds: float, settings: Mapping[str, str]
) -> AsyncGenerator[BoundedSession]:
    """Open a session with a connection URI. Cancel its statement if the block is interrupted."""
    parts = urlsplit(uri)
    parameters = {
        "user": unquote(parts.username or ""),
        "database": unquote(parts.path[1:]),
        "client_encoding": "UTF8",
        "options": dict(parse_qsl(parts.query)).get("options", ""),
        **settings,
    }
    async with asyncio.timeout(seconds):
        session = WireSession(*await _open(parts))
        try:
            await session.send(startup_message(parameters).encode())
            await session.log_in(unquote(parts.password or ""))
        except BaseException:
            session.abort()
            raise
    bounded = BoundedSession(session, parts)
    try:
        yield bounded
        await session.close()
    except BaseException as error:
        if not isinstance(error, StatementError):
            await bounded.cancel()
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
