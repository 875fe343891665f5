"""Whether a type reads all that a schema publishes."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from neonctl_async.models.base import OpenEnum
from neonctl_async.models.secret import Secret
from tests.contract.description import Description, Schema

_SIMPLE: dict[str, tuple[type[inspect.Type], ...]] = {
    "integer": (inspect.IntType,),
    "number": (inspect.FloatType,),
    "boolean": (inspect.BoolType,),
}


class Comparison:
    """Compares types with schemas. A difference reads ``Branch.name: what is wrong``."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._published: dict[type, set[str]] = defaultdict(set)

    def differences(self, schema: Schema, kind: Any, place: str) -> Iterator[str]:
        """What a value of ``schema`` holds that is not read as it should be."""
        yield from self._compare(schema, inspect.type_info(kind), place)

    def unpublished(self) -> Iterator[str]:
        """The fields that no schema has of those that were compared with their Struct."""
        for struct, published in self._published.items():
            for field in msgspec.structs.fields(struct):
                if field.encode_name not in published:
                    yield f"{struct.__name__}.{field.encode_name}: not published"

    def _compare(self, schema: Schema, kind: inspect.Type, place: str) -> Iterator[str]:
        schema = self._description.whole(schema)
        kinds = list(_alternatives(kind))
        if schema.nullable and not _takes_none(kind):
            yield f"{place}: takes no null, which is published"
        fitting = [one for one in kinds if _fits(schema, one)]
        if not fitting:
            yield f"{place}: {_names(kinds)} where {_shown(schema)} is published"
            return
        if len(kinds) > 1:
            yield f"{place}: {_names(kinds)} where only {_shown(schema)} is published"
        yield from self._inside(schema, fitting[0], place)

    def _inside(self, schema: Schema, kind: inspect.Type, place: str) -> Iterator[str]:
        match kind:
            case inspect.StructType():
                yield from self._fields(schema, kind)
            case inspect.ListType(item_type=item) if schema.items:
                yield from self._compare(schema.items, item, f"{place}[]")
            case inspect.DictType(value_type=value) if isinstance(schema.values, Schema):
                yield from self._compare(schema.values, value, f"{place}{{}}")
            case inspect.EnumType(cls=cls):
                members, published = {str(one.value) for one in cls}, set(schema.enum)
                yield from (f"{cls.__name__}: lacks {one}" for one in published - members)
                yield from (f"{cls.__name__}: {one} not published" for one in members - published)
            case _:
                pass

    def _fields(self, schema: Schema, struct: inspect.StructType) -> Iterator[str]:
        name = struct.cls.__name__
        self._published[struct.cls] |= schema.properties.keys()
        fields = {field.encode_name: field for field in struct.fields}
        for published, inner in schema.properties.items():
            field = fields.get(published)
            if field is None:
                yield f"{name}.{published}: missing, {_shown(inner)}"
                continue
            if field.required and published not in schema.required:
                yield f"{name}.{published}: required, while it is published as optional"
            yield from self._compare(inner, field.type, f"{name}.{published}")
        for field in struct.fields:
            if field.required and field.encode_name not in schema.properties:
                yield f"{name}.{field.encode_name}: required, while an answer lacks it"


def _alternatives(kind: inspect.Type) -> Iterator[inspect.Type]:
    """What a type may be, apart from None."""
    for one in kind.types if isinstance(kind, inspect.UnionType) else (kind,):
        if not isinstance(one, inspect.NoneType):
            yield one


def _takes_none(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.UnionType) and kind.includes_none


def _fits(schema: Schema, kind: inspect.Type) -> bool:
    """Whether a type is of the sort that reads a schema; what is inside is another matter."""
    match schema.type:
        case "string" if schema.enum:
            return isinstance(kind, inspect.EnumType) and issubclass(kind.cls, OpenEnum)
        case "string" if schema.format == "date-time":
            return isinstance(kind, inspect.DateTimeType) and kind.tz is True
        case "string":
            is_secret = isinstance(kind, inspect.CustomType) and kind.cls is Secret
            return is_secret or isinstance(kind, inspect.StrType)
        case "array":
            return isinstance(kind, inspect.ListType)
        case "object" if schema.properties:
            return isinstance(kind, inspect.StructType)
        case "object" if isinstance(schema.values, Schema):
            return isinstance(kind, inspect.DictType)
        case "object":
            return isinstance(kind, inspect.DictType | inspect.StructType)
        case simple:
            return isinstance(kind, _SIMPLE[simple])


def _shown(schema: Schema) -> str:
    if schema.ref:
        return schema.ref.rpartition("/")[2]
    if schema.enum:
        return f"enumeration {' '.join(map(str, schema.enum))}"
    return f"{schema.type} {schema.format}".strip()


def _names(kinds: list[inspect.Type]) -> str:
    return " or ".join(_name(kind) for kind in kinds)


def _name(kind: inspect.Type) -> str:
    cls = getattr(kind, "cls", None)
    return cls.__name__ if cls else type(kind).__name__.removesuffix("Type").lower()
