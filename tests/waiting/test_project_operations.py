"""The tracked operations of a project, with times from the test and without an event loop."""

import logging
import math
from datetime import timedelta

import msgspec
import pytest

from neonctl_async import (
    APIError,
    ClientClosedError,
    NotFoundError,
    Operation,
    PollPolicy,
    ServerError,
)
from neonctl_async.hooks import StatusChanged
from neonctl_async.waiting.poll_plan import PollPlan
from neonctl_async.waiting.project_operations import ProjectOperations, ReleasedOperations
from neonctl_async.waiting.timing.forecast import Forecast
from neonctl_async.waiting.timing.pace import Pace
from neonctl_async.waiting.tracked import OperationWait, Outcome, TrackedOperation
from tests.support.records import EPOCH, PROJECT, operation, ref
from tests.waiting.timing.conditions import ACTION, Budget

POLICY = PollPolicy(failed_grace=2.0, missing_grace=3.0)


class Project:
    """Tracked operations, one wait for them, and the calls of the hook."""

    def __init__(self, *records: Operation) -> None:
        self.events: list[StatusChanged] = []
        self.forecast = Forecast()
        self.plan = PollPlan(POLICY, self.forecast, Pace(Budget()))
        self.operations = ProjectOperations(
            self.plan, POLICY, lambda: EPOCH, self.events.append, ReleasedOperations()
        )
        self.wait = OperationWait([])
        for record in records:
            self.operations.add(record.ref, record, self.wait, now=0.0)
        self.entry: TrackedOperation = self.operations.ready()[0]
        self.changes()

    def update(self, status: str, now: float, updated_at: float = 0.0) -> None:
        record = msgspec.structs.replace(
            operation("a", status), updated_at=EPOCH + timedelta(seconds=updated_at)
        )
        self.operations.update(self.entry, record, now)

    def changes(self) -> list[tuple[str, Outcome]]:
        """Return the status and the outcome of each delivered change."""
        taken: list[tuple[str, Outcome]] = []
        while change := self.wait.take():
            assert change.record is not None
            taken.append((change.record.status, change.outcome))
        return taken


def test_terminal_record_is_delivered_and_the_operation_dropped() -> None:
    project = Project(operation("a"))
    project.update("finished", now=1.0, updated_at=-5.0)
    assert project.changes() == [("finished", Outcome.SUCCEEDED)]
    assert len(project.operations) == 0
    changes = [(event.previous, event.operation.status) for event in project.events]
    assert changes == [(None, "running"), ("running", "finished")]


def test_each_status_is_logged_and_an_unknown_one_as_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="neonctl_async.waiting.project_operations")
    project = Project(operation("a"))
    project.update("hibernating", now=1.0)
    prefix = f"create_branch a in {PROJECT} is "
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", f"{prefix}running"),
        ("WARNING", f"{prefix}hibernating (unknown status, treated as pending)"),
    ]


def test_failed_poll_is_logged_and_kept_as_the_last_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    project = Project(operation("a"))
    error = ClientClosedError("closed")
    project.operations.note_failure([project.entry], error, now=1.0)
    assert project.wait.last_error is error
    [record] = caplog.records
    assert record.getMessage() == "a poll of operations failed and will be repeated: closed"


def test_unchanged_record_is_not_delivered_again() -> None:
    project = Project(operation("a"))
    project.update("running", now=1.0)
    assert project.changes() == []


def test_failure_is_pending_until_a_later_record_confirms_it() -> None:
    project = Project(operation("a"))
    project.entry.polled_at = 1.0
    project.update("failed", now=1.0)
    assert project.changes() == [("failed", Outcome.PENDING)]
    assert project.entry.has_new_failure
    assert project.entry.recheck_at == 3.0
    project.update("failed", now=2.9)
    assert project.changes() == []
    project.update("failed", now=3.0)
    assert project.changes() == [("failed", Outcome.UNSUCCESSFUL)]
    assert [event.operation.status for event in project.events] == ["running", "failed"]


def test_older_record_does_not_confirm_a_failure() -> None:
    project = Project(operation("a"))
    project.update("failed", now=1.0, updated_at=5.0)
    project.update("running", now=4.0, updated_at=4.0)
    assert project.changes() == [("failed", Outcome.PENDING)]


def test_list_that_may_lag_behind_needs_a_read_by_id_to_confirm_a_failure() -> None:
    project = Project(operation("a"))
    failed = operation("a", "failed")
    assert not project.operations.needs_confirmation(project.entry, failed, 1.0)
    project.update("failed", now=1.0)
    assert not project.operations.needs_confirmation(project.entry, failed, 2.9)
    assert project.operations.needs_confirmation(project.entry, failed, 3.0)
    assert not project.operations.needs_confirmation(project.entry, operation("a"), 3.0)


def test_newer_record_of_a_failed_operation_starts_again() -> None:
    project = Project(operation("a"))
    project.update("failed", now=1.0, updated_at=1.0)
    project.update("running", now=4.0, updated_at=4.0)
    assert project.entry.recheck_at == math.inf
    project.update("failed", now=9.0, updated_at=9.0)
    assert {outcome for _, outcome in project.changes()} == {Outcome.PENDING}


@pytest.mark.parametrize("is_list", [False, True])
def test_404_of_a_known_operation_is_final_after_the_grace(is_list: bool) -> None:
    project = Project(operation("a"))
    for now in (1.0, 3.9):
        again, final = project.operations.note_not_found([project.entry], now, is_list=is_list)
        assert (again, final) == ([project.entry], [])
    again, final = project.operations.note_not_found([project.entry], 4.0, is_list=is_list)
    assert (again, final) == ([], [project.entry])


