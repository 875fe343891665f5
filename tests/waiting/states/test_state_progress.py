"""The times of the requests of a wait for a state."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import PollPolicy, RateLimitedError
from neonctl_async.errors import NeonError
from neonctl_async.waiting.states.shared_reads import Reading
from neonctl_async.waiting.states.sources import BranchSource, ObservedState
from neonctl_async.waiting.states.waits import StateProgress, States
from neonctl_async.waiting.timing import schedule
from neonctl_async.waiting.timing.pace import MAX_STRETCH
from tests.support.records import PROJECT

POLICY = PollPolicy(jitter=0.0)
INF = float("inf")


def new_progress(policy: PollPolicy = POLICY) -> StateProgress[str]:
    source = BranchSource(PROJECT, "br-1")
    return StateProgress(source, "ready", policy, 0.0)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - the record does not matter


def reading(
    at: float, found: str | NeonError = "init", seconds: float = 0.0
) -> Reading[States[str]]:
    """Return the result of a request for the branch."""
    state = ObservedState[str](found) if isinstance(found, str) else found
    return Reading(number=1, value={"br-1": state}, error=None, finished_at=at, seconds=seconds)


def delay_after(waited: float) -> float:
    """Return the delay of the policy after this time."""
    return schedule.growing_delay(POLICY, waited, 0.5)


def next_read(progress: StateProgress[str], deadline: float = INF, stretch: float = 1.0) -> float:
    return progress.next_read_at(deadline, stretch, 0.5)


def test_state_is_reached_when_the_object_is_in_the_wanted_state() -> None:
    progress = new_progress()
    progress.note(reading(1.0))
    assert not progress.is_reached
    progress.note(reading(2.0, "ready"))
    assert progress.is_reached


def test_delays_grow_and_start_over_after_a_change() -> None:
    progress = new_progress()
    progress.note(reading(0.0))
    progress.note(reading(20.0))
    assert next_read(progress) == 20.0 + delay_after(20.0)
    progress.note(reading(21.0, "idle"))
    assert next_read(progress) == 21.42


@pytest.mark.parametrize(("stretch", "factor"), [(0.5, 0.5), (1.0, 1.0), (3.0, 9.0)])
def test_delays_follow_what_is_left_of_the_budget(stretch: float, factor: float) -> None:
    progress = new_progress()
    progress.note(reading(0.0))
    assert next_read(progress, stretch=stretch) == factor * delay_after(0.0)
    progress.note(reading(60.0))
    longest = max(stretch, 1.0) * POLICY.maximum
    assert next_read(progress, stretch=stretch) == min(
        60.0 + longest, 60.0 + factor * delay_after(60.0)
    )


def test_constant_delays_stay_while_the_budget_is_short() -> None:
    progress = new_progress(PollPolicy.constant(2.0))
    progress.note(reading(10.0))
    assert next_read(progress, stretch=MAX_STRETCH) == 12.0


def test_pause_after_a_failure_delays_the_next_read() -> None:
    progress = new_progress()
    limited = RateLimitedError(
        status=429, message="slow down", method="GET", path="/", retry_after=30.0
    )
    progress.note(reading(10.0, limited))
    assert progress.last_error is limited
    assert next_read(progress) == 40.0


def test_last_read_comes_before_the_deadline_and_once() -> None:
    progress = new_progress()
    progress.note(reading(10.0, seconds=0.3))
    progress.note(reading(30.0, seconds=0.3))
    assert next_read(progress, deadline=32.0) == 32.0 - 2 * 0.3
    progress.note(reading(31.7, seconds=0.3))
    assert next_read(progress, deadline=32.0) > 32.0


@given(
    reads=st.lists(st.tuples(st.floats(0, 60), st.sampled_from(["init", "idle"]))),
    draw=st.floats(0, 1),
    deadline=st.floats(0, 100) | st.just(INF),
)
def test_next_read_comes_after_the_last_one_and_in_bounded_time(
    reads: list[tuple[float, str]], draw: float, deadline: float
) -> None:
    progress = new_progress(PollPolicy())
    now = 0.0
    for pause, state in reads:
        now += pause
        progress.note(reading(now, state, seconds=0.01))
    due = progress.next_read_at(deadline, 1.0, draw)
    assert now < due <= now + PollPolicy().maximum
