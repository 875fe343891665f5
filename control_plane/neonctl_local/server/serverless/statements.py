"""Runs the statements of a request in a session, and keeps their rows as protocol messages."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

import msgspec

from neonctl_local.postgres.client import messages
from neonctl_local.postgres.client.messages import Column, PostgresMessage
from neonctl_local.postgres.client.session import StatementError, WireSession
from neonctl_local.postgres.logins import ServerLogin
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.messages import HEADER_LENGTH, INT32, decode_header
from neonctl_local.postgres.proxy.startup import CancelRequest

_IDLE: Final = b"I"
"""The status of a session without a transaction."""
_LAST: Final = frozenset({"FATAL", "PANIC"})
_COPY: Final = PostgresMessage(
    severity="ERROR",
    sqlstate="0A000",
    message="COPY from or to the client is not possible over HTTP: use INSERT or SELECT",
)
_ELEMENTS: Final = (
    "SELECT oid, typelem FROM pg_catalog.pg_type"
    " WHERE typinput = 'pg_catalog.array_in'::regproc AND oid = ANY ($1)"
)
_LONGEST: Final = 1 << 30
"""The longest Postgres message, in bytes."""
_LONGEST_TEXT: Final = 200_000
"""How many bytes are kept of a message that is not a row: enough for the names of 1,664 columns."""
_COLUMN_FACTOR: Final = 16
"""The memory that a column needs is at most this many times the length of its description."""
_CHUNK: Final = 1 << 16
_ROW: Final = ord("D")
_COPIED: Final = b"d"
"""The data of COPY TO STDOUT."""
_CANCEL_SECONDS: Final = 2.0


FindLogin: TypeAlias = Callable[[], Awaitable[ServerLogin | None]]


class TooLargeError(Exception):
    """The results are larger than allowed."""


class Rows:
    """The rows of a result, as the messages of the Postgres protocol, one after another.

    As Python values, the rows would need many times as much memory. ``reserve`` is called before
    the rows grow, and raises an error if the memory is full. ``size`` is the size of the values and
    of the descriptions of the columns, in bytes.
    """

    def __init__(self, most_bytes: int, reserve: Callable[[int], None]) -> None:
        self.content: bytearray = bytearray()
        self.size: int = 0
        self._most_bytes = most_bytes
        self._reserve = reserve
        self._reserved = 0

    def free(self) -> None:
        """Drop the rows."""
        self.content = bytearray()

    def count(self, size: int) -> None:
        """Add the size of a row. Raise TooLargeError if the total is too large."""
        self.size += size
        if self.size > self._most_bytes:
            raise TooLargeError

    def describe(self, size: int) -> None:
        """Count the message that describes the columns, and reserve memory for it."""
        self.count(size)
        self._reserve(_COLUMN_FACTOR * size)

    def add(self, data: bytes | bytearray) -> None:
        """Add received bytes, and reserve memory for them first."""
        missing = len(self.content) + len(data) - self._reserved
        if missing > 0:
            # A bytearray that grows takes up to an eighth more than its content.
            step = max(missing, len(self.content) // 8, _CHUNK)
            self._reserve(step)
            self._reserved += step
        self.content.extend(data)


class Result(msgspec.Struct):
    """The result of a statement. ``status`` is like ``INSERT 0 3``."""

    rows: Rows
    columns: Sequence[Column] = ()
    status: str = ""


class Statements:
    """The statements of one session. Methods raise StatementError, OSError and EOFError.

    After a TooLargeError or an error of ``reserve``, some rows are unread, so the session can only
    be closed. One of the events ``changes`` is set when the session may no longer be permitted.
    ``find_login`` returns what the server checks at a login now, and ``login`` is what the server
    checked when this session logged in.
    """

    def __init__(
        self,
        session: WireSession,
        cancel: Callable[[CancelRequest], Awaitable[None]],
        changes: Sequence[asyncio.Event],
        find_login: FindLogin,
        login: ServerLogin | None,
    ) -> None:
        self.session: Final = session
        self._cancel = cancel
        self._changes = changes
        self._find_login = find_login
        self._login = login
        self._is_idle = True
        self._is_running = False
        self._unread = bytearray()
        self._element_ids: dict[int, int] = {}
        self._known_types: set[int] = set()

    @property
    def can_be_reused(self) -> bool:
        """True if no statement is running, and no transaction is open."""
        return self._is_idle and not self._is_running

    @property
    def is_outdated(self) -> bool:
        """True if a change since the login could cause a new session to be refused."""
        return any(change.is_set() for change in self._changes)

    async def would_be_accepted(self) -> bool:
        """Return whether the server would accept the login of this session now."""
        login = await self._find_login()
        return login is not None and login.may_connect and login == self._login

    async def start_cleaning(self) -> None:
        """Make Postgres forget all settings, temporary tables and prepared statements."""
        self._is_running = True
        await self.session.send(messages.query("DISCARD ALL"))

    async def finish_cleaning(self) -> None:
        """Wait until the session is clean. Raise EOFError if the server has closed it."""
        await self._result(_unlimited())
        reading = self.session.reader.read(1)
        try:
            reading.send(None)  # a timeout of zero takes twenty times as long
        except StopIteration:
            raise EOFError("the server closed the session") from None
        reading.close()  # it would wait, so nothing has arrived

    async def cancel(self) -> None:
        """Cancel the running statement, which would continue if only the connection were closed."""
        if not self.can_be_reused:
            with suppress(OSError, EOFError, TimeoutError, ComputeRefusedError):
                async with asyncio.timeout(_CANCEL_SECONDS):
                    await self._cancel(CancelRequest(self.session.key))

    async def run(
        self, sql: str, parameters: Sequence[bytes | None] = (), *, rows: Rows | None = None
    ) -> Result:
        """Run one statement, and add its rows to ``rows``."""
        self._is_running = True
        await self.session.send(messages.statement(sql, parameters))
        return await self._result(rows or _unlimited())

    async def element_ids(self, type_ids: set[int]) -> Mapping[int, int]:
        """Return the element type of each array type."""
        if unknown := type_ids - self._known_types:
            array = f"{{{','.join(map(str, sorted(unknown)))}}}"
            found = await self.run(_ELEMENTS, [array.encode()])
            for payload in payloads(found.rows):
                type_id, element_id = messages.decode_row(payload)
                self._element_ids[int(type_id or 0)] = int(element_id or 0)
            self._known_types |= unknown
        return self._element_ids

    async def _result(self, rows: Rows) -> Result:
        """Read messages until the server is ready for the next statement."""
        result, error = Result(rows), None
        while True:
            kind, payload = await self._message(rows)
            if kind == b"T":
                rows.describe(len(payload))
                result.columns = messages.decode_columns(payload)
            elif kind == b"C":
                result.status = messages.decode_status(payload)
            elif kind == b"E":
                error = error or messages.decode_message(payload)
                if error.severity in _LAST:
                    raise StatementError(error)
            elif kind in (b"G", b"H"):
                error = _COPY
                if kind == b"G":
                    # The server has ignored the Sync message after the statement.
                    await self.session.send(messages.copy_fail(_COPY.message) + messages.SYNC)
            elif kind == b"Z":
                self._is_idle = payload == _IDLE
                self._is_running = False
                break
        if error is not None:
            raise StatementError(error)
        return result

    async def _message(self, rows: Rows) -> tuple[bytes, bytes]:
        """Return the next message that is not a row. Add the rows before it to ``rows``."""
        unread = self._unread
        while True:
            if unread and unread[0] == _ROW:
                self._take_rows(rows)
            if len(unread) < HEADER_LENGTH:
                await self._receive()
                continue
            kind, length = decode_header(bytes(unread[:HEADER_LENGTH]))
            if length < 0:
                raise EOFError("the server sent a malformed message")
            if kind == b"D":
                await self._take_part(rows, length)
                continue
            kept = HEADER_LENGTH + (0 if kind == _COPIED else min(length, _LONGEST_TEXT))
            while len(unread) < kept:
                await self._receive()
            payload = bytes(unread[HEADER_LENGTH:kept])
            del unread[:kept]
            if HEADER_LENGTH + length > kept:
                await self._drop(HEADER_LENGTH + length - kept)
            if kind != _COPIED:
                return kind, payload

    def _take_rows(self, rows: Rows) -> None:
        """Move the complete rows at the start of the received bytes to ``rows``."""
        unread, start = self._unread, 0
        while start + HEADER_LENGTH <= len(unread) and unread[start] == _ROW:
            [length] = INT32.unpack_from(unread, start + 1)
            if start + 1 + length > len(unread):
                break
            rows.count(length - INT32.size)
            start += 1 + length
        if start:
            rows.add(unread[:start])
            del unread[:start]

    async def _take_part(self, rows: Rows, length: int) -> None:
        """Move a row to ``rows`` while its parts arrive."""
        rows.count(length)
        missing = HEADER_LENGTH + length
        while missing:
            part = self._unread[:missing]
            rows.add(part)
            del self._unread[:missing]
            missing -= len(part)
            if missing:
                await self._receive()

    async def _drop(self, length: int) -> None:
        while length:
            dropped = min(length, len(self._unread))
            del self._unread[:dropped]
            length -= dropped
            if length:
                await self._receive()

    async def _receive(self) -> None:
        data = await self.session.reader.read(_CHUNK)
        if not data:
            raise EOFError("the server closed the session")
        self._unread += data


def payloads(rows: Rows) -> Iterator[memoryview]:
    """Yield the payload of each row."""
    content, start = memoryview(rows.content), 0
    while start < len(content):
        [length] = INT32.unpack_from(content, start + 1)
        end = start + 1 + length
        yield content[start + HEADER_LENGTH : end]
        start = end


def _unlimited() -> Rows:
    """Return a collector without a limit, for our own statements: their results are small."""
    return Rows(_LONGEST, lambda _size: None)