def test_record_restarts_the_grace_of_a_404() -> None:
    project = Project(operation("a"))
    project.operations.note_not_found([project.entry], 1.0, is_list=False)
    project.update("running", now=2.0)
    again, _ = project.operations.note_not_found([project.entry], 4.0, is_list=False)
    assert again == [project.entry]


def test_other_failure_restarts_the_grace_of_a_404() -> None:
    project = Project(operation("a"))
    project.operations.note_not_found([project.entry], 1.0, is_list=False)
    project.operations.note_failure([project.entry], failed(ServerError, 503), 2.0)
    again, _ = project.operations.note_not_found([project.entry], 9.0, is_list=False)
    assert again == [project.entry]
    project.operations.note_failure([project.entry], failed(NotFoundError, 404), 9.0)
    _, final = project.operations.note_not_found([project.entry], 12.0, is_list=False)
    assert final == [project.entry]


def failed(error: type[APIError], status: int) -> APIError:
    return error(status=status, code="", message="no", request_id="r", method="GET", path="/")


def test_404_of_an_unseen_operation_is_final_unless_it_is_of_a_list() -> None:
    project = Project(operation("a"))
    project.operations.add(ref("b"), None, project.wait, now=0.0)
    unseen = project.operations.ready()[1]
    assert project.operations.note_not_found([unseen], 1.0, is_list=False) == ([], [unseen])
    assert project.operations.note_not_found([unseen], 1.0, is_list=True) == ([unseen], [])


def test_404_of_a_list_is_final_if_no_operation_was_seen() -> None:
    project = Project(operation("a"))
    project.entry.record = None
    _, final = project.operations.note_not_found([project.entry], 1.0, is_list=True)
    assert final == [project.entry]


def test_first_record_is_delivered_to_each_further_wait() -> None:
    project = Project(operation("a"))
    project.operations.add(ref("a"), None, project.wait, now=1.0)
    assert project.changes() == [("running", Outcome.PENDING)]


def test_operation_is_dropped_when_no_wait_needs_it() -> None:
    project = Project(operation("a"), operation("b"))
    other = OperationWait([])
    project.operations.add(ref("a"), None, other, now=1.0)
    project.operations.remove([ref("a"), ref("b"), ref("unknown")], project.wait)
    assert [entry.ref.id for entry in project.operations.ready()] == ["a"]
    project.operations.remove([ref("a")], other)
    assert project.operations.ready() == []
    project.update("finished", now=2.0)
    assert project.changes() == []


def test_permanent_error_is_raised_by_the_waits() -> None:
    project = Project(operation("a"))
    project.operations.fail([project.entry], failed(NotFoundError, 404))
    project.operations.fail_all(ClientClosedError("closed"))
    with pytest.raises(NotFoundError):
        project.wait.take()
    assert not project.operations.is_tracked(project.entry)


def test_tracked_operations_are_known_by_id() -> None:
    project = Project(operation("a"))
    assert "a" in project.operations
    assert "b" not in project.operations


def test_changes_name_their_operation() -> None:
    project = Project(operation("a"))
    project.operations.add(ref("a"), None, project.wait, now=1.0)
    first = project.wait.take()
    project.update("finished", now=2.0)
    second = project.wait.take()
    assert first is not None
    assert second is not None
    assert first.ref == second.ref == ref("a")


def test_unseen_operation_has_no_change_until_it_is_polled() -> None:
    project = Project(operation("a"))
    project.operations.add(ref("b"), None, project.wait, now=1.0)
    assert project.changes() == []


@pytest.mark.parametrize(("seconds", "status"), [(-1, "running"), (1, "scheduling")])
def test_record_of_a_second_wait_is_used_if_it_is_newer(seconds: float, status: str) -> None:
    project = Project(operation("a"))
    at = EPOCH + timedelta(seconds=seconds)
    record = msgspec.structs.replace(operation("a", "scheduling"), updated_at=at)
    other = OperationWait([])
    project.operations.add(ref("a"), record, other, now=1.0)
    change = other.take()
    assert change is not None
    assert change.record is not None
    assert change.record.status == status


def test_retry_of_a_failure_is_compared_with_the_time_of_the_server() -> None:
    project = Project(operation("a"))
    for seconds, expected in ((5, Outcome.PENDING), (-5, Outcome.UNSUCCESSFUL)):
        record = msgspec.structs.replace(
            operation("a", "failed"),
            retry_at=EPOCH + timedelta(seconds=seconds),
            updated_at=EPOCH + timedelta(seconds=10 - seconds),
        )
        project.operations.update(project.entry, record, now=1.0)
        assert project.changes() == [("failed", expected)]


def test_duration_of_a_finished_operation_becomes_a_forecast() -> None:
    project = Project(*(operation(f"op-{n}") for n in range(5)))
    for entry in project.operations.ready():
        finished = msgspec.structs.replace(
            operation(entry.ref.id, "finished"), total_duration_ms=3000
        )
        project.operations.update(entry, finished, now=4.0)
    project.forecast.update(4.0)
    assert project.forecast.prediction(ACTION, PROJECT).end == 3.0


def test_end_of_all_waits_is_raised_by_each() -> None:
    project = Project(operation("a"))
    project.operations.fail_all(ClientClosedError("closed"))
    with pytest.raises(ClientClosedError):
        project.wait.take()
