"""Requests and responses of SQL over HTTP, as JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from neonctl_local.postgres.client.messages import MAX_PARAMETERS, PostgresMessage, decode_row
from neonctl_local.server.serverless.explain import without_neon_options
from neonctl_local.server.serverless.statements import Result, payloads
from neonctl_local.server.serverless.values import TEXT, Encoder, encoder, memory_of, parameter

ISOLATION_LEVELS: Final = {
    "ReadUncommitted": "READ UNCOMMITTED",
    "ReadCommitted": "READ COMMITTED",
    "RepeatableRead": "REPEATABLE READ",
    "Serializable": "SERIALIZABLE",
}

STATEMENT_BYTES: Final = 1000
"""The most memory that a statement and its result need besides their strings, rows and columns."""
_PIECE: Final = 1 << 16
"""About how many bytes are encoded at once."""


class Query(msgspec.Struct, rename="camel"):
    """A statement, as it appears in a request. Its parameters may be any JSON values."""

    query: str
    params: list[msgspec.Raw] = []
    array_mode: bool | None = None


class Batch(msgspec.Struct):
    """Statements that run in one transaction."""

    queries: list[Query]


class Headers(msgspec.Struct, frozen=True):
    """The headers that select the format of results, and the transaction mode of a batch."""

    raw_text_output: bool
    array_mode: bool
    isolation_level: str | None
    read_only: bool
    deferrable: bool

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> "Headers":
        """Return the values of the headers. Raise ValueError for an unknown isolation level."""
        level = headers.get("Neon-Batch-Isolation-Level")
        if level is not None and level not in ISOLATION_LEVELS:
            raise ValueError("invalid isolation level")
        return cls(
            headers.get("Neon-Raw-Text-Output") == "true",
            headers.get("Neon-Array-Mode") == "true",
            level,
            headers.get("Neon-Batch-Read-Only") == "true",
            headers.get("Neon-Batch-Deferrable") == "true",
        )

    @property
    def begin(self) -> str:
        """The statement that starts the transaction of a batch."""
        modes = [
            f"ISOLATION LEVEL {ISOLATION_LEVELS[self.isolation_level]}"
            if self.isolation_level
            else "",
            "READ ONLY" if self.read_only else "",
            "DEFERRABLE" if self.deferrable else "",
        ]
        return f"START TRANSACTION {', '.join(filter(None, modes))}"

    @property
    def of_response(self) -> dict[str, str]:
        """The request's batch headers, which the response repeats."""
        chosen = {
            "Neon-Batch-Isolation-Level": self.isolation_level,
            "Neon-Batch-Read-Only": "true" if self.read_only else None,
            "Neon-Batch-Deferrable": "true" if self.deferrable else None,
        }
        return {name: value for name, value in chosen.items() if value is not None}


class Statement(NamedTuple):
    """A statement with its parameters in Postgres's text format."""

    sql: str
    parameters: list[bytes | None]
    array_mode: bool | None


class Request(NamedTuple):
    """The statements of a request."""

    statements: list[Statement]
    is_batch: bool


def decode_request(body: bytearray, reserve: Callable[[int], None]) -> Request:
    """Return the statements in a request body. Raise ValueError, with the reason, if it is invalid.

    ``reserve`` is called before memory is allocated. It does not count the strings themselves.
    """
    reserve(memory_of(body))
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        if "queries" in fields:
            queries = msgspec.json.decode(body, type=Batch).queries
        else:
            queries = [msgspec.json.decode(body, type=Query)]
        statements = [_statement(query, reserve) for query in queries]
        return Request(statements, "queries" in fields)
    except msgspec.DecodeError as error:
        raise ValueError(f"could not parse the HTTP request body: {error}") from None
    except RecursionError:
        raise ValueError("could not parse the HTTP request body: too deeply nested") from None


def _statement(query: Query, reserve: Callable[[int], None]) -> Statement:
    """Convert a statement's parameters. Raise ValueError if Postgres would refuse the statement."""
    if "\0" in query.query:
        raise ValueError("the statement has a NUL character: Postgres has none in texts")
    if len(query.params) > MAX_PARAMETERS:
        raise ValueError(f"{len(query.params)} parameters: Postgres has at most {MAX_PARAMETERS}")
    reserve(STATEMENT_BYTES)
    return Statement(
        without_neon_options(query.query), [*map(parameter, query.params)], query.array_mode
    )


