"""The times of the requests of a wait for a state."""

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import PollPolicy
from neonctl_async.waiting.states.observed import ObservedState
from neonctl_async.waiting.states.plan import StatePlan
from neonctl_async.waiting.timing import schedule
from neonctl_async.waiting.timing.pace import CROWD, MAX_STRETCH
from tests.support.records import EPOCH

POLICY = PollPolicy(jitter=0.0)
LONGEST_GAP = CROWD * POLICY.maximum


def observed(state: str = "init", at: float = 0.0) -> ObservedState[str]:
    return ObservedState(state=state, updated_at=EPOCH + timedelta(seconds=at), record="record")


def new_plan(deadline: float = 300.0) -> StatePlan[str]:
    return StatePlan("ready", POLICY, 0.0, deadline)


def delay_after(waited: float) -> float:
    """Return the delay of the policy after this time."""
    return schedule.growing_delay(POLICY, waited, 0.5)


def next_read(plan: StatePlan[str], *, is_following: bool = False) -> float:
    return plan.next_read_at(0.5, is_following=is_following)


def test_state_is_reached_when_the_object_is_in_the_wanted_state() -> None:
    plan = new_plan()
    assert not plan.is_reached
    plan.note_state(observed(), 1.0, 0.1)
    assert not plan.is_reached
    plan.note_state(observed("ready"), 2.0, 0.1)
    assert plan.is_reached


def test_reads_of_an_unchanged_state_have_the_delays_of_the_policy() -> None:
    plan = new_plan()
    reads = [0.0]
    for _ in range(12):
        plan.note_state(observed(), reads[-1], 0.0)
        reads.append(next_read(plan))
    delays = [later - earlier for earlier, later in pairwise(reads)]
    assert delays == pytest.approx([delay_after(read) for read in reads[:-1]])
    assert delays[0] == 0.25


def test_delays_start_again_after_a_new_state_and_after_an_operation() -> None:
    plan = new_plan()
    plan.note_state(observed(), 0.0, 0.0)
    plan.note_state(observed(), 50.0, 0.0)
    assert next_read(plan) == 50.0 + delay_after(50.0)
    plan.note_state(observed("idle"), 51.0, 0.0)
    assert next_read(plan) == 51.25
    plan.note_state(observed("idle"), 90.0, 0.0)
    plan.note_finished_operation(91.0)
    plan.note_state(observed("idle"), 91.1, 0.0)
    assert next_read(plan) < 91.5


def test_record_that_changes_without_a_new_state_is_not_read_more_often() -> None:
    plan = new_plan()
    plan.note_state(observed(), 0.0, 0.0)
    plan.note_state(observed(at=49.0), 50.0, 0.0)
    assert plan.needs_operations
    assert next_read(plan) == 50.0 + delay_after(50.0)


def test_operations_are_listed_after_each_change() -> None:
    plan = new_plan()
    assert not plan.needs_operations
    plan.note_state(observed(), 0.0, 0.0)
    assert plan.needs_operations
    plan.needs_operations = False
    plan.note_state(observed(), 1.0, 0.0)
    assert not plan.needs_operations
    plan.note_finished_operation(2.0)
    assert plan.needs_operations


def test_state_is_read_rarely_while_operations_are_pending() -> None:
    plan = new_plan()
    plan.note_state(observed(), 10.0, 0.0)
    assert next_read(plan, is_following=True) == 10.0 + LONGEST_GAP


def test_delays_are_longer_while_the_budget_is_short() -> None:
    plan = new_plan()
    plan.note_state(observed(), 0.0, 0.0)
    assert plan.next_read_at(0.5, is_following=False, stretch=3.0) == 9 * delay_after(0.0)
    plan.note_state(observed(), 60.0, 0.0)
    assert plan.next_read_at(0.5, is_following=False, stretch=3.0) == 60.0 + 3 * POLICY.maximum
    assert plan.next_read_at(0.5, is_following=True, stretch=3.0) == 60.0 + LONGEST_GAP


def test_constant_delays_stay_while_the_budget_is_short() -> None:
    plan = StatePlan[str]("ready", PollPolicy.constant(2.0), 0.0, 300.0)
    plan.note_state(observed(), 10.0, 0.0)
    assert plan.next_read_at(0.5, is_following=False, stretch=MAX_STRETCH) == 12.0


def test_pause_after_a_failure_delays_the_next_read() -> None:
    plan = new_plan()
    plan.note_failure(10.0, 0.0)
    assert next_read(plan) == 10.0 + delay_after(10.0)
    plan.note_failure(20.0, 30.0)
    assert next_read(plan) == 50.0


def test_last_read_comes_before_the_deadline_and_once() -> None:
    plan = new_plan(deadline=12.0)
    plan.note_state(observed(), 0.0, 0.3)
    plan.note_state(observed(), 10.0, 0.3)
    assert next_read(plan) == 12.0 - 2 * 0.3
    assert next_read(plan, is_following=True) == 12.0 - 2 * 0.3
    plan.note_state(observed(), 11.7, 0.3)
    assert next_read(plan) > 12.0


@given(
    reads=st.lists(st.tuples(st.floats(0, 60), st.sampled_from(["init", "idle"]))),
    draw=st.floats(0, 1),
    is_following=st.booleans(),
    deadline=st.floats(0, 100) | st.just(float("inf")),
)
def test_next_read_comes_after_the_last_one_and_in_bounded_time(
    reads: list[tuple[float, str]], draw: float, is_following: bool, deadline: float
) -> None:
    plan = StatePlan[str]("ready", PollPolicy(), 0.0, deadline)
    now = 0.0
    for pause, state in reads:
        now += pause
        plan.note_state(observed(state, now), now, 0.01)
    due = plan.next_read_at(draw, is_following=is_following)
    assert now < due <= now + (LONGEST_GAP if is_following else PollPolicy().maximum)
