from datetime import timedelta
from typing import Any

import msgspec
import pytest

from neonctl_async import Operation
from neonctl_async.waiting.states.observed import (
    ObservedState,
    branch_rank,
    check_state,
    closest,
    compute_rank,
    pending_of,
    project_rank,
)
from tests.support.records import EPOCH, operation


def work(id: str, branch_id: str | None = None, endpoint_id: str | None = None) -> Operation:
    """Return an operation of a branch, of a compute, or of the project."""
    return msgspec.structs.replace(operation(id), branch_id=branch_id, endpoint_id=endpoint_id)


PROJECT_WORK = work("attach")
BRANCH_WORK = work("create", "br-1")
COMPUTE_WORK = work("start", "br-1", "ep-1")
OTHER_COMPUTE = work("start-2", "br-1", "ep-2")
OTHER_BRANCH = work("create-2", "br-2")
ALL = [PROJECT_WORK, OTHER_BRANCH, OTHER_COMPUTE, COMPUTE_WORK, BRANCH_WORK]


@pytest.mark.parametrize(
    ("state", "pending_state", "is_steady"),
    [
        ("ready", None, True),
        ("ready", "ready", True),
        ("ready", "archived", False),
        ("init", "ready", False),
        ("archived", None, False),
    ],
)
def test_object_that_is_changing_is_not_steady(
    state: str, pending_state: str | None, is_steady: bool
) -> None:
    observed = ObservedState[object](state=state, pending_state=pending_state)
    assert observed.is_steady("ready") is is_steady


def test_records_with_equal_states_have_the_same_state() -> None:
    observed = ObservedState[object](state="init", pending_state="ready", updated_at=EPOCH)
    later = msgspec.structs.replace(observed, updated_at=EPOCH + timedelta(seconds=1))
    assert observed.has_same_state(later)
    assert not observed.has_same_state(ObservedState(state="init"))


def test_own_operations_of_a_branch_are_closest() -> None:
    assert closest(ALL, lambda each: branch_rank(each, "br-1")) == [BRANCH_WORK]
    assert closest(ALL[:-1], lambda each: branch_rank(each, "br-1")) == [
        OTHER_COMPUTE,
        COMPUTE_WORK,
    ]
    assert closest(ALL, lambda each: branch_rank(each, "br-3")) == [PROJECT_WORK]
    assert closest([OTHER_BRANCH], lambda each: branch_rank(each, "br-1")) == []


def test_own_operations_of_a_compute_are_closest() -> None:
    assert closest(ALL, lambda each: compute_rank(each, "ep-1", "br-1")) == [COMPUTE_WORK]
    assert closest(ALL, lambda each: compute_rank(each, "ep-3", "br-1")) == [BRANCH_WORK]
    assert closest(ALL, lambda each: compute_rank(each, "ep-3", "br-3")) == [PROJECT_WORK]
    assert closest([OTHER_COMPUTE], lambda each: compute_rank(each, "ep-1", "br-1")) == []


def test_operations_of_a_project_include_those_of_its_default_branch() -> None:
    found = closest(ALL, lambda each: project_rank(each, "br-2"))
    assert found == [PROJECT_WORK, OTHER_BRANCH]
    assert closest(ALL, lambda each: project_rank(each, None)) == [PROJECT_WORK]


def test_pending_operations_are_those_without_a_terminal_state() -> None:
    operations = [operation(status, status) for status in ("running", "finished", "paused")]
    assert [each.status for each in pending_of(operations, EPOCH)] == ["running", "paused"]


@pytest.mark.parametrize(
    ("state", "error"), [(None, TypeError), (True, TypeError), ("", ValueError)]
)
def test_state_that_is_not_a_text_is_refused(state: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"state is .*'ready'"):
        check_state(state)
