"""Builds the smallest valid JSON of a record from the types of its fields."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import inspect

from tests.models.records import NOON, JsonObject

# Any: a value of JSON.
_VALUES: Mapping[type[inspect.Type], Any] = {
    inspect.IntType: 1,
    inspect.FloatType: 0.5,
    inspect.BoolType: True,
    inspect.StrType: "text",
    inspect.CustomType: "secret",
    inspect.DateTimeType: NOON,
    inspect.ListType: [],
    inspect.DictType: {},
    inspect.AnyType: {},
}


def minimal(kind: type[msgspec.Struct]) -> JsonObject:
    """Return a value for each required field of a record."""
    return {
        field.encode_name: _value(inspect.type_info(field.type))
        for field in msgspec.structs.fields(kind)
        if field.required
    }


def _value(kind: inspect.Type) -> Any:
    match kind:
        case inspect.StructType(cls=cls):
            return minimal(cls)
        case inspect.EnumType(cls=cls):
            return next(iter(cls)).value
        case inspect.UnionType(types=types):
            return _value(types[0])
        case _:
            return _VALUES[type(kind)]
