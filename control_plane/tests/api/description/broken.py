"""Bodies that match a published schema, except for one field."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, NamedTuple

from msgspec import UnsetType

from neonctl_local.api.description.published import Schema, description

# Values that no schema of another type accepts.
_OTHER_TYPES: Mapping[str, tuple[object, ...]] = {
    "array": ("text", {}, None),
    "boolean": ("true", 1, None),
    "integer": ("1", 1.5, True, None),
    "number": ("1", True, None),
    "object": ("text", [], None),
    "string": (1, {}, None),
}


class Broken(NamedTuple):
    """A body, and the name of its invalid field. Items of lists have an index."""

    field: str
    body: object


def resolved(schema: Schema) -> Schema:
    """Return the schema that a reference stands for."""
    return description().schemas[schema.ref] if schema.ref else schema


# Any: a JSON value.
def valid(schema: Schema) -> Any:
    """Return a value that matches a schema, with its required properties only."""
    schema = resolved(schema)
    match schema.type:
        case "object":
            return {name: valid(schema.properties[name]) for name in schema.required}
        case "array":
            assert not isinstance(schema.items, UnsetType)
            return [valid(schema.items)] * (schema.min_items or 0)
        case "string":
            return _text(schema)
        case "boolean":
            return True
        case _:
            return 1 if schema.minimum is None else schema.minimum


# Any: a JSON value.
def drawn(schema: Schema, choose: Random) -> Any:
    """Return a value that matches a schema, with some of the optional properties."""
    schema = resolved(schema)
    whole = valid(schema)
    if schema.type == "object":
        for name, part in schema.properties.items():
            if choose.random() < 0.5:
                whole[name] = drawn(part, choose)
    return whole


def broken(schema: Schema, choose: Random, field: str = "") -> Iterator[Broken]:
    """Yield each way to break one field of a value that matches a schema otherwise.

    The other properties are drawn.
    """
    schema = resolved(schema)
    for value in _OTHER_TYPES[schema.type]:
        if not (value is None and schema.nullable):
            yield Broken(field or "body", value)
    for value in _outside(schema):
        yield Broken(field, value)
    yield from _inside(schema, choose, field)


def _inside(schema: Schema, choose: Random, field: str) -> Iterator[Broken]:
    whole = drawn(schema, choose)
    for name, part in schema.properties.items():
        path = f"{field}.{name}".removeprefix(".")
        for inner in broken(part, choose, path):
            yield Broken(inner.field, {**whole, name: inner.body})
        if name in schema.required:
            yield Broken(path, {key: value for key, value in whole.items() if key != name})
    if not isinstance(schema.items, UnsetType):
        for inner in broken(schema.items, choose, f"{field}[0]"):
            yield Broken(inner.field, [inner.body])
    if not isinstance(schema.additional_properties, UnsetType):
        for inner in broken(schema.additional_properties, choose, f"{field}[...]"):
            yield Broken(inner.field, {"key": inner.body})


def _outside(schema: Schema) -> Iterator[object]:
    if schema.type == "string":
        yield from _other_texts(schema)
    if schema.minimum is not None:
        yield schema.minimum - 1
    if schema.maximum is not None:
        yield schema.maximum + 1
    if schema.type == "integer":
        yield 2**63
    if not isinstance(schema.items, UnsetType) and schema.max_items is not None:
        yield [valid(schema.items)] * (schema.max_items + 1)
    if schema.min_items:
        yield []
    if schema.max_properties is not None:
        yield {str(number): "x" for number in range(schema.max_properties + 1)}


def _other_texts(schema: Schema) -> Iterator[str]:
    if schema.enum or schema.format or schema.pattern:
        yield "A b"
    if schema.pattern:
        yield "a\n"
    if schema.pattern or schema.min_length:
        yield ""
    if schema.max_length is not None:
        yield "a@" + "b" * (schema.max_length - 1)


def _text(schema: Schema) -> str:
    if schema.enum:
        return schema.enum[0]
    formats = {
        "date-time": "2026-01-01T00:00:00Z",
        "email": "a@example.com",
        "uri": "https://example.com",
    }
    return formats.get(schema.format, "a-1")
