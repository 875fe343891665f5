"""The durations in lists of operations that nobody waited for."""

from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import Operation
from neonctl_async.types import OperationAction
from neonctl_async.waiting.timing.forecast import (
    MAX_AGE,
    MAX_AGE_MS,
    MAX_PROJECTS,
    MIN_DURATIONS,
    UNKNOWN,
    Histories,
    age,
    durations_of,
    predict,
)
from tests.support.records import EPOCH, operation

ACTION = OperationAction.CREATE_BRANCH
OTHER = OperationAction.START_COMPUTE
EXACT = EPOCH + timedelta(microseconds=1)
"""A time with more than whole seconds."""


def record(
    seconds: float,
    milliseconds: int | None = None,
    *,
    created_at: datetime = EPOCH,
    status: str = "finished",
    action: OperationAction = ACTION,
) -> Operation:
    """Return an operation that took ``seconds`` by its timestamps."""
    return msgspec.structs.replace(
        operation(status=status),
        action=action,
        created_at=created_at,
        updated_at=created_at + timedelta(seconds=seconds),
        total_duration_ms=milliseconds,
    )


def records(*seconds: float, action: OperationAction = ACTION) -> list[Operation]:
    return [record(one, created_at=EXACT, action=action) for one in seconds]


@pytest.mark.parametrize(
    ("milliseconds", "seconds"),
    [
        (None, 0.0),
        (0, 0.0),
        (1500, 1.5),
        (-1500, 0.0),
        (MAX_AGE_MS, MAX_AGE_MS / 1000),
        (10**400, MAX_AGE_MS / 1000),
    ],
)
def test_age_is_the_duration_of_the_record_if_it_is_possible(
    milliseconds: int | None, seconds: float
) -> None:
    assert age(record(0, milliseconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "milliseconds", "expected"),
    [
        (3, None, 3.0),
        (2, None, 2.0),
        (1, None, None),
        (0, None, None),
        (3, 3400, 3.4),
        (3, 4000, 4.0),
        (3, 2000, 2.0),
        (1, 800, 0.8),
        (0, 800, 0.8),
        (0, 0, 0.0),
        (3, 4001, 3.0),  # the operation waited in a queue, or the field is wrong
        (9, 3400, 9.0),
        (1, 5000, None),
        (-3, None, None),  # it finished before it was created
        (-3, 3000, None),
        (3, 10**400, 3.0),
        (3, -(10**400), 3.0),
    ],
)
def test_duration_of_whole_seconds_is_made_exact_by_total_duration_ms(
    seconds: float, milliseconds: int | None, expected: float | None
) -> None:
    durations = durations_of([record(seconds, milliseconds)])
    assert durations == ({} if expected is None else {ACTION: [expected]})


@pytest.mark.parametrize("created_at", [EPOCH, EXACT])
@pytest.mark.parametrize("milliseconds", [None, 900])
def test_exact_timestamps_are_used_whatever_total_duration_ms_is(
    created_at: datetime, milliseconds: int | None
) -> None:
    updated_at = created_at + timedelta(seconds=0.5)
    one = msgspec.structs.replace(
        record(0, milliseconds, created_at=created_at), updated_at=updated_at
    )
    assert durations_of([one]) == {ACTION: [0.5]}


def test_exact_creation_and_end_at_a_whole_second_are_exact() -> None:
    started = EPOCH + timedelta(seconds=0.25)
    assert durations_of([record(0.75, created_at=started)]) == {ACTION: [0.75]}


def test_durations_are_grouped_by_action() -> None:
    others = records(5.0, action=OTHER)
    assert durations_of([*records(3.0, 4.0), *others]) == {ACTION: [3.0, 4.0], OTHER: [5.0]}


@pytest.mark.parametrize("status", ["running", "failed", "skipped", "cancelled", "scheduling"])
def test_only_finished_operations_have_a_duration(status: str) -> None:
    assert durations_of([record(3, status=status)]) == {}


def test_operations_much_older_than_the_newest_one_are_ignored() -> None:
    newest = record(3, created_at=EPOCH)
    almost = record(4, created_at=EPOCH - MAX_AGE + timedelta(seconds=1))
    old = record(5, created_at=EPOCH - MAX_AGE)
    assert durations_of([old, newest, almost]) == {ACTION: [3.0, 4.0]}


def test_newest_operation_of_any_action_decides_which_ones_are_old() -> None:
    newest = record(1, created_at=EPOCH, action=OTHER)
    assert durations_of([newest, record(5, created_at=EPOCH - MAX_AGE)]) == {}


def test_age_of_pending_operations_does_not_make_others_old() -> None:
    pending = record(3, created_at=EPOCH, status="running")
    old = record(5, created_at=EPOCH - MAX_AGE)
    assert durations_of([pending, old]) == {ACTION: [5.0]}


def histories_of(*projects: list[float]) -> Histories:
    """Return the histories of the projects ``project-0``, ``project-1``, …"""
    histories = Histories()
    for number, seconds in enumerate(projects):
        histories.note(f"project-{number}", records(*seconds))
    return histories


