"""The decoding rules that all records share."""

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import msgspec
import pytest
from msgspec import UNSET

from neonctl_async import InvalidResponseError, models
from neonctl_async.models.base import Empty, Model
from neonctl_async.types import (
    AnonymizedBranchStatus,
    Branch,
    Endpoint,
    LogRecord,
    Member,
    ProjectMember,
    Trigger,
)
from tests.models import records
from tests.models.generated import minimal
from tests.models.records import decode
from tests.models.services import records as service_records


def defined_models() -> Iterator[type[Model]]:
    for module in pkgutil.walk_packages(models.__path__, f"{models.__name__}."):
        for _, kind in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(kind, Model) and kind.__module__ == module.name and kind is not Model:
                yield kind


def is_request(kind: type[Model]) -> bool:
    """Return whether a record has parts that are left out unless a caller sets them."""
    return any(field.default is UNSET for field in msgspec.structs.fields(kind))


LISTED = {**records.MINIMAL, **service_records.MINIMAL}
REQUEST_ONLY = dict.fromkeys(
    (
        *(*records.REQUEST_ONLY, *service_records.REQUEST_ONLY),
        *(kind for kind in defined_models() if kind not in LISTED and is_request(kind)),
    )
)
"""The records that only requests contain. A set would have no fixed order."""
MINIMAL = {
    kind: LISTED[kind] if kind in LISTED else minimal(kind)
    for kind in defined_models()
    if kind not in REQUEST_ONLY
}
"""The smallest valid JSON of each record that a response has."""


def fields_of(*, required: bool) -> list[tuple[type[Model], str]]:
    return [
        (kind, field.encode_name)
        for kind in MINIMAL
        for field in msgspec.structs.fields(kind)
        if field.required is required
    ]


def test_every_listed_record_exists() -> None:
    assert {*LISTED, *REQUEST_ONLY} <= {*defined_models()}


def test_smallest_json_has_the_required_fields_only() -> None:
    for kind, listed in LISTED.items():
        assert isinstance(decode(kind, minimal(kind)), kind)
        assert minimal(kind).keys() <= listed.keys(), kind


def test_required_fields_are_sufficient() -> None:
    for kind, content in MINIMAL.items():
        assert isinstance(decode(kind, content), kind)


def test_unknown_fields_are_ignored() -> None:
    for kind, content in MINIMAL.items():
        more = {**content, "brand_new": {"a": [1, None]}}
        assert decode(kind, more) == decode(kind, content)


def test_null_is_the_same_as_a_missing_field() -> None:
    for kind, name in fields_of(required=False):
        record = decode(kind, {**MINIMAL[kind], name: None})
        assert not getattr(record, name), (kind, name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (AnonymizedBranchStatus, "state"),
        (Branch, "current_state"),
        (Endpoint, "current_state"),
        (Endpoint, "type"),
        (LogRecord, "source"),
        (Member, "role"),
        (ProjectMember, "grant_source"),
        (Trigger, "type"),
    ],
)
def test_unknown_value_of_an_enumeration_is_kept(kind: type[Model], name: str) -> None:
    assert getattr(decode(kind, {**MINIMAL[kind], name: "brand_new"}), name) == "brand_new"


def test_error_names_the_missing_required_field() -> None:
    fields = fields_of(required=True)
    assert [field for field in fields if f"`{field[1]}`" not in error_without(*field)] == []


def error_without(kind: type[Model], name: str) -> str:
    """Return the message for the smallest JSON of a record without a field, or "" for none."""
    content = {field: value for field, value in MINIMAL[kind].items() if field != name}
    try:
        decode(kind, content)
    except InvalidResponseError as error:
        return str(error)
    return ""


def test_every_timestamp_becomes_utc() -> None:
    given, expected = "2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05+00:00"
    for kind, content in MINIMAL.items():
        fields = msgspec.structs.fields(kind)
        names = [field.encode_name for field in fields if "datetime.datetime" in str(field.type)]
        record = decode(kind, {**content, **dict.fromkeys(names, given)})
        found = {name: getattr(record, name).isoformat() for name in names}
        assert found == dict.fromkeys(names, expected), kind


def test_records_are_frozen() -> None:
    assert [
        (kind, field.name)
        for kind, content in MINIMAL.items()
        for field in msgspec.structs.fields(kind)
        if not refuses_change(decode(kind, content), field.name)
    ] == []


def refuses_change(record: Model, name: str) -> bool:
    """Return whether an attribute of a record cannot be set."""
    try:
        setattr(record, name, None)
    except AttributeError:
        return True
    return False


def test_records_take_only_keywords() -> None:
    for kind in [*MINIMAL, *REQUEST_ONLY]:
        if kind is not Empty:
            by_position = [None for _ in msgspec.structs.fields(kind)]
            with pytest.raises(TypeError, match="positional"):
                kind(*by_position)
