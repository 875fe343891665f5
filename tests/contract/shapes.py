"""Compares the types of the library with published schemas."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from neonctl_async.models.base import OpenEnum
from neonctl_async.models.secret import Secret
from neonctl_async.transport.download import Download
from tests.contract.description import Description, Schema

_SIMPLE: dict[str, tuple[type[inspect.Type], ...]] = {
    "integer": (inspect.IntType,),
    "number": (inspect.FloatType,),
    "boolean": (inspect.BoolType,),
}


class Comparison:
    """Compares types with schemas. A difference has the form ``Branch.name: not published``."""

    def __init__(self, description: Description) -> None:
        self._description = description
        self._published: dict[type, set[str]] = defaultdict(set)

    def differences(self, schema: Schema, kind: Any, place: str) -> Iterator[str]:
        """Yield each difference between a schema and the type that its values are decoded to."""
        yield from self._compare(schema, inspect.type_info(kind), place)

    def unpublished(self) -> Iterator[str]:
        """Yield the fields of all compared Structs that are in no schema."""
        for struct, published in self._published.items():
            for field in msgspec.structs.fields(struct):
                if field.encode_name not in published:
                    yield f"{struct.__name__}.{field.encode_name}: not published"

    def _compare(self, schema: Schema, kind: inspect.Type, place: str) -> Iterator[str]:
        schema = self._description.resolve(schema)
        alternatives = list(_alternatives(kind))
        if schema.nullable and not _accepts_none(kind):
            yield f"{place}: does not accept null, which is published"
        matching = [alternative for alternative in alternatives if _matches(schema, alternative)]
        if not matching:
            yield f"{place}: {_names(alternatives)} instead of the published {_text(schema)}"
            return
        if len(alternatives) > 1:
            types = _names(alternatives)
            yield f"{place}: {types}, although only {_text(schema)} is published"
        yield from self._compare_nested(schema, matching[0], place)

    def _compare_nested(self, schema: Schema, kind: inspect.Type, place: str) -> Iterator[str]:
        match kind:
            case inspect.StructType():
                yield from self._compare_fields(schema, kind)
            case inspect.ListType(item_type=item) if schema.items:
                yield from self._compare(schema.items, item, f"{place}[]")
            case inspect.DictType(value_type=value) if isinstance(schema.values, Schema):
                yield from self._compare(schema.values, value, f"{place}{{}}")
            case inspect.EnumType(cls=cls):
                members, published = {str(member.value) for member in cls}, set(schema.enum)
                yield from (
                    f"{cls.__name__}: {member} is missing, add the member"
                    for member in published - members
                )
                yield from (
                    f"{cls.__name__}: {member} not published" for member in members - published
                )
            case _:
                pass

    def _compare_fields(self, schema: Schema, struct: inspect.StructType) -> Iterator[str]:
        name = struct.cls.__name__
        self._published[struct.cls] |= schema.properties.keys()
        fields = {field.encode_name: field for field in struct.fields}
        for published, inner in schema.properties.items():
            field = fields.get(published)
            if field is None:
                yield f"{name}.{published}: missing, add the field ({_text(inner)})"
                continue
            if field.required and published not in schema.required:
                yield f"{name}.{published}: required, but published as optional"
            yield from self._compare(inner, field.type, f"{name}.{published}")
        for field in struct.fields:
            if field.required and field.encode_name not in schema.properties:
                yield f"{name}.{field.encode_name}: required, but a response does not have it"


def _alternatives(kind: inspect.Type) -> Iterator[inspect.Type]:
    """Yield the members of a union except None, or the type itself."""
    for member in kind.types if isinstance(kind, inspect.UnionType) else (kind,):
        if not isinstance(member, inspect.NoneType):
            yield member


def _accepts_none(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.UnionType) and kind.includes_none


def _matches(schema: Schema, kind: inspect.Type) -> bool:
    """Return whether a type can decode a schema, apart from nested types."""
    match schema.type:
        case "string" if schema.enum:
            return isinstance(kind, inspect.EnumType) and issubclass(kind.cls, OpenEnum)
        case "string" if schema.format == "date-time":
            return isinstance(kind, inspect.DateTimeType) and kind.tz is True
        case "string" if schema.format == "binary":
            return isinstance(kind, inspect.CustomType) and kind.cls is Download
        case "string":
            is_secret = isinstance(kind, inspect.CustomType) and issubclass(kind.cls, Secret)
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


def _text(schema: Schema) -> str:
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
