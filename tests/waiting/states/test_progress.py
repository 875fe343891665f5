from datetime import timedelta

import msgspec

from neonctl_async import Operation
from neonctl_async.waiting.states.progress import ProjectProgress
from tests.support.records import EPOCH, operation


def created(id: str, status: str, at: float) -> Operation:
    at_time = EPOCH + timedelta(seconds=at)
    return msgspec.structs.replace(operation(id, status), created_at=at_time)


HISTORY = [operation("2", "failed"), operation("1", "finished")]


def test_operations_that_finished_before_the_wait_are_no_results() -> None:
    progress = ProjectProgress()
    assert progress.note_list(HISTORY, EPOCH) == []
    assert progress.results() == []
    assert progress.failure(EPOCH) is None


def test_operations_that_finished_between_two_lists_are_results() -> None:
    progress = ProjectProgress()
    progress.note_list(HISTORY, EPOCH)
    missed = [created("5", "failed", 5), created("3", "finished", 3)]
    newest = [missed[0], created("4", "running", 4), missed[1], *HISTORY]
    assert progress.note_list(newest, EPOCH) == missed
    assert [each.ref.id for each in progress.pending] == ["4"]
    assert [each.id for each in progress.results()] == ["3", "5"]
    failure = progress.failure(EPOCH)
    assert failure is not None
    assert [each.id for each in failure.failed] == ["5"]
    assert [each.ref.id for each in failure.pending] == ["4"]


def test_first_operations_of_an_empty_project_are_results() -> None:
    progress = ProjectProgress()
    progress.note_list([], EPOCH)
    progress.note_list(HISTORY, EPOCH)
    assert [each.id for each in progress.results()] == ["1", "2"]


def test_results_are_sorted_by_the_start() -> None:
    progress = ProjectProgress()
    progress.note_settled([operation("b", "finished"), operation("a", "finished")])
    progress.note_settled([created("c", "finished", -1)])
    assert [each.id for each in progress.results()] == ["c", "a", "b"]
