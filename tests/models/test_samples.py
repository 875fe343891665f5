"""Responses that Neon's documentation shows."""

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


def assert_equals_json(value: object, content: object) -> None:
    """Assert that ``value`` has exactly the fields and values of the JSON value ``content``."""
    match value:
        case msgspec.Struct():
            members = msgspec.convert(content, dict[str, object])
            fields = {field.name: field for field in msgspec.structs.fields(value)}
            assert fields.keys() >= members.keys(), "the Struct lacks a field of the sample"
            for name, field in fields.items():
                if name in members:
                    assert_equals_json(getattr(value, name), members[name])
                elif field.default is not msgspec.NODEFAULT:
                    assert getattr(value, name) == field.default
                else:
                    assert not getattr(value, name)
        case list():
            records = msgspec.convert(value, list[object])
            for record, member in zip(records, msgspec.convert(content, list[object]), strict=True):
                assert_equals_json(record, member)
        case Secret():
            assert value.reveal() == content
        case datetime():
            assert value == datetime.fromisoformat(str(content))
            assert value.utcoffset() == timedelta(0)
        case _:
            assert value == content
            assert isinstance(value, type(content))


@pytest.mark.parametrize("name", SAMPLES)
def test_sample_decodes_completely(name: str) -> None:
    text = (DATA / name).read_bytes()
    record = msgspec.json.decode(text, type=SAMPLES[name], dec_hook=decode_hook)
    assert_equals_json(record, json.loads(text))


def test_every_sample_file_is_tested() -> None:
    assert {file.name for file in DATA.iterdir()} == SAMPLES.keys()
