"""The marks of a wait, and the delays between polls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import PollPolicy
from neonctl_async.waiting.timing.prediction import UNKNOWN, Prediction, Share, predict
from neonctl_async.waiting.timing.schedule import (
    NO_MARKS,
    POLLS,
    SLOW_AFTER,
    SLOW_GROWTH,
    Group,
    Marks,
    growing_delay,
    marks_of,
    next_delay,
)

policies = st.builds(
    PollPolicy,
    initial=st.floats(0.01, 5),
    growth=st.floats(1, 3),
    maximum=st.floats(0.01, 60),
    jitter=st.floats(0, 0.99),
)
waits = st.floats(0, 1e6)
draws = st.floats(0, 1)
times = st.lists(st.floats(0.01, 100), min_size=1, max_size=4, unique=True).map(sorted)
durations = st.lists(st.floats(0, 1000), min_size=5, max_size=50)
STEADY = PollPolicy(initial=0.25, growth=1.5, maximum=5.0, jitter=0.0)


def observed(*seconds: float) -> Marks:
    """Return marks that rest on observed durations."""
    return Marks(seconds, len(seconds))


def marks_after(*seconds: float, operations: int = 1, polls: int = POLLS) -> Marks:
    """Return the marks of a wait after operations of these durations."""
    return marks_of([Group(predict(seconds), operations, 0.0)], polls)


def test_marks_of_a_constant_duration_come_just_after_it() -> None:
    assert marks_after(*[1.0] * 10, polls=2).seconds == pytest.approx([1.04, 1.04])


@pytest.mark.parametrize(("end", "late"), [(0.5, 0.03), (4.0, 0.1), (5.0, 0.12), (90.0, 0.12)])
def test_mark_is_later_than_the_end_by_a_limited_share_of_it(end: float, late: float) -> None:
    assert marks_after(*[end] * 10).seconds[-1] - end == pytest.approx(late)


def test_marks_divide_evenly_spread_durations() -> None:
    marks = marks_after(*[1 + n / 10 for n in range(40)], polls=4).seconds
    assert marks == pytest.approx([1.9, 2.9, 3.9, 4.9], abs=0.3)


def test_marks_come_where_durations_end_and_not_in_between() -> None:
    """Quartiles would leave most of the short ones to the first mark of the long ones."""
    short, long = [1.0 + n / 100 for n in range(10)], [8.0 + n / 100 for n in range(10)]
    marks = marks_after(*short, *long, polls=2).seconds
    assert marks == pytest.approx([1.11, 8.19], abs=0.05)


def test_only_mark_comes_after_nearly_all_durations() -> None:
    [mark] = marks_after(*[1 + n / 10 for n in range(40)], polls=1).seconds
    assert mark == pytest.approx(4.9, abs=0.15)


def test_more_marks_never_make_polls_later() -> None:
    seconds = [1.0, 1.1, 1.5, 2.0, 4.0, 4.1, 9.0, 15.0]

    def lateness(polls: int) -> float:
        marks = marks_after(*seconds, polls=polls).seconds
        return sum(min(mark for mark in marks if mark > one) - one for one in seconds[:-1])

    assert lateness(1) > lateness(2) > lateness(3) > lateness(4)


def test_marks_of_many_operations_are_those_of_the_last_one() -> None:
    seconds = [1 + n / 10 for n in range(40)]
    assert marks_after(*seconds, operations=50).seconds[0] > marks_after(*seconds).seconds[-2]


def test_marks_of_operations_of_different_actions_are_those_of_the_slowest_one() -> None:
    fast, slow = predict([1.0] * 10), predict([3.0] * 10)
    groups = [Group(fast, 1, 0.0), Group(slow, 1, 0.0)]
    assert marks_of(groups).seconds == marks_after(*[3.0] * 10).seconds
    assert marks_of([Group(fast, 1, 0.0), Group(slow, 1, -2.5)]).seconds[-1] == pytest.approx(1.04)


def test_wait_with_an_unknown_operation_has_no_marks() -> None:
    groups = [Group(predict([1.0] * 10), 1, 0.0), Group(UNKNOWN, 1, 0.0)]
    assert marks_of(groups) == NO_MARKS


def test_marks_beyond_the_observed_share_are_estimates() -> None:
    shares = tuple(Share((n + 1) / 10, 1.0 + n / 10) for n in range(5))
    marks = marks_of([Group(Prediction(shares, end=8.0, is_complete=False), 1, 0.0)])
    assert 0 < marks.observed < len(marks.seconds)
    assert marks.seconds[-1] == pytest.approx(7.9, abs=0.4)


@given(durations, st.integers(1, 100), st.integers(1, POLLS))
def test_marks_ascend(seconds: list[float], operations: int, polls: int) -> None:
    marks = marks_after(*seconds, operations=operations, polls=polls).seconds
    assert list(marks) == sorted(marks)
    assert 1 <= len(marks) <= polls


@given(policies, waits, draws, st.just(NO_MARKS) | times.map(lambda one: observed(*one)))
def test_delay_is_positive_and_at_most_the_maximum(
    policy: PollPolicy, waited: float, draw: float, marks: Marks
) -> None:
    assert 0 < next_delay(policy, waited, draw, marks) <= policy.maximum


@given(policies, waits, waits)
def test_delays_grow_with_the_time_waited(policy: PollPolicy, first: float, second: float) -> None:
    earlier, later = sorted((first, second))
    assert growing_delay(policy, earlier, 0.5) <= growing_delay(policy, later, 0.5)


@given(policies, waits, draws)
def test_jitter_changes_a_delay_by_at_most_its_share(
    policy: PollPolicy, waited: float, draw: float
) -> None:
    mean = growing_delay(policy, waited, 0.5)
    assert abs(growing_delay(policy, waited, draw) - mean) <= mean * (policy.jitter + 1e-9)


def test_first_delays_without_jitter_are_a_geometric_series() -> None:
    waited = 0.0
    delays: list[float] = []
    for _ in range(5):
        delays.append(growing_delay(STEADY, waited, draw=0.3))
        waited += delays[-1]
    assert delays == [0.25, 0.375, 0.5625, 0.84375, 1.265625]


def test_delays_grow_more_slowly_after_8_times_the_first_one() -> None:
    slow_from = SLOW_AFTER * STEADY.initial
    fast, constant = (slow_from - STEADY.initial) / 0.5, slow_from / (0.5 * SLOW_GROWTH)
    assert growing_delay(STEADY, 0.9 * fast, 0.5) == pytest.approx(0.25 + 0.5 * 0.9 * fast)
    assert growing_delay(STEADY, fast, 0.5) == growing_delay(STEADY, constant, 0.5) == slow_from
    assert growing_delay(STEADY, 2 * constant, 0.5) == pytest.approx(2 * slow_from)
    assert growing_delay(STEADY, 100.0, 0.5) == 5.0


@given(st.floats(0.01, 60), waits, draws)
def test_constant_interval_does_not_grow(interval: float, waited: float, draw: float) -> None:
    assert growing_delay(PollPolicy.constant(interval), waited, draw) == interval


@pytest.mark.parametrize(("draw", "expected"), [(0.0, 0.2), (0.5, 0.25), (0.75, 0.275), (1.0, 0.3)])
def test_jitter_spreads_the_delay_in_both_directions(draw: float, expected: float) -> None:
    policy = PollPolicy(initial=0.25, growth=1.5, maximum=5.0, jitter=0.2)
    assert growing_delay(policy, 0.0, draw) == pytest.approx(expected)
    assert growing_delay(policy, 1000.0, draw) == pytest.approx(min(20 * expected, 5.0))


def test_next_delay_ends_at_the_next_mark() -> None:
    marks = observed(1.0, 2.0, 3.0)
    assert next_delay(STEADY, 0.0, 0.5, marks) == 1.0
    assert next_delay(STEADY, 1.0, 0.5, marks) == 1.0
    assert next_delay(STEADY, 1.4, 0.5, marks) == pytest.approx(0.6)


def test_last_mark_is_approached_by_the_growing_series_or_the_gap_before_it() -> None:
    marks = observed(1.0, 4.0, 40.0)
    policy = PollPolicy(initial=0.25, growth=1.5, maximum=50.0, jitter=0.0)
    assert next_delay(policy, 3.9, 0.5, marks) == pytest.approx(0.1)
    assert next_delay(policy, 4.0, 0.5, marks) == 3.0  # the gap from 1 to 4 s
    assert next_delay(policy, 34.0, 0.5, marks) == pytest.approx(6.0)  # the mark
    assert next_delay(policy, 24.0, 0.5, marks) == pytest.approx(0.22 * 20)  # the growing series
    assert next_delay(policy, 0.0, 0.5, observed(40.0)) == 40.0


def test_delays_grow_again_after_the_last_mark() -> None:
    assert next_delay(STEADY, 10.0, 0.5, observed(10.0)) == 0.25
    assert next_delay(STEADY, 11.0, 0.5, observed(10.0)) == 0.75


def test_estimated_mark_never_makes_a_delay_longer_or_much_shorter() -> None:
    marks = Marks((1.0, 9.0, 9.1), observed=1)
    assert next_delay(STEADY, 1.0, 0.5, marks) == 0.75
    assert next_delay(STEADY, 8.9, 0.5, marks) == pytest.approx(2.0 / 3)


def test_short_budget_waits_for_an_estimated_end() -> None:
    marks = Marks((1.0, 9.0, 20.0), observed=1)
    assert next_delay(STEADY, 1.0, 0.5, marks, is_short=True) == 8.0
