import copy
import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import InvalidResponseError, Operation, OperationRef, OperationStatus
from neonctl_async.types import OperationAction
from tests.models.records import AT_NOON, NOON, OPERATION, decode

TEXT = st.text(st.characters(codec="utf-8"))


def test_duration_and_failures_are_optional() -> None:
    operation = decode(Operation, OPERATION)
    assert operation.failures_count == 0
    assert operation.total_duration_ms is None
    assert operation.endpoint_id is None


def test_operation_decodes_current_fields() -> None:
    more = {
        "branch_id": "br-1",
        "endpoint_id": "ep-1",
        "error": "out of capacity",
        "failures_count": 2,
        "retry_at": NOON,
        "total_duration_ms": 1234,
    }
    operation = decode(Operation, {**OPERATION, **more})
    assert operation.action is OperationAction.CREATE_BRANCH
    assert operation.status is OperationStatus.RUNNING
    assert operation.created_at == operation.updated_at == operation.retry_at == AT_NOON
    assert (operation.branch_id, operation.endpoint_id) == ("br-1", "ep-1")
    assert (operation.error, operation.failures_count) == ("out of capacity", 2)
    assert operation.total_duration_ms == 1234


def test_unknown_action_and_status_are_kept() -> None:
    operation = decode(Operation, {**OPERATION, "action": "move_moon", "status": "paused"})
    assert (operation.action, operation.status) == ("move_moon", "paused")
    assert not operation.action.is_known
    assert decode(Operation, msgspec.to_builtins(operation)) == operation
    assert pickle.loads(pickle.dumps(operation)) == copy.deepcopy(operation) == operation


def test_ref_identifies_the_operation() -> None:
    assert decode(Operation, OPERATION).ref == OperationRef(project_id="p-1", id="op-1")


@given(project_id=TEXT, id=TEXT)
def test_ref_survives_a_json_round_trip(project_id: str, id: str) -> None:
    ref = OperationRef(project_id=project_id, id=id)
    again = msgspec.json.decode(msgspec.json.encode(ref), type=OperationRef)
    assert again == ref
    assert hash(again) == hash(ref)


def test_ref_contains_only_two_ids() -> None:
    ref = decode(Operation, OPERATION).ref
    assert msgspec.to_builtins(ref) == {"project_id": "p-1", "id": "op-1"}


@pytest.mark.parametrize("other", [("p-2", "op-1"), ("p-1", "op-2"), ("op-1", "p-1")])
def test_refs_differ_if_one_id_differs(other: tuple[str, str]) -> None:
    ref = decode(Operation, OPERATION).ref
    assert ref != OperationRef(project_id=other[0], id=other[1])


@pytest.mark.parametrize("name", ["created_at", "updated_at", "retry_at"])
def test_timestamp_without_time_zone_is_rejected(name: str) -> None:
    with pytest.raises(InvalidResponseError, match=name):
        decode(Operation, {**OPERATION, name: "2026-01-01T12:00:00"})
