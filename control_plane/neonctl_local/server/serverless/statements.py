"""Runs the statements of a request in a session, and keeps their results as texts."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import msgspec

from neonctl_local.postgres.client import messages
from neonctl_local.postgres.client.messages import Column, PostgresMessage
from neonctl_local.postgres.client.session import Session, StatementError
from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.messages import INT32
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
"""The longest message of Postgres."""
_CANCEL_SECONDS: Final = 2.0


class TooLargeError(Exception):
    """The results have more bytes than allowed."""


class Result(msgspec.Struct):
    """The result of a statement. ``status`` is like ``INSERT 0 3``, and ``size`` is in bytes."""

    columns: Sequence[Column] = ()
    rows: list[list[bytes | None]] = []
    status: str = ""
    size: int = 0


class Statements:
    """The statements of one session. Methods raise StatementError, OSError and EOFError.

    After TooLargeError, rows are unread: the session can only be closed. Each of ``changes`` is
    set when the session may no longer be permitted.
    """

    def __init__(
        self,
        session: Session,
        cancel: Callable[[CancelRequest], Awaitable[None]],
        changes: Sequence[asyncio.Event],
    ) -> None:
        self.session: Final = session
        self._cancel = cancel
        self._changes = changes
        self._is_idle = True
        self._is_running = False
        self._element_ids: dict[int, int] = {}
        self._known_types: set[int] = set()

    @property
    def can_be_reused(self) -> bool:
        """True if no statement runs, and no transaction is open."""
        return self._is_idle and not self._is_running

    @property
    def is_outdated(self) -> bool:
        """True if a new session may be refused."""
        return any(change.is_set() for change in self._changes)

    async def start_cleaning(self) -> None:
        """Let Postgres forget all settings, temporary tables and prepared statements."""
        self._is_running = True
        await self.session.send(messages.query("DISCARD ALL"))

    async def finish_cleaning(self) -> None:
        """Wait until the session is clean. Raise EOFError if the server has closed it meanwhile."""
        await self._result(_LONGEST)
        with suppress(TimeoutError):
            async with asyncio.timeout(0):
                await self.session.reader.read(1)
            raise EOFError("the server closed the session")

    async def cancel(self) -> None:
        """Cancel the running statement. Closing the connection would let it run to its end."""
        if not self.can_be_reused:
            with suppress(OSError, EOFError, TimeoutError, ComputeRefusedError):
                async with asyncio.timeout(_CANCEL_SECONDS):
                    await self._cancel(CancelRequest(self.session.key))

    async def run(
        self, sql: str, parameters: Sequence[bytes | None] = (), *, most_bytes: int = _LONGEST
    ) -> Result:
        """Run one statement. Raise TooLargeError if the rows have more bytes."""
        self._is_running = True
        await self.session.send(messages.statement(sql, parameters))
        return await self._result(most_bytes)

    async def element_ids(self, type_ids: set[int]) -> Mapping[int, int]:
        """Return the types of the elements, by the types that are arrays."""
        if unknown := type_ids - self._known_types:
            array = f"{{{','.join(map(str, sorted(unknown)))}}}"
            found = await self.run(_ELEMENTS, [array.encode()])
            self._element_ids |= {int(row[0] or 0): int(row[1] or 0) for row in found.rows}
            self._known_types |= unknown
        return self._element_ids

    async def _result(self, most_bytes: int) -> Result:
        """Read messages until the server is ready for the next statement."""
        result, error = Result(), None
        while True:
            kind, length = await self.session.header()
            if kind == b"d":  # data of COPY TO STDOUT
                await self.session.skip(length)
                continue
            if kind == b"D":
                result.size += length
                if result.size > most_bytes:
                    raise TooLargeError
            payload = await self.session.payload(length, _LONGEST)
            if kind == b"D":
                result.rows.append(_decode_row(payload))
            elif kind == b"T":
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


def _decode_row(payload: bytes) -> list[bytes | None]:
    count = messages.decode_count(payload[:2])
    row: list[bytes | None] = []
    start = 2
    for _ in range(count):
        [length] = INT32.unpack_from(payload, start)
        start += INT32.size
        if length < 0:
            row.append(None)
        else:
            row.append(payload[start : start + length])
            start += length
    return row
