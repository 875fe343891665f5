from datetime import timedelta
from types import SimpleNamespace

import msgspec
import pytest

from neonctl_async import Operation
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.waiting.targets import Target, Waitable, targets_of
from neonctl_async.waiting.tracked import OperationWait, Outcome, TrackedOperation
from tests.support.records import EPOCH, operation, ref

A, B = operation("a"), operation("b")


@pytest.mark.parametrize(
    ("what", "targets"),
    [
        (A, [A]),
        (ref("a"), [ref("a")]),
        (OperationsResponse(operations=[B, A]), [B, A]),
        (OperationsResponse(operations=[]), []),
        (SimpleNamespace(operations=[A]), [A]),
        ((A, ref("a"), OperationsResponse(operations=[B, A]), A), [A, ref("a"), B, A, A]),
    ],
)
def test_targets_are_found_in_operations_references_responses_and_iterables(
    what: Waitable, targets: list[Target]
) -> None:
    assert targets_of(what) == targets


def test_targets_are_found_in_a_generator() -> None:
    assert targets_of(target for target in (ref("a"), B)) == [ref("a"), B]


def tracked(
    progress: OperationWait, id: str, status: str = "running", outcome: Outcome = Outcome.PENDING
) -> TrackedOperation:
    """Return an operation of the wait after its poller has found a record."""
    [entry] = [entry for entry in progress if entry.ref.id == id]
    entry.record = operation(id, status)
    entry.outcome = outcome
    return entry


def test_progress_is_complete_when_each_operation_is_finished() -> None:
    progress = OperationWait([A, ref("b"), ref("a")])
    for _ in range(2):
        progress.note(tracked(progress, "a", "finished", Outcome.SUCCEEDED))
    assert not progress.is_complete
    assert progress.pending() == [ref("b")]
    progress.note(tracked(progress, "b"))
    assert not progress.is_complete
    assert progress.pending() == [B]
    progress.note(tracked(progress, "b", "failed", Outcome.UNSUCCESSFUL))
    assert progress.is_complete
    assert [record.id for record in progress.settled()] == ["a", "b"]
    assert [record.id for record in progress.settled(Outcome.UNSUCCESSFUL)] == ["b"]
    assert [record.id for record in progress.newest()] == ["a", "b", "a"]


def test_wait_reads_the_newest_record_of_an_operation_that_it_shares() -> None:
    progress = OperationWait([A])
    shared = TrackedOperation(A.ref, 0.0, operation("a", "cancelling"))
    progress.track(shared)
    assert progress.newest() == [shared.record]
    shared.record = operation("a", "finished")
    assert [record.status for record in progress.newest()] == ["finished"]


def at(seconds: int, status: str) -> Operation:
    updated_at = EPOCH + timedelta(seconds=seconds)
    return msgspec.structs.replace(operation("a", status), updated_at=updated_at)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (at(1, "running"), at(0, "finished")),
        (at(1, "running"), at(0, "failed")),
        (at(1, "failed"), at(0, "finished")),
        (at(0, "running"), at(1, "running")),
        (at(0, "finished"), at(1, "finished")),
    ],
)
def test_terminal_record_is_the_newest_of_two_in_any_order(
    first: Operation, second: Operation
) -> None:
    for targets in ([first, second], [second, first]):
        assert OperationWait(targets).newest() == [second, second]


def test_record_is_reported_once_until_it_changes() -> None:
    progress = OperationWait([A])
    changed = msgspec.structs.replace(A, failures_count=1)
    records = [A, msgspec.structs.replace(A, total_duration_ms=5), changed, changed]
    reported: list[bool] = []
    for record in records:
        [entry] = progress
        entry.record = record
        reported.append(progress.report(entry))
    assert reported == [True, False, True, False]


def test_failures_that_no_poll_has_confirmed_are_final_at_the_deadline() -> None:
    progress = OperationWait([operation("a", "failed"), B, operation("c", "error")])
    assert [entry.ref.id for entry in progress.settle_failures()] == ["a"]
    assert progress.has_failed(A.ref)
    assert progress.settle_failures() == []
    assert [entry.outcome for entry in progress] == [Outcome.PENDING] * 3  # other waits continue


@pytest.mark.parametrize(
    ("are_new", "age", "grace", "expected"),
    [
        (True, 3600.0, 1.0, Outcome.PENDING),
        (False, 1.9, 1.0, Outcome.PENDING),
        (False, 2.0, 1.0, Outcome.UNSUCCESSFUL),
        (False, 5.0, 10.0, Outcome.PENDING),
        (False, -3600.0, 1.0, Outcome.PENDING),
        (False, 0.0, 0.0, Outcome.UNSUCCESSFUL),
    ],
)
def test_only_a_new_failure_needs_a_confirmation(
    *, are_new: bool, age: float, grace: float, expected: Outcome
) -> None:
    now = EPOCH + timedelta(seconds=age)
    failed, error = operation("a", "failed"), operation("b", "error")
    progress = OperationWait([failed, error], are_new=are_new)
    assert progress.first_outcome(failed, now, grace) is expected
    assert progress.first_outcome(error, now, grace) is Outcome.UNSUCCESSFUL
    assert progress.first_outcome(operation("c", "running"), now, grace) is Outcome.PENDING
