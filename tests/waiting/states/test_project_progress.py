from datetime import timedelta

import msgspec

from neonctl_async import Operation
from neonctl_async.waiting.states.project import ProjectProgress
from tests.support.records import EPOCH, operation


def created(id: str, status: str, at: float) -> Operation:
    at_time = EPOCH + timedelta(seconds=at)
    return msgspec.structs.replace(operation(id, status), created_at=at_time)


HISTORY = [operation("2", "failed"), operation("1", "finished")]


def test_operations_that_finished_before_the_wait_are_no_results() -> None:
    progress = ProjectProgress(failed_grace=2.0)
    assert progress.note_list(HISTORY, EPOCH) == []
    assert progress.results() == []
    assert progress.failure(EPOCH) is None


def test_operations_that_finished_between_two_lists_are_results() -> None:
    progress = ProjectProgress(failed_grace=2.0)
    now = EPOCH + timedelta(seconds=5)
    progress.note_list(HISTORY, now)
    missed = [created("5", "failed", 5), created("3", "finished", 3)]
    newest = [missed[0], created("4", "running", 4), missed[1], *HISTORY]
    assert progress.note_list(newest, now) == missed
    assert [each.ref.id for each in progress.pending] == ["4"]
    assert [each.id for each in progress.results()] == ["3", "5"]
    failure = progress.failure(EPOCH)
    assert failure is not None
    assert [each.id for each in failure.failed] == ["5"]
    assert [each.ref.id for each in failure.pending] == ["4"]


def test_new_failure_between_two_lists_is_pending_until_it_is_confirmed() -> None:
    progress = ProjectProgress(failed_grace=2.0)
    progress.note_list(HISTORY, EPOCH)
    failed, finished = created("4", "failed", 2), created("3", "finished", 2)
    assert progress.note_list([failed, finished, *HISTORY], EPOCH) == [finished]
    assert [each.ref.id for each in progress.pending] == ["4"]
    assert [each.id for each in progress.results()] == ["3"]


def test_failure_is_a_result_at_once_without_a_grace() -> None:
    progress = ProjectProgress(failed_grace=0.0)
    progress.note_list([], EPOCH)
    progress.note_list(HISTORY, EPOCH)
    assert [each.id for each in progress.results()] == ["1", "2"]


def test_first_operations_of_an_empty_project_are_results() -> None:
    progress = ProjectProgress(failed_grace=2.0)
    progress.note_list([], EPOCH)
    progress.note_list(HISTORY, EPOCH + timedelta(seconds=5))
    assert [each.id for each in progress.results()] == ["1", "2"]


def test_results_are_sorted_by_the_start() -> None:
    progress = ProjectProgress(failed_grace=2.0)
    progress.note_settled([operation("b", "finished"), operation("a", "finished")])
    progress.note_settled([created("c", "finished", -1)])
    assert [each.id for each in progress.results()] == ["c", "a", "b"]
