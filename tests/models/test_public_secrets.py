"""No public record that holds a secret shows it, whatever is done with it but to reveal it."""

import json
import pickle
from collections.abc import Iterator
from io import StringIO

import msgspec
import pytest
from msgspec import inspect
from rich.console import Console
from rich.pretty import pprint

import neonctl_async
from neonctl_async import types
from neonctl_async.models.secret import decode_hook

MARK = "kq7zmark1kq7z"
VALUES: dict[type[inspect.Type], object] = {
    inspect.StrType: "text",
    inspect.IntType: 7,
    inspect.FloatType: 7.5,
    inspect.BoolType: True,
    inspect.DateTimeType: "2026-01-01T12:00:00Z",
    inspect.AnyType: "anything",
    inspect.NoneType: None,
}


def answer_of(kind: inspect.Type) -> object:
    """JSON that decodes to ``kind``, with every field, and a mark for each secret."""
    match kind:
        case inspect.StructType():
            return {field.encode_name: answer_of(field.type) for field in kind.fields}
        case inspect.ListType() | inspect.VarTupleType():
            return [answer_of(kind.item_type)]
        case inspect.DictType():
            return {"a": answer_of(kind.value_type)}
        case inspect.EnumType():
            return next(iter(kind.cls)).value
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.UnionType():
            return answer_of(kind.types[0])
        case inspect.CustomType():
            return MARK if kind.cls is neonctl_async.Secret else "anything"
        case inspect.Metadata():
            return answer_of(kind.type)
        case _:
            return VALUES[type(kind)]


def public_structs() -> Iterator[type[msgspec.Struct]]:
    """The records of the API, by their public names."""
    for name in types.__all__:
        public = getattr(types, name)
        if isinstance(public, type) and issubclass(public, msgspec.Struct):
            yield public


STRUCTS = list(public_structs())


def made(kind: type[msgspec.Struct]) -> tuple[msgspec.Struct, bool]:
    """An instance with every field set, and whether there is a secret in it."""
    shown = answer_of(inspect.type_info(kind))
    return msgspec.convert(shown, kind, dec_hook=decode_hook), MARK in json.dumps(shown)


def test_the_records_that_hold_secrets_are_those_that_should() -> None:
    assert {kind.__name__ for kind in STRUCTS if made(kind)[1]} == {
        "ApiKeyCreated",
        "BillingAccount",
        "BranchCreated",
        "ConnectionDetails",
        "ConnectionParameters",
        "CurrentUser",
        "ProjectCreated",
        "Role",
        "RoleDeleted",
        "RoleUpdated",
    }


@pytest.mark.parametrize("kind", STRUCTS, ids=lambda kind: kind.__name__)
def test_no_secret_shows(kind: type[msgspec.Struct]) -> None:
    record, is_secret = made(kind)
    pretty = StringIO()
    pprint(record, console=Console(file=pretty, width=200), expand_all=True)
    shown = [repr(record), str(record), f"{record}", pretty.getvalue()]
    shown.append(repr(msgspec.structs.asdict(record)))
    assert not any(MARK in text for text in shown)
    for encode in (msgspec.json.encode, msgspec.to_builtins, pickle.dumps):
        if is_secret:
            with pytest.raises(TypeError, match="Secret") as caught:
                encode(record)
            assert MARK not in str(caught.value)
        else:
            encode(record)


def test_a_key_is_encoded_on_purpose() -> None:
    created, _ = made(types.ApiKeyCreated)
    assert isinstance(created, types.ApiKeyCreated)
    fields = msgspec.structs.asdict(created) | {"key": created.key.reveal()}
    assert json.loads(msgspec.json.encode(fields))["key"] == MARK
