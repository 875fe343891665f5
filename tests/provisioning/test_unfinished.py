"""The operations that are missing before an existing object is ready."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from neonctl_async import Operation, OperationStatus
from neonctl_async.provisioning.unfinished import (
    Unfinished,
    are_found,
    may_be_unapplied,
    operations_to_apply,
    operations_to_finish,
    search_start,
    unfinished_objects,
)
from neonctl_async.types import Branch, Endpoint, OperationAction
from tests.models.records import BRANCH, ENDPOINT, decode
from tests.support.records import EPOCH, operation

NOW = EPOCH + timedelta(hours=1)
BRANCH_OBJECT = Unfinished(branch_id="br-1", endpoint_id=None, created_at=EPOCH)
COMPUTE_OBJECT = Unfinished(branch_id="br-1", endpoint_id="ep-1", created_at=EPOCH)
STARTED = {"started_at": EPOCH.isoformat()}

states = st.sampled_from(["finished", "failed", "running"])


def one(
    id: str,
    status: str,
    endpoint_id: str | None = None,
    *,
    action: str = "apply_config",
    branch_id: str = "br-1",
    seconds: float = 0,
) -> Operation:
    return replace(
        operation(id, status),
        action=OperationAction(action),
        branch_id=branch_id,
        endpoint_id=endpoint_id,
        created_at=EPOCH + timedelta(seconds=seconds),
    )


def branch(state: str, pending: str | None = None) -> Branch:
    return decode(Branch, {**BRANCH, "current_state": state, "pending_state": pending})


def compute(state: str, **fields: object) -> Endpoint:
    return decode(Endpoint, {**ENDPOINT, "current_state": state, **fields})


@pytest.mark.parametrize(
    ("state", "pending", "is_unfinished"),
    [
        ("init", None, True),
        ("init", "ready", True),
        ("ready", None, False),
        ("ready", "ready", False),
        ("ready", "archived", True),
        ("archived", None, False),
        ("brand_new", None, False),
    ],
)
def test_branch_in_a_lasting_state_is_finished(
    state: str, pending: str | None, is_unfinished: bool
) -> None:
    assert bool(unfinished_objects(branch(state, pending), [])) == is_unfinished


@pytest.mark.parametrize(
    ("state", "fields", "is_unfinished"),
    [
        ("init", {}, True),
        ("active", {}, False),
        ("idle", STARTED, False),
        ("idle", {"pending_state": "active", **STARTED}, True),
        ("idle", {}, True),
        ("idle", {"disabled": True}, False),
    ],
)
def test_compute_that_was_never_started_may_have_failed(
    state: str, fields: dict[str, object], is_unfinished: bool
) -> None:
    assert bool(unfinished_objects(None, [compute(state, **fields)])) == is_unfinished


def test_operations_are_searched_from_the_creation_of_the_oldest_object_on() -> None:
    later = replace(COMPUTE_OBJECT, created_at=EPOCH + timedelta(days=1))
    assert search_start([later, BRANCH_OBJECT]) == EPOCH - timedelta(minutes=1)


@given(st.lists(st.tuples(st.sampled_from([None, "ep-1", "ep-2"]), states), max_size=6))
def test_newest_operation_of_each_object_decides(history: list[tuple[str | None, str]]) -> None:
    operations = [
        one(f"op-{number}", status, endpoint, seconds=-number)
        for number, (endpoint, status) in enumerate(history)
    ]
    objects = [BRANCH_OBJECT, COMPUTE_OBJECT]
    expected: set[str] = set()
    for endpoint in (None, "ep-1"):
        own = [each for each in operations if each.endpoint_id == endpoint]
        running = {each.id for each in own if each.status == "running"}
        expected |= running or {each.id for each in own[:1] if each.status == "failed"}
    found = operations_to_finish(objects, operations, NOW)
    assert {each.id for each in found} == expected
    assert found == sorted(found, key=lambda each: each.created_at)
    assert are_found(objects, operations) == ({None, "ep-1"} <= {end for end, _ in history})


def test_operations_of_other_branches_are_ignored() -> None:
    other = [one("op-1", "running", branch_id="br-2"), one("op-2", "failed", "ep-2")]
    assert operations_to_finish([BRANCH_OBJECT, COMPUTE_OBJECT], other, NOW) == []
    assert operations_to_apply(other[:1], "br-1", EPOCH, NOW) == []


def test_failed_operation_that_will_be_retried_is_pending() -> None:
    failed = replace(one("op-1", "failed"), retry_at=NOW + timedelta(seconds=1))
    assert operations_to_finish([BRANCH_OBJECT], [failed], NOW) == [failed]


@pytest.mark.parametrize(("age", "is_new"), [(59, True), (61, False)])
def test_old_database_counts_as_applied(age: int, is_new: bool) -> None:
    assert may_be_unapplied(NOW - timedelta(minutes=age), NOW) == is_new


@pytest.mark.parametrize(
    ("history", "wanted"),
    [
        ([], []),
        ([("op-1", "running", 0)], ["op-1"]),
        ([("op-1", "finished", 0)], []),
        ([("op-1", "failed", 0)], ["op-1"]),
        ([("op-2", "finished", 60), ("op-1", "failed", 0)], []),
        ([("op-2", "running", 60), ("op-1", "failed", 0)], ["op-1"]),
        ([("op-2", "failed", 60), ("op-1", "finished", 0)], []),
        ([("op-2", "running", 0), ("op-1", "running", 0)], ["op-1", "op-2"]),
        ([("op-1", "failed", -60)], []),
    ],
)
def test_operations_that_apply_a_database(
    history: list[tuple[str, str, int]], wanted: list[str]
) -> None:
    operations = [one(id, status, "ep-1", seconds=at) for id, status, at in history]
    found = operations_to_apply(operations, "br-1", EPOCH, NOW)
    assert [each.id for each in found] == wanted


def test_only_operations_that_apply_databases_count() -> None:
    suspended = one("op-1", "failed", "ep-1", action="suspend_compute")
    started = one("op-2", OperationStatus.RUNNING, "ep-1", action="start_compute")
    found: list[Operation] = operations_to_apply([suspended, started], "br-1", EPOCH, NOW)
    assert found == [started]
