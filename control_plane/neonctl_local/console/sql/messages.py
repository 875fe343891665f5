"""Messages of a Postgres session in the extended protocol. Pure: texts in, bytes out, and back."""

from struct import Struct
from typing import Final

import msgspec

from neonctl_local.postgres.proxy.messages import INT32, Message

MESSAGE_LENGTH: Final = 2000
"""The number of characters that are kept of the text of an error or a notice."""

_INT16: Final = Struct("!h")
_COLUMN: Final = Struct("!ihihih")
_NUMBERS: Final = frozenset({20, 21, 23, 26, 700, 701, 790, 1700})
"""The ids of the types int8, int2, int4, oid, float4, float8, money and numeric."""


class Column(msgspec.Struct, frozen=True):
    """A column of a result."""

    name: str
    is_number: bool = False


class PostgresMessage(msgspec.Struct, frozen=True, kw_only=True):
    """An error or a notice of Postgres."""

    severity: str
    message: str
    sqlstate: str = ""
    detail: str = ""
    hint: str = ""
    context: str = ""
    position: int | None = None
    """The number of the character in the statement, from 1."""


def query(sql: str) -> bytes:
    """Return the message that runs statements in the simple protocol."""
    return Message(b"Q", _text(sql)).encode()


def statement(sql: str, most_rows: int) -> bytes:
    """Return the messages that run one statement, and return all values as text.

    ``most_rows`` is the number of rows after which Postgres stops; 0 means all.
    """
    parse = Message(b"P", b"\0" + _text(sql) + _INT16.pack(0))
    # Neither parameters nor formats of parameters, and the default format of results: text.
    bind = Message(b"B", b"\0\0" + _INT16.pack(0) * 3)
    describe = Message(b"D", b"P\0")
    execute = Message(b"E", b"\0" + INT32.pack(most_rows))
    return b"".join(part.encode() for part in (parse, bind, describe, execute)) + SYNC


SYNC: Final = Message(b"S", b"").encode()
"""Ends a group of messages. The server is ready for the next group after an error too."""

TERMINATE: Final = Message(b"X", b"").encode()
"""Ends the session."""


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
        [_table, _number, type_id, *_] = _COLUMN.unpack_from(payload, end + 1)
        columns.append(Column(name, type_id in _NUMBERS))
        start = end + 1 + _COLUMN.size
    return columns


def decode_count(data: bytes) -> int:
    """Return the number of values in a row."""
    [count] = _INT16.unpack(data)
    return int(count)


def decode_message(payload: bytes) -> PostgresMessage:
    """Return an error or a notice."""
    fields = {
        field[:1].decode(errors="replace"): field[1:].decode(errors="replace")
        for field in payload.split(b"\0")
        if field
    }
    position = fields.get("P", "")
    return PostgresMessage(
        severity=fields.get("V") or fields.get("S", "ERROR"),
        message=fields.get("M", "")[:MESSAGE_LENGTH],
        sqlstate=fields.get("C", ""),
        detail=fields.get("D", "")[:MESSAGE_LENGTH],
        hint=fields.get("H", "")[:MESSAGE_LENGTH],
        context=fields.get("W", "")[:MESSAGE_LENGTH],
        position=int(position) if position.isdecimal() else None,
    )


def decode_status(payload: bytes) -> str:
    """Return the status of a finished command, such as ``INSERT 0 3``."""
    return payload.rstrip(b"\0").decode(errors="replace")


def _text(text: str) -> bytes:
    return text.encode() + b"\0"
