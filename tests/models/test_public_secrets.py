"""Public records hide their secrets from every form of output except ``reveal()``."""

import json
import pickle
from collections.abc import Iterator
from io import StringIO

import msgspec
import pytest
from msgspec import inspect
from rich.console import Console
from rich.pretty import pprint

from neonctl_async import Secret, types
from neonctl_async.models.base import Model
from neonctl_async.models.secret import decode_hook
from tests.models.generated import MARK, sample_json


def public_structs() -> Iterator[type[msgspec.Struct]]:
    """Yield the records that can be imported from ``neonctl_async.types``."""
    for name in types.__all__:
        public = getattr(types, name)
        if isinstance(public, type) and issubclass(public, msgspec.Struct):
            yield public


STRUCTS = list(public_structs())


def build(kind: type[msgspec.Struct]) -> tuple[msgspec.Struct, bool]:
    """Return a record with every field set, and whether it contains a secret."""
    content = sample_json(inspect.type_info(kind))
    record = msgspec.convert(content, kind, dec_hook=decode_hook)
    assert msgspec.to_builtins(record, enc_hook=Secret.reveal) == content
    return record, MARK in json.dumps(content)


def test_only_known_records_contain_secrets() -> None:
    assert {kind.__name__ for kind in STRUCTS if build(kind)[1]} == {
        "ApiKeyCreated",
        "AuthEmailProvider",
        "AuthKeys",
        "AuthPlugins",
        "BillingAccount",
        "BranchCreated",
        "ConnectionDetails",
        "ConnectionParameters",
        "CredentialCreated",
        "CredentialRotated",
        "CredentialSecret",
        "CurrentUser",
        "EnsuredBranch",
        "EnsuredRole",
        "OAuthProvider",
        "PresignedRequest",
        "ProjectCreated",
        "Role",
        "RoleDeleted",
        "RoleUpdated",
    }


def test_records_hide_their_secrets() -> None:
    for kind in STRUCTS:
        record, has_secret = build(kind)
        pretty = StringIO()
        pprint(record, console=Console(file=pretty, width=200), expand_all=True)
        outputs = [repr(record), str(record), f"{record}", pretty.getvalue()]
        outputs.append(repr(msgspec.structs.asdict(record)))
        assert not any(MARK in output for output in outputs), kind
        for encode in (msgspec.json.encode, msgspec.to_builtins, pickle.dumps):
            if has_secret:
                with pytest.raises(TypeError, match=r"Secret|ConnectionUri") as caught:
                    encode(record)
                assert MARK not in str(caught.value), kind
            else:
                encode(record)


def test_records_become_dicts_with_hidden_secrets() -> None:
    for kind in STRUCTS:
        record, _ = build(kind)
        assert isinstance(record, Model)
        content = json.dumps(sample_json(inspect.type_info(kind)))
        assert record.to_dict() == json.loads(content.replace(MARK, "*" * 10)), kind


def test_revealed_key_can_be_encoded() -> None:
    created, _ = build(types.ApiKeyCreated)
    assert isinstance(created, types.ApiKeyCreated)
    fields = msgspec.structs.asdict(created) | {"key": created.key.reveal()}
    assert json.loads(msgspec.json.encode(fields))["key"] == MARK
