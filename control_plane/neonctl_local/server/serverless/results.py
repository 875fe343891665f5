"""Requests and responses of SQL over HTTP, as JSON. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from neonctl_local.postgres.client.messages import MAX_PARAMETERS, PostgresMessage
from neonctl_local.server.serverless.statements import Result
from neonctl_local.server.serverless.values import Json, decoder, parameter

ISOLATION_LEVELS: Final = {
    "ReadUncommitted": "READ UNCOMMITTED",
    "ReadCommitted": "READ COMMITTED",
    "RepeatableRead": "REPEATABLE READ",
    "Serializable": "SERIALIZABLE",
}


class Query(msgspec.Struct, rename="camel"):
    """A statement with its parameters: any JSON in a request, and texts when it is decoded."""

    query: str
    params: list[Any] = []
    array_mode: bool | None = None


class Batch(msgspec.Struct):
    """Statements that run in one transaction."""

    queries: list[Query]


class Headers(msgspec.Struct, frozen=True):
    """The headers that choose the form of results, and the transaction of a batch."""

    raw_text_output: bool
    array_mode: bool
    isolation_level: str | None
    read_only: bool
    deferrable: bool

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> "Headers":
        """Return the values. Raise ValueError for an unknown isolation level."""
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
        """The headers that the response to a batch repeats."""
        chosen = {
            "Neon-Batch-Isolation-Level": self.isolation_level,
            "Neon-Batch-Read-Only": "true" if self.read_only else None,
            "Neon-Batch-Deferrable": "true" if self.deferrable else None,
        }
        return {name: value for name, value in chosen.items() if value is not None}


def decode_request(body: bytes) -> Query | Batch:
    """Return the statements of a body. Raise ValueError with the reason why it has none."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        kind: type[Query | Batch] = Batch if "queries" in fields else Query
        request = msgspec.json.decode(body, type=kind)
        for query in request.queries if isinstance(request, Batch) else [request]:
            _prepare(query)
    except msgspec.DecodeError as error:
        raise ValueError(f"could not parse the HTTP request body: {error}") from None
    except RecursionError:
        raise ValueError("could not parse the HTTP request body: too deeply nested") from None
    return request


def _prepare(query: Query) -> None:
    """Convert the parameters of a statement to texts. Raise ValueError if it cannot be sent."""
    if "\0" in query.query:
        raise ValueError("the statement has a NUL character: Postgres has none in texts")
    if len(query.params) > MAX_PARAMETERS:
        raise ValueError(f"{len(query.params)} parameters: Postgres has at most {MAX_PARAMETERS}")
    query.params = [*map(parameter, query.params)]


def result_json(
    result: Result, element_ids: Mapping[int, int], *, raw: bool, array_mode: bool
) -> Json:
    """Return a result in the form of node-postgres."""
    names = [column.name for column in result.columns]
    decoders = [None if raw else decoder(one.type_id, element_ids) for one in result.columns]
    rows: list[Json] = []
    for row in result.rows:
        texts = [None if value is None else value.decode(errors="replace") for value in row]
        values = [
            decode(text) if decode is not None and text is not None else text
            for text, decode in zip(texts, decoders, strict=True)
        ]
        rows.append(values if array_mode else dict(zip(names, values, strict=True)))
    command, *numbers = result.status.split(" ")
    count = numbers[-1] if numbers and numbers[-1].isdecimal() else None
    return {
        "command": command,
        "rowCount": None if count is None else int(count),
        "rows": rows,
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


def error_json(message: PostgresMessage) -> Json:
    """Return an error in the form of node-postgres."""
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
