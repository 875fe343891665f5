from types import SimpleNamespace

import pytest

from neonctl_async import Operation
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.waiting.status import Change, Outcome
from neonctl_async.waiting.targets import Progress, Target, Waitable, targets_of
from tests.support.records import operation, ref

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


def final_change(record: Operation, outcome: Outcome = Outcome.SUCCEEDED) -> Change:
    return Change(record.ref, operation(record.id, "finished"), outcome)


def test_progress_is_complete_when_each_operation_is_finished() -> None:
    progress = Progress([A, ref("b"), ref("a")])
    progress.note(final_change(A))
    progress.note(final_change(A))
    assert not progress.is_complete
    assert progress.pending() == [ref("b")]
    progress.note(Change(B.ref, B, Outcome.PENDING))
    assert not progress.is_complete
    assert progress.pending() == [B]
    progress.note(final_change(B, Outcome.UNSUCCESSFUL))
    assert progress.is_complete
    assert [record.id for record in progress.settled()] == ["a", "b"]
    assert [record.id for record in progress.settled(Outcome.UNSUCCESSFUL)] == ["b"]
    assert [record.id for record in progress.newest()] == ["a", "b", "a"]
