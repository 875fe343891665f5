"""The life of an operation, as a pure function."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.local import Durations
from neonctl_async.local.clock import SECOND
from neonctl_async.local.engine import lifecycle
from neonctl_async.local.engine.lifecycle import Failure
from neonctl_async.local.storage.plan import NOT_STARTED, Plan

SECONDS = st.floats(min_value=0, max_value=100)
FAILURES = st.none() | st.builds(Failure, retry_after=st.none() | SECONDS)
DURATIONS = st.builds(Durations, default=SECONDS, scheduling=st.floats(min_value=0, max_value=1))


def planned(durations: Durations, failure: Failure | None) -> Plan:
    """The life of an operation of these settings."""
    return lifecycle.plan("create_branch", 1000, durations, failure=failure)


PLANS = st.builds(planned, DURATIONS, FAILURES)


def statuses(plan: Plan, *seconds: float) -> list[str]:
    """The status after so many seconds."""
    return [lifecycle.at(plan, round(second * SECOND)).status for second in seconds]


def test_an_operation_runs_and_finishes() -> None:
    plan = lifecycle.plan("create_branch", 0, Durations(default=2))
    assert statuses(plan, 0, 1.9, 2, 100) == ["running", "running", "finished", "finished"]


def test_a_share_of_the_duration_may_be_spent_scheduling() -> None:
    plan = lifecycle.plan("create_branch", 0, Durations(default=2, scheduling=0.5))
    assert statuses(plan, 0, 0.9, 1, 2) == ["scheduling", "scheduling", "running", "finished"]


def test_durations_are_set_by_action() -> None:
    durations = Durations(default=1, by_action={"start_compute": 5})
    assert lifecycle.plan("start_compute", 0, durations).settles_at == 5 * SECOND
    assert lifecycle.plan("create_branch", 0, durations).settles_at == SECOND


def test_an_operation_without_duration_is_final_at_once() -> None:
    assert statuses(lifecycle.plan("create_branch", 0, Durations(default=0)), 0) == ["finished"]


def test_the_second_starts_when_the_first_finishes() -> None:
    durations = Durations(default=1)
    first = lifecycle.plan("create_branch", 0, durations)
    second = lifecycle.plan("start_compute", 1, durations, after=first)
    assert statuses(second, 0.99, 1, 1.99, 2) == ["scheduling", "running", "running", "finished"]


def test_what_follows_a_failure_fails_without_having_started() -> None:
    durations = Durations(default=1)
    first = lifecycle.plan("create_branch", 0, durations, failure=Failure())
    second = lifecycle.plan("start_compute", 1, durations, after=first)
    assert statuses(second, 0.9, 1) == ["scheduling", "failed"]
    end = lifecycle.at(second, SECOND)
    assert (end.failures_count, end.duration, end.error) == (0, 0, NOT_STARTED)


def test_a_failure_counts_and_says_why() -> None:
    plan = lifecycle.plan("create_branch", 0, Durations(), failure=Failure(error="disk full"))
    before, after = lifecycle.at(plan, SECOND - 1), lifecycle.at(plan, SECOND)
    assert (before.failures_count, before.error) == (0, None)
    assert (after.status, after.failures_count, after.error) == ("failed", 1, "disk full")
    assert after.retry_at is None


def test_a_failure_to_be_retried_says_when_then_runs_again_and_finishes() -> None:
    plan = lifecycle.plan("create_branch", 0, Durations(), failure=Failure(retry_after=3))
    assert statuses(plan, 0, 1, 3.9, 4, 4.9, 5) == [
        *("running", "failed", "failed"),
        *("running", "running", "finished"),
    ]
    waiting, again, end = (lifecycle.at(plan, second * SECOND) for second in (1, 4, 5))
    assert waiting.retry_at == 4 * SECOND
    assert (again.retry_at, again.failures_count) == (None, 1)
    assert (end.error, end.failures_count) == (None, 1)


def test_the_duration_grows_while_running_and_then_stands() -> None:
    plan = lifecycle.plan("create_branch", 0, Durations(default=2, scheduling=0.5))
    durations = [lifecycle.at(plan, round(second * SECOND)).duration for second in (0, 1.5, 2, 9)]
    assert durations == [0, SECOND // 2, SECOND, SECOND]


def rank(plan: Plan, now: int) -> tuple[int, int]:
    """How far an operation has come: more failures are further, then the order of statuses."""
    state = lifecycle.at(plan, now)
    final = now >= plan.settles_at
    order = {"failed": 0, "scheduling": 1, "running": 2}
    return state.failures_count + final, 3 if final else order[state.status]


@given(PLANS, st.lists(st.integers(min_value=1000, max_value=400 * SECOND), min_size=2))
def test_a_status_moves_only_forward(plan: Plan, moments: list[int]) -> None:
    ranks = [rank(plan, moment) for moment in sorted(moments)]
    assert ranks == sorted(ranks)


@given(PLANS, st.integers(min_value=0, max_value=400 * SECOND))
def test_the_fields_agree_at_every_moment(plan: Plan, later: int) -> None:
    now = plan.created_at + later
    state = lifecycle.at(plan, now)
    assert plan.created_at <= state.updated_at <= now
    assert 0 <= state.duration <= plan.settles_at - plan.starts_at
    assert (state.status == "failed") == (state.error is not None and state.status != "running")
    if state.retry_at is not None:
        assert state.status == "failed"
        assert state.retry_at > now


@given(PLANS, st.integers(min_value=0, max_value=400 * SECOND))
def test_a_final_status_stays(plan: Plan, later: int) -> None:
    final = lifecycle.at(plan, plan.settles_at)
    assert lifecycle.at(plan, plan.settles_at + later) == final


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
def test_durations_make_sense(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"0 or more|share|no action"):
        msgspec.convert(settings, Durations)
