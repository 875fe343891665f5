"""The life of an operation, as a pure function."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_local import Durations
from neonctl_local.clock import SECOND
from neonctl_local.engine import lifecycle
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.storage.tables import NOT_STARTED, OperationPlan

SECONDS = st.floats(min_value=0, max_value=100)
FAILURES = st.none() | st.builds(Failure, retry_after=st.none() | SECONDS)
DURATIONS = st.builds(Durations, default=SECONDS, scheduling=st.floats(min_value=0, max_value=1))


def planned(durations: Durations, failure: Failure | None) -> OperationPlan:
    """Return the plan of an operation with these settings."""
    return lifecycle.plan("create_branch", 1000, durations, failure=failure)


PLANS = st.builds(planned, DURATIONS, FAILURES)


def statuses(plan: OperationPlan, *seconds: float) -> list[str]:
    """Return the statuses after these numbers of seconds."""
    return [lifecycle.state_at(plan, round(second * SECOND)).status for second in seconds]


def test_operation_runs_and_finishes() -> None:
    plan = lifecycle.plan("create_branch", 0, Durations(default=2))
    assert statuses(plan, 0, 1.9, 2, 100) == ["running", "running", "finished", "finished"]


def test_part_of_the_duration_can_be_spent_scheduling() -> None:
    plan = lifecycle.plan("create_branch", 0, Durations(default=2, scheduling=0.5))
    assert statuses(plan, 0, 0.9, 1, 2) == ["scheduling", "scheduling", "running", "finished"]


def test_durations_are_set_by_action() -> None:
    durations = Durations(default=1, by_action={"start_compute": 5})
    assert lifecycle.plan("start_compute", 0, durations).settles_at == 5 * SECOND
    assert lifecycle.plan("create_branch", 0, durations).settles_at == SECOND


def test_operation_without_duration_finishes_at_once() -> None:
    assert statuses(lifecycle.plan("create_branch", 0, Durations(default=0)), 0) == ["finished"]


def test_second_operation_starts_when_the_first_has_finished() -> None:
    durations = Durations(default=1)
    first = lifecycle.plan("create_branch", 0, durations)
    second = lifecycle.plan("start_compute", 1, durations, after=first)
    assert statuses(second, 0.99, 1, 1.99, 2) == ["scheduling", "running", "running", "finished"]


def test_operation_after_a_failure_fails_without_starting() -> None:
    durations = Durations(default=1)
    first = lifecycle.plan("create_branch", 0, durations, failure=Failure())
    second = lifecycle.plan("start_compute", 1, durations, after=first)
    assert statuses(second, 0.9, 1) == ["scheduling", "failed"]
    end = lifecycle.state_at(second, SECOND)
    assert (end.failures_count, end.duration, end.error) == (0, 0, NOT_STARTED)


def test_failure_has_a_count_and_an_error() -> None:
    plan = lifecycle.plan("create_branch", 0, Durations(), failure=Failure(error="disk full"))
    before, after = lifecycle.state_at(plan, SECOND - 1), lifecycle.state_at(plan, SECOND)
    assert (before.failures_count, before.error) == (0, None)
    assert (after.status, after.failures_count, after.error) == ("failed", 1, "disk full")
    assert after.retry_at is None


def test_failure_with_retry_runs_again_at_retry_at_and_finishes() -> None:
    plan = lifecycle.plan("create_branch", 0, Durations(), failure=Failure(retry_after=3))
    assert statuses(plan, 0, 1, 3.9, 4, 4.9, 5) == [
        *("running", "failed", "failed"),
        *("running", "running", "finished"),
    ]
    waiting, again, end = (lifecycle.state_at(plan, second * SECOND) for second in (1, 4, 5))
    assert waiting.retry_at == 4 * SECOND
    assert (again.retry_at, again.failures_count) == (None, 1)
    assert (end.error, end.failures_count) == (None, 1)


def test_duration_grows_only_while_running() -> None:
    plan = lifecycle.plan("create_branch", 0, Durations(default=2, scheduling=0.5))
    durations = [
        lifecycle.state_at(plan, round(second * SECOND)).duration for second in (0, 1.5, 2, 9)
    ]
    assert durations == [0, SECOND // 2, SECOND, SECOND]


def rank(plan: OperationPlan, now: int) -> tuple[int, int]:
    """Return the progress of an operation: its failures first, then the order of statuses."""
    state = lifecycle.state_at(plan, now)
    final = now >= plan.settles_at
    order = {"failed": 0, "scheduling": 1, "running": 2}
    return state.failures_count + final, 3 if final else order[state.status]


@given(PLANS, st.lists(st.integers(min_value=1000, max_value=400 * SECOND), min_size=2))
def test_status_never_moves_backwards(plan: OperationPlan, moments: list[int]) -> None:
    ranks = [rank(plan, moment) for moment in sorted(moments)]
    assert ranks == sorted(ranks)


@given(PLANS, st.integers(min_value=0, max_value=400 * SECOND))
def test_fields_are_consistent_at_every_time(plan: OperationPlan, later: int) -> None:
    now = plan.created_at + later
    state = lifecycle.state_at(plan, now)
    assert plan.created_at <= state.updated_at <= now
    assert 0 <= state.duration <= plan.settles_at - plan.starts_at
    assert (state.status == "failed") == (state.error is not None and state.status != "running")
    if state.retry_at is not None:
        assert state.status == "failed"
        assert state.retry_at > now


@given(PLANS, st.integers(min_value=0, max_value=400 * SECOND))
def test_final_status_never_changes(plan: OperationPlan, later: int) -> None:
    final = lifecycle.state_at(plan, plan.settles_at)
    assert lifecycle.state_at(plan, plan.settles_at + later) == final


@pytest.mark.parametrize(
    "settings",
    [
        {"default": -1},
        {"default": float("inf")},
        {"by_action": {"start_compute": float("nan")}},
        {"by_action": {"x": 1}},
        {"by_action": {"x": -1}},
        {"scheduling": float("nan")},
        {"scheduling": 1.5},
    ],
)
def test_invalid_durations_are_rejected(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"0 or more|share|no action"):
        msgspec.convert(settings, Durations)


def emulated(
    durations: Durations, failure: Failure | None, after: OperationPlan | None
) -> OperationPlan:
    """Return the plan of an operation without work, computed in another way."""
    duration = round(durations.default * SECOND)
    created_at = 1000
    starts_at = created_at + round(duration * durations.scheduling)
    ends_at = created_at + duration
    if after is not None:
        starts_at = max(created_at, after.settles_at)
        ends_at = starts_at + duration if after.succeeds else starts_at
    if after is not None and not after.succeeds:
        outcome, error, retry_at, settles_at = "failed", NOT_STARTED, None, ends_at
    elif failure is None:
        outcome, error, retry_at, settles_at = "finished", None, None, ends_at
    elif failure.retry_after is None:
        outcome, error, retry_at, settles_at = failure.status, failure.error, None, ends_at
    else:
        outcome, error = "finished", failure.error
        retry_at = ends_at + round(failure.retry_after * SECOND)
        settles_at = retry_at + duration
    return OperationPlan(
        created_at=created_at,
        starts_at=starts_at,
        ends_at=ends_at,
        settles_at=settles_at,
        outcome=outcome,
        retry_at=retry_at,
        error=error,
    )


@given(DURATIONS, FAILURES, st.none() | PLANS)
def test_operations_without_work_have_all_times_at_creation(
    durations: Durations, failure: Failure | None, after: OperationPlan | None
) -> None:
    plan = lifecycle.plan("create_branch", 1000, durations, after=after, failure=failure)
    assert plan == emulated(durations, failure, after)
    assert not plan.is_open


@given(DURATIONS, FAILURES, st.integers(min_value=0, max_value=200 * SECOND))
def test_operation_after_an_open_one_gets_its_times_later(
    durations: Durations, failure: Failure | None, end: int
) -> None:
    open_plan = lifecycle.without_end(planned(durations, None))
    waiting = lifecycle.plan("create_branch", 1000, durations, after=open_plan, failure=failure)
    assert waiting.is_open
    assert lifecycle.state_at(waiting, 10 * end).status == "scheduling"
    duration = round(durations.default * SECOND)
    ended = lifecycle.with_end(open_plan, duration, end, None)
    started = lifecycle.follow(1000, duration, ended, failure)
    assert started == emulated(durations, failure, ended)