def result_json(
    result: Result, element_ids: Mapping[int, int], *, raw: bool, array_mode: bool
) -> Iterator[bytes]:
    """Yield a result in the format that node-postgres uses, in pieces."""
    command, *numbers = result.status.split(" ")
    count = numbers[-1] if numbers and numbers[-1].isdecimal() else None
    start = {"command": command, "rowCount": None if count is None else int(count)}
    end = {
        "fields": [
            {
                "name": column.name,
                "dataTypeID": column.type_id,
                "tableID": column.table_id,
                "columnID": column.number,
                "dataTypeSize": column.type_size,
                "dataTypeModifier": column.type_modifier,
                "format": "text",
            }
            for column in result.columns
        ],
        "rowAsArray": array_mode,
    }
    yield msgspec.json.encode(start)[:-1] + b',"rows":['
    encoders = [TEXT if raw else encoder(one.type_id, element_ids) for one in result.columns]
    yield from _rows_json(result, _Shape.of(result, encoders, array_mode=array_mode))
    yield b"]," + msgspec.json.encode(end)[1:]


class _Shape(NamedTuple):
    """The format of each row.

    ``values`` contains the column number of each value, the JSON before it, and its encoder.
    """

    values: list[tuple[int, bytes, Encoder]]
    end: bytes

    @classmethod
    def of(cls, result: Result, encoders: Sequence[Encoder], *, array_mode: bool) -> "_Shape":
        """Return the format of the rows.

        In an object, only the last of several columns with the same name is used.
        """
        if array_mode:
            keys = dict.fromkeys(range(len(encoders)), b"")
        else:
            numbers = {column.name: number for number, column in enumerate(result.columns)}
            keys = {number: msgspec.json.encode(name) + b":" for name, number in numbers.items()}
        opening = b"[" if array_mode else b"{"
        values = [
            (number, (b"," if index else opening) + key, encoders[number])
            for index, (number, key) in enumerate(keys.items())
        ]
        if not values:
            return cls([], opening + (b"]" if array_mode else b"}"))
        return cls(values, b"]" if array_mode else b"}")

    def small(self, payload: bytes) -> bytes:
        """Return a small row as JSON."""
        row = decode_row(payload)
        parts: list[bytes] = []
        for number, before, encode in self.values:
            value = row[number]
            parts += (before, b"null" if value is None else encode.small(value))
        parts.append(self.end)
        return b"".join(parts)

    def large(self, payload: memoryview) -> Iterator[bytes]:
        """Yield a large row as JSON, in pieces."""
        row = decode_row(payload)
        for number, before, encode in self.values:
            value = row[number]
            yield before
            if value is None:
                yield b"null"
            else:
                yield from encode.large(memoryview(value))
        yield self.end


def _rows_json(result: Result, shape: _Shape) -> Iterator[bytes]:
    parts: list[bytes] = []
    size, separator = 0, b""
    for payload in payloads(result.rows):
        parts.append(separator)
        separator = b","
        if len(payload) > _PIECE:
            yield b"".join(parts)
            yield from shape.large(payload)
            parts, size = [], 0
            continue
        row = shape.small(bytes(payload))
        parts.append(row)
        size += len(row)
        if size >= _PIECE:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join(parts)


def error_json(message: PostgresMessage) -> Mapping[str, Any]:
    """Return an error in the format that node-postgres uses."""
    return {
        "message": message.message,
        "code": message.sqlstate,
        "detail": message.detail,
        "hint": message.hint,
        "position": None if message.position is None else str(message.position),
        "internalPosition": message.internal_position,
        "internalQuery": message.internal_query,
        "severity": message.severity,
        "where": message.context,
        "table": message.table,
        "column": message.column,
        "schema": message.schema,
        "dataType": message.data_type,
        "constraint": message.constraint,
        "file": message.file,
        "line": message.line,
        "routine": message.routine,
    }


def type_ids(results: Sequence[Result]) -> set[int]:
    """Return the types of all columns."""
    return {column.type_id for result in results for column in result.columns}
