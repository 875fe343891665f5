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
def test_operations_references_answers_and_any_mix_stand_for_what_they_hold(
    what: Waitable, targets: list[Target]
) -> None:
    assert targets_of(what) == targets


def test_what_can_be_iterated_over_but_once_will_do() -> None:
    assert targets_of(one for one in (ref("a"), B)) == [ref("a"), B]


def ended(one: Operation, outcome: Outcome = Outcome.SUCCEEDED) -> Change:
    return Change(one.ref, operation(one.id, "finished"), outcome)


def test_progress_is_complete_when_each_has_ended_however_often_it_was_given() -> None:
    progress = Progress([A, ref("b"), ref("a")])
    progress.note(ended(A))
    progress.note(ended(A))
    assert not progress.is_complete
    assert progress.pending() == [ref("b")]
    progress.note(Change(B.ref, B, Outcome.PENDING))
    assert not progress.is_complete
    assert progress.pending() == [B]
    progress.note(ended(B, Outcome.UNSUCCESSFUL))
    assert progress.is_complete
    assert [one.id for one in progress.settled()] == ["a", "b"]
    assert [one.id for one in progress.settled(Outcome.UNSUCCESSFUL)] == ["b"]
    assert [one.id for one in progress.newest()] == ["a", "b", "a"]
