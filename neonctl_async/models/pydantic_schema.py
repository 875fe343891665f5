"""Pydantic schemas of the records, as FastAPI needs them. Imported only when Pydantic is used."""

from collections.abc import Callable
from typing import TypeVar, cast

import msgspec
from pydantic_core import CoreSchema, core_schema

from neonctl_async.models.secret import decode_hook

RecordT = TypeVar("RecordT", bound=msgspec.Struct)
JsonObject = dict[str, object]


def schema_of(kind: type[RecordT], encode: Callable[[RecordT], JsonObject]) -> CoreSchema:
    """Return the schema that accepts a record or its JSON, and encodes it with ``encode``."""

    def record(value: object) -> RecordT:
        if isinstance(value, kind):
            return value
        try:
            return msgspec.convert(value, kind, dec_hook=decode_hook)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None

    return core_schema.no_info_plain_validator_function(
        record,
        ref=f"{kind.__module__}.{kind.__qualname__}",
        serialization=core_schema.plain_serializer_function_ser_schema(encode, when_used="json"),
    )


def json_schema_of(kind: type[msgspec.Struct]) -> JsonObject:
    """Return the JSON schema of a record, with the schemas of nested records inlined."""
    _, components = msgspec.json.schema_components([kind], schema_hook=_of_secret)
    return _resolved(components[kind.__name__], components)


def _resolved(schema: JsonObject, components: dict[str, JsonObject]) -> JsonObject:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return _resolved(components[name], components)
    if "enum" in schema:
        # Neon may add a value, which a record keeps.
        return {"title": schema["title"], "type": "string", "examples": schema["enum"]}
    return {name: _part(value, components) for name, value in schema.items()}


def _part(value: object, components: dict[str, JsonObject]) -> object:
    if isinstance(value, dict):
        return _resolved(cast("JsonObject", value), components)
    if isinstance(value, list):
        return [_part(each, components) for each in cast("list[object]", value)]
    return value


def _of_secret(_kind: type) -> JsonObject:
    """Return the schema of a secret: a string."""
    return {"type": "string"}
