import copy
import json
import pickle
from datetime import UTC, datetime, timedelta, timezone
from types import NoneType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from neonctl_async import EndpointSpec, InvalidResponseError, Operation, OperationStatus
from neonctl_async.models.base import Model, OpenEnum, Timestamp
from neonctl_async.models.operations import OperationsPage
from neonctl_async.types import ApiKey, EndpointState, EndpointType, OperationAction, Pagination
from tests.models.records import OPERATION, decode

ENUMS = [EndpointState, EndpointType, OperationAction, OperationStatus]
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timedelta(minutes=minutes))
TEXT = st.text(st.characters(codec="utf-8"))


@pytest.mark.parametrize("kind", ENUMS)
def test_known_value_decodes_to_its_member(kind: type[OpenEnum]) -> None:
    for member in kind:
        assert decode(kind, member.value) is member
        assert member.is_known


@given(text=TEXT)
def test_unknown_value_is_kept_unchanged(text: str) -> None:
    status = decode(OperationStatus, text)
    assert isinstance(status, OperationStatus)
    assert status == text
    assert str(status) == f"{status}" == status.value == text
    assert hash(status) == hash(text)
    assert json.loads(msgspec.json.encode(status)) == text


@given(text=TEXT)
def test_is_known_only_for_defined_values(text: str) -> None:
    assert OperationStatus(text).is_known is (text in {status.value for status in OperationStatus})


@pytest.mark.parametrize("kind", ENUMS)
def test_name_of_a_member_is_not_a_known_value(kind: type[OpenEnum]) -> None:
    for name in kind.__members__:
        assert not kind(name).is_known


@given(text=TEXT)
def test_unknown_value_can_be_copied_and_pickled(text: str) -> None:
    status = OperationStatus(text)
    for other in (copy.copy(status), copy.deepcopy(status), pickle.loads(pickle.dumps(status))):
        assert other == status
        assert type(other) is OperationStatus


def test_unknown_value_does_not_become_a_member() -> None:
    OperationStatus("paused")
    assert "paused" not in {status.value for status in OperationStatus}


def test_unknown_value_works_as_a_key_and_in_repr() -> None:
    counts = {OperationStatus("paused"): 1}
    assert counts[OperationStatus("paused")] == 1
    assert "paused" in repr(OperationStatus("paused"))


@pytest.mark.parametrize("value", [None, 1, True, ["running"]])
def test_value_that_is_not_a_string_is_rejected(value: Any) -> None:
    with pytest.raises(ValueError, match="not a valid OperationStatus"):
        OperationStatus(value)
    with pytest.raises(InvalidResponseError):
        decode(OperationStatus, value)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2022-12-09T08:47:52Z", datetime(2022, 12, 9, 8, 47, 52, tzinfo=UTC)),
        ("2022-12-09T08:47:52.20417Z", datetime(2022, 12, 9, 8, 47, 52, 204170, tzinfo=UTC)),
        ("2022-12-09T08:47:52.204171999Z", datetime(2022, 12, 9, 8, 47, 52, 204172, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("2026-01-02T03:04:05+02:00", datetime(2026, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("2026-01-02T03:04:05.25-09:30", datetime(2026, 1, 2, 12, 34, 5, 250000, tzinfo=UTC)),
        ("2026-01-02T03:04:05+00:00", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("0001-01-01T00:00:00+02:00", datetime.min.replace(tzinfo=UTC)),
        ("9999-12-31T23:59:59-02:00", datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_timestamp_decodes_to_utc(text: str, moment: datetime) -> None:
    decoded = decode(ApiKey, {"id": 1, "name": "ci", "created_at": text}).created_at
    assert decoded is not None
    assert decoded == moment
    assert decoded.tzinfo is UTC


@pytest.mark.parametrize("text", ["2022-12-09T08:47:52", "2022-12-09", "yesterday", ""])
def test_timestamp_without_time_zone_is_rejected(text: str) -> None:
    with pytest.raises(InvalidResponseError):
        decode(ApiKey, {"id": 1, "name": "ci", "created_at": text})


@given(
    moment=st.builds(datetime.fromtimestamp, st.integers(0, 10**10), st.builds(timezone, OFFSETS))
)
def test_timestamp_with_any_offset_is_the_same_moment_in_utc(moment: datetime) -> None:
    decoded = decode(ApiKey, {"id": 1, "name": "ci", "created_at": moment.isoformat()}).created_at
    assert decoded is not None
    assert (decoded, decoded.tzinfo) == (moment, UTC)


def test_timestamps_of_nested_and_inherited_records_become_utc() -> None:
    class Dated(Operation, frozen=True, kw_only=True):
        seen_at: Timestamp | UnsetType = UNSET

    class Holder(Model, kw_only=True):
        items: dict[str, list[Dated]]

    text = "2026-01-02T03:04:05+02:00"
    record = {**OPERATION, "created_at": text, "retry_at": text, "seen_at": text}
    [dated] = decode(Holder, {"items": {"a": [record]}}).items["a"]
    for moment in (dated.created_at, dated.retry_at, dated.seen_at):
        assert isinstance(moment, datetime)
        assert moment.isoformat() == "2026-01-02T01:04:05+00:00"
    assert decode(Holder, {"items": {"a": [OPERATION]}}).items["a"][0].seen_at is UNSET


def test_naive_datetime_of_a_record_that_a_caller_creates_stays_naive() -> None:
    moment = datetime(2026, 1, 2)  # noqa: DTZ001 - the naive datetime is the test
    assert ApiKey(id=1, name="ci", created_at=moment).created_at is moment


def test_dict_of_a_record_contains_plain_values_only() -> None:
    created_at = datetime(2026, 11, 22, 18, 30, tzinfo=UTC)
    operation = Operation(
        id="op-1",
        project_id="p-1",
        action=OperationAction.CREATE_BRANCH,
        status=OperationStatus("paused"),
        created_at=created_at,
        updated_at=created_at + timedelta(microseconds=1500),
    )
    fields = OperationsPage(operations=[operation]).to_dict()["operations"][0]
    assert {type(value) for value in fields.values()} <= {str, int, NoneType}
    assert (fields["action"], fields["status"]) == ("create_branch", "paused")
    assert fields["created_at"] == "2026-11-22T18:30:00Z"
    assert fields["updated_at"] == "2026-11-22T18:30:00.001500Z"
    assert fields["error"] is None


def test_dict_of_a_record_contains_no_unset_field() -> None:
    spec = EndpointSpec(type="read_write", autoscaling_limit_max_cu=2)
    assert spec.to_dict() == {"type": "read_write", "autoscaling_limit_max_cu": 2}


def test_pagination_accepts_cursor_and_next() -> None:
    assert decode(Pagination, {"cursor": "a=/+ b"}) == Pagination(cursor="a=/+ b")
    content = {"next": "n", "sort_by": "updated_at", "sort_order": "desc"}
    assert decode(Pagination, content) == Pagination(
        next="n", sort_by="updated_at", sort_order="desc"
    )


@pytest.mark.parametrize("end", [{}, {"pagination": None}])
def test_pagination_is_optional(end: dict[str, None]) -> None:
    assert decode(OperationsPage, {"operations": [], **end}).pagination is None
