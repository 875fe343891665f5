"""JSON of records, generated from the types of their fields."""

import msgspec
from msgspec import inspect

from neonctl_async import Secret
from tests.models.records import NOON, JsonObject

MARK = "kq7zmark1kq7z"
VALUES: dict[type[inspect.Type], object] = {
    inspect.StrType: "text",
    inspect.IntType: 7,
    inspect.FloatType: 7.5,
    inspect.BoolType: True,
    inspect.DateTimeType: NOON,
    inspect.AnyType: "anything",
    inspect.NoneType: None,
}


def sample_json(kind: inspect.Type) -> object:
    """Return JSON that decodes to ``kind``, with every field, and MARK for each secret."""
    match kind:
        case inspect.StructType():
            return {field.encode_name: sample_json(field.type) for field in kind.fields}
        case inspect.ListType() | inspect.VarTupleType():
            return [sample_json(kind.item_type)]
        case inspect.DictType():
            return {"a": sample_json(kind.value_type)}
        case inspect.EnumType():
            return next(iter(kind.cls)).value
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.UnionType():
            return sample_json(kind.types[0])
        case inspect.CustomType():
            return MARK if issubclass(kind.cls, Secret) else "anything"
        case inspect.Metadata():
            return sample_json(kind.type)
        case _:
            return VALUES[type(kind)]


def minimal(kind: type[msgspec.Struct]) -> JsonObject:
    """Return JSON that decodes to ``kind``, with a value for each required field."""
    return {
        field.encode_name: sample_json(inspect.type_info(field.type))
        for field in msgspec.structs.fields(kind)
        if field.required
    }