def test_history_of_a_project_predicts_its_operations_only() -> None:
    histories = histories_of([3.0] * 5)
    assert histories.has("project-0")
    assert not histories.has("project-1")
    assert histories.of_project(ACTION, "project-0") == predict([3.0] * 5)
    assert histories.of_project(OTHER, "project-0") == UNKNOWN
    assert histories.of_project(ACTION, "project-1") == UNKNOWN


def test_project_without_enough_durations_has_a_history_without_prediction() -> None:
    histories = histories_of([3.0] * (MIN_DURATIONS - 1))
    assert histories.has("project-0")
    assert histories.of_project(ACTION, "project-0") == UNKNOWN
    histories.note_finished("project-0", ACTION, 9.0)
    histories.note_finished("project-0", OTHER, 9.0)
    histories.note_finished("project-1", ACTION, 9.0)
    assert histories.of_project(ACTION, "project-0") == UNKNOWN


def test_new_list_replaces_the_history() -> None:
    histories = histories_of([3.0] * 5)
    histories.note("project-0", records(*[4.0] * 5))
    assert histories.of_project(ACTION, "project-0") == predict([4.0] * 5)


@pytest.mark.parametrize("seconds", [1.9, 4.6])
def test_history_that_is_contradicted_is_dropped(seconds: float) -> None:
    histories = histories_of([3.0] * 5)
    histories.note_finished("project-0", ACTION, 3.3)
    assert histories.of_project(ACTION, "project-0") != UNKNOWN
    histories.note_finished("project-0", ACTION, seconds)
    assert histories.of_project(ACTION, "project-0") == UNKNOWN


def test_two_projects_that_agree_predict_the_operations_of_all() -> None:
    assert histories_of([3.0] * 5).of_all(ACTION) == UNKNOWN
    histories = histories_of([3.0] * 5, [1.0], [4.0] * 5)
    assert histories.of_all(ACTION) == predict([4.0] * 5)
    assert histories.of_all(OTHER) == UNKNOWN
    histories.note("project-0", records(*[3.5] * 5))
    assert histories.of_all(ACTION) == predict([3.5] * 5)


@pytest.mark.parametrize(("place", "is_common"), [(0, True), (1, False), (2, False)])
def test_newest_two_histories_have_to_agree(place: int, is_common: bool) -> None:
    projects = [[3.0] * 5] * 3
    projects[place] = [9.0] * 5
    assert (histories_of(*projects).of_all(ACTION) != UNKNOWN) is is_common


def test_histories_of_the_least_recently_noted_projects_are_dropped() -> None:
    histories = histories_of(*[[3.0] * 5] * MAX_PROJECTS)
    assert histories.has("project-0")
    histories.note("project-0", records(3.0))
    histories.note("new", records(3.0))
    assert histories.has("project-0")
    assert not histories.has("project-1")
    assert histories.has("project-2")


@given(
    st.lists(
        st.tuples(
            st.sampled_from([ACTION, OTHER]),
            st.sampled_from(["finished", "running"]),
            st.integers(0, 90 * 24 * 3600),
            st.integers(0, 10_000),
            st.none() | st.integers(0, 10_000),
        ),
        max_size=30,
    )
)
def test_durations_are_those_of_the_timestamps_or_of_total_duration_ms(
    operations: list[tuple[OperationAction, str, int, int, int | None]],
) -> None:
    durations = durations_of(
        record(
            seconds,
            milliseconds,
            created_at=EPOCH + timedelta(seconds=at),
            status=status,
            action=action,
        )
        for action, status, at, seconds, milliseconds in operations
    )
    for action, seconds in durations.items():
        possible = {
            duration
            for one, status, _, elapsed, milliseconds in operations
            if (one, status) == (action, "finished")
            for duration in (elapsed, (milliseconds or 0) / 1000)
        }
        assert set(seconds) <= possible


def test_common_history_follows_each_change() -> None:
    histories = Histories()
    assert histories.of_all(ACTION) == UNKNOWN
    histories.note("first", records(*[3.0] * MIN_DURATIONS))
    assert histories.of_all(ACTION) == UNKNOWN
    histories.note("second", records(*[3.0] * MIN_DURATIONS))
    assert histories.of_all(ACTION) == predict([3.0] * MIN_DURATIONS)
    histories.note_finished("first", ACTION, 30.0)
    assert histories.of_all(ACTION) == UNKNOWN


def test_common_history_ends_with_the_project_that_is_forgotten() -> None:
    histories = Histories()
    for project_id in ("first", "second"):
        histories.note(project_id, records(*[3.0] * MIN_DURATIONS))
    for number in range(MAX_PROJECTS - 1):
        assert histories.of_all(ACTION) != UNKNOWN
        histories.note(f"empty-{number}", [])
    assert histories.of_all(ACTION) == UNKNOWN
