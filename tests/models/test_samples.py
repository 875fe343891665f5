"""Answers as the platform's documentation shows them."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from neonctl_async.models.api_keys import ApiKeyCreated, ApiKeyRevoked
from neonctl_async.models.base import Model
from neonctl_async.models.operations import OperationResponse, OperationsPage, OperationsResponse
from neonctl_async.models.projects import ProjectsPage
from neonctl_async.models.secret import Secret, decode_hook

DATA = Path(__file__).parent.parent / "data"
SAMPLES: dict[str, type[Model]] = {
    "api-key-organization-created.json": ApiKeyCreated,
    "api-key-personal-created.json": ApiKeyCreated,
    "api-key-project-created.json": ApiKeyCreated,
    "api-key-revoked.json": ApiKeyRevoked,
    "create-branch-operations.json": OperationsResponse,
    "operation.json": OperationResponse,
    "operations-limit-1-page-1.json": OperationsPage,
    "operations-limit-1-page-2.json": OperationsPage,
    "operations-page.json": OperationsPage,
    "projects.json": ProjectsPage,
}


def assert_shows(value: object, shown: object) -> None:
    """Fail unless ``value`` holds exactly what the JSON value ``shown`` says, and no more."""
    match value:
        case msgspec.Struct():
            members = msgspec.convert(shown, dict[str, object])
            fields = {field.name: field for field in msgspec.structs.fields(value)}
            assert fields.keys() >= members.keys(), "the Struct lacks a field of the sample"
            for name, field in fields.items():
                if name in members:
                    assert_shows(getattr(value, name), members[name])
                elif field.default is not msgspec.NODEFAULT:
                    assert getattr(value, name) == field.default
                else:
                    assert not getattr(value, name)
        case list():
            records = msgspec.convert(value, list[object])
            for one, other in zip(records, msgspec.convert(shown, list[object]), strict=True):
                assert_shows(one, other)
        case Secret():
            assert value.reveal() == shown
        case datetime():
            assert value == datetime.fromisoformat(str(shown))
            assert value.utcoffset() == timedelta(0)
        case _:
            assert value == shown
            assert isinstance(value, type(shown))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_decodes_into_exactly_what_it_shows(name: str) -> None:
    text = (DATA / name).read_bytes()
    record = msgspec.json.decode(text, type=SAMPLES[name], dec_hook=decode_hook)
    assert_shows(record, json.loads(text))


def test_every_sample_is_read() -> None:
    assert {file.name for file in DATA.iterdir()} == SAMPLES.keys()
