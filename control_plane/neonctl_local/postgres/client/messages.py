"""Messages of a Postgres session, converted from and to values. Pure: no I/O."""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, TypeVar

import msgspec

from neonctl_local.postgres.proxy.messages import INT32, Message

MAX_PARAMETERS: Final = 65_535
"""The largest number of parameters in a statement."""

Buffer = TypeVar("Buffer", bytes, memoryview)

_INT16: Final = Struct("!h")
_UINT16: Final = Struct("!H")
_COLUMN: Final = Struct("!IhIhih")
_FIELDS: Final = {
    "M": "message",
    "C": "sqlstate",
    "D": "detail",
    "H": "hint",
    "W": "context",
    "p": "internal_position",
    "q": "internal_query",
    "s": "schema",
    "t": "table",
    "c": "column",
    "d": "data_type",
    "n": "constraint",
    "F": "file",
    "L": "line",
    "R": "routine",
}
"""The text fields of a PostgresMessage, by their letters in the protocol."""
_NUMBERS: Final = frozenset({20, 21, 23, 26, 700, 701, 790, 1700})
"""The OIDs of the types int8, int2, int4, oid, float4, float8, money and numeric."""


class Column(msgspec.Struct, frozen=True):
    """A column of a result, as Postgres describes it."""

    name: str
    table_id: int = 0
    number: int = 0
    type_id: int = 0
    type_size: int = 0
    type_modifier: int = -1

    @property
    def is_number(self) -> bool:
        """True if the values are numbers."""
        return self.type_id in _NUMBERS


class PostgresMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A Postgres error or notice."""

    severity: str
    message: str = ""
    sqlstate: str = ""
    detail: str | None = None
    hint: str | None = None
    context: str | None = None
    position: int | None = None
    """The position of the error in the statement: the number of a character, counted from 1."""
    internal_position: str | None = None
    internal_query: str | None = None
    schema: str | None = None
    table: str | None = None
    column: str | None = None
    data_type: str | None = None
    constraint: str | None = None
    file: str | None = None
    line: str | None = None
    routine: str | None = None


def query(sql: str) -> bytes:
    """Return the message that runs statements in the simple protocol."""
    return Message(b"Q", _text(sql)).encode()


def password(text: str) -> bytes:
    """Return the message with a password in clear text."""
    return Message(b"p", _text(text)).encode()


def statement(sql: str, parameters: Sequence[bytes | None] = (), *, most_rows: int = 0) -> bytes:
    """Return the messages that run one statement and request all values as text.

    ``parameters`` are in Postgres's text format, and Postgres infers their types. ``most_rows`` is
    the number of rows after which Postgres stops; 0 means that it returns all rows.
    """
    execute = Message(b"E", b"\0" + INT32.pack(most_rows)).encode()
    return b"".join((parse(b"", sql), *_bind(b"", parameters), _DESCRIBE, execute, SYNC))


def parse(name: bytes, sql: str) -> bytes:
    """Return the message that prepares a statement."""
    return Message(b"P", name + b"\0" + _text(sql) + _INT16.pack(0)).encode()


def run(name: bytes, parameters: Sequence[bytes | None]) -> bytes:
    """Return the messages that run a prepared statement."""
    return b"".join((*_bind(name, parameters), _EXECUTE))


def _bind(name: bytes, parameters: Sequence[bytes | None]) -> Iterator[bytes]:
    """Yield the parts of a Bind message. Joining the parts copies large parameters only once."""
    # Without format codes, parameters and results are text.
    start = b"\0" + name + b"\0" + _INT16.pack(0) + _UINT16.pack(len(parameters))
    length = sum(INT32.size + len(value or b"") for value in parameters)
    yield b"B" + INT32.pack(INT32.size + len(start) + length + _INT16.size) + start
    for value in parameters:
        yield INT32.pack(-1 if value is None else len(value))
        if value is not None:
            yield value
    yield _INT16.pack(0)


_DESCRIBE: Final = Message(b"D", b"P\0").encode()
_EXECUTE: Final = Message(b"E", b"\0" + INT32.pack(0)).encode()


SYNC: Final = Message(b"S", b"").encode()
"""The message that makes the server ready for the next group of messages, even after an error."""

TERMINATE: Final = Message(b"X", b"").encode()
"""The message that ends the session."""


def copy_fail(reason: str) -> bytes:
    """Return the message that refuses to send the data of a COPY."""
    return Message(b"f", _text(reason)).encode()


def decode_columns(payload: bytes) -> list[Column]:
    """Return the columns of a RowDescription."""
    [count] = _INT16.unpack_from(payload)
    columns: list[Column] = []
    start = _INT16.size
    for _ in range(count):
        end = payload.index(b"\0", start)
        name = payload[start:end].decode(errors="replace")
        *described, _format = _COLUMN.unpack_from(payload, end + 1)
        columns.append(Column(name, *described))
        start = end + 1 + _COLUMN.size
    return columns


def decode_count(data: bytes | memoryview) -> int:
    """Return the number of values in a row."""
    [count] = _INT16.unpack(data)
    return int(count)


def decode_row(payload: Buffer) -> list[Buffer | None]:
    """Return the values of a row. They are memoryviews if the payload is a memoryview."""
    row: list[Buffer | None] = []
    start = _INT16.size
    for _ in range(decode_count(payload[:start])):
        [length] = INT32.unpack_from(payload, start)
        start += INT32.size
        row.append(None if length < 0 else payload[start : start + length])
        start += max(0, length)
    return row


def decode_message(payload: bytes) -> PostgresMessage:
    """Decode an ErrorResponse or a NoticeResponse."""
    fields = {
        field[:1].decode(errors="replace"): field[1:].decode(errors="replace")
        for field in payload.split(b"\0")
        if field
    }
    known = {name: fields[letter] for letter, name in _FIELDS.items() if letter in fields}
    position = fields.get("P", "")
    return PostgresMessage(
        severity=fields.get("V") or fields.get("S", "ERROR"),
        position=int(position) if position.isdecimal() else None,
        **known,
    )


def decode_status(payload: bytes) -> str:
    """Return the status of a finished command, such as ``INSERT 0 3``."""
    return payload.rstrip(b"\0").decode(errors="replace")


def _text(text: str) -> bytes:
    return text.encode() + b"\0"
