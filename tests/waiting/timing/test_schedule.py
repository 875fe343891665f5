from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import PollPolicy
from neonctl_async.waiting.timing.prediction import UNKNOWN, Prediction, Share, predict
from neonctl_async.waiting.timing.schedule import (
    LAST_SHARE,
    MAX_MARGIN_SECONDS,
    NO_MARKS,
    QUARTERS,
    SLOW_AFTER,
    SLOW_GROWTH,
    Group,
    Marks,
    delay,
    marks_of,
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
stretches = st.just(1.0) | st.floats(0.1, 25)
times = st.lists(st.floats(0.01, 100), min_size=1, max_size=4, unique=True).map(sorted)
durations = st.lists(st.floats(0, 1000), min_size=5, max_size=50)
STEADY = PollPolicy(initial=0.25, growth=1.5, maximum=5.0, jitter=0.0)


def margin(end: float) -> float:
    """Return the time from a predicted end to its mark."""
    return 0.02 + min(0.02 * end, MAX_MARGIN_SECONDS)


def marks_after(*seconds: float, operations: int = 1, stretch: float = 1.0) -> Marks:
    """Return the marks of a wait after operations of these durations."""
    return marks_of([Group(predict(seconds), operations, 0.0)], stretch)


def test_constant_duration_has_one_mark_just_after_it() -> None:
    marks = marks_after(*[1.0] * 10)
    assert marks.seconds == pytest.approx([1.04])
    assert marks.are_complete


@pytest.mark.parametrize(("end", "late"), [(0.5, 0.03), (4.0, 0.1), (5.0, 0.12), (90.0, 0.12)])
def test_mark_is_later_than_the_end_by_a_limited_share_of_it(end: float, late: float) -> None:
    [mark], _ = marks_after(*[end] * 10)
    assert mark - end == pytest.approx(late)


def test_marks_divide_varying_durations_into_equal_shares() -> None:
    seconds = [1 + n / 10 for n in range(40)]
    assert marks_after(*seconds).seconds == pytest.approx(
        [end + margin(end) for end in (1.9, 2.9, 3.9, 4.8)]
    )


@pytest.mark.parametrize(
    ("stretch", "number"),
    [(0.5, 8), (1.0, QUARTERS), (1.3, 3), (2.0, 2), (4.0, 1), (8.1, 1), (25.0, 1)],
)
def test_short_budget_allows_fewer_marks(stretch: float, number: int) -> None:
    marks = marks_after(*[1.5**n for n in range(40)], stretch=stretch).seconds
    assert len(marks) == number
    end = 1.5 ** (40 * LAST_SHARE // 1)
    assert marks[-1] == pytest.approx(end + margin(end))


def test_marks_of_three_operations_are_those_of_the_last_one() -> None:
    seconds = [n / 10 for n in range(1, 101)]
    [mark] = marks_after(*seconds, operations=3, stretch=4.0).seconds
    assert mark == pytest.approx(9.9 + margin(9.9))  # 0.97 ** (1 / 3) = 0.9899
    first, *_ = marks_after(*seconds, operations=2).seconds
    assert first == pytest.approx(5.0 + margin(5.0))  # 0.25 ** (1 / 2) = 0.5


def test_marks_of_operations_of_different_actions_are_those_of_the_slowest_one() -> None:
    short, long = predict([1.0] * 10), predict([4.0] * 10)
    marks = marks_of([Group(short, 1, 0.0), Group(long, 1, 0.0)])
    assert marks.seconds == pytest.approx([4.1])
    # The short operation was started later, relative to the long one that marks are relative to.
    assert marks_of([Group(short, 1, 3.5), Group(long, 1, 0.0)]).seconds == pytest.approx([4.61])


def test_operations_of_all_groups_are_counted() -> None:
    seconds = [n / 10 for n in range(1, 101)]
    group = Group(predict(seconds), 1, 0.0)
    assert marks_of([group, group]) == marks_after(*seconds, operations=2)


def test_marks_close_together_are_served_by_one_poll() -> None:
    assert marks_after(1.0, 1.01, 1.02, 1.03, 3.0, 3.1).seconds == pytest.approx(
        [1.02 + margin(1.02), 3.1 + margin(3.1)]
    )


def test_wait_with_an_unknown_operation_has_no_marks() -> None:
    known = Group(predict([1.0] * 10), 1, 0.0)
    assert marks_of([known, Group(UNKNOWN, 1, 0.0)]) == NO_MARKS
    assert NO_MARKS.are_complete


def test_marks_are_complete_if_all_predictions_are() -> None:
    shares = tuple(Share(n / 20, n / 10) for n in range(1, 11))
    estimated = Group(Prediction(shares, end=4.0, is_complete=False), 1, 0.0)
    observed = Group(predict([1.0] * 10), 1, 0.0)
    assert marks_of([observed, observed]).are_complete
    assert not marks_of([observed, estimated]).are_complete
    assert not marks_of([estimated]).are_complete


def test_group_counts_operations_and_has_the_start_of_the_youngest() -> None:
    group = Group(UNKNOWN, 0, -9.0)
    for starts_after in (-4.0, -2.0, -3.0):
        group = group.with_operation(starts_after)
    assert group == Group(UNKNOWN, 3, -2.0)


@given(
    st.lists(
        st.builds(Group, durations.map(predict), st.integers(1, 50), st.floats(-50, 0)),
        min_size=1,
        max_size=4,
    ),
    stretches,
)
def test_marks_ascend_and_are_never_close_together(groups: list[Group], stretch: float) -> None:
    marks = marks_of(groups, stretch)
    assert 1 <= len(marks.seconds) <= max(1, round(QUARTERS / stretch))
    for earlier, later in pairwise(marks.seconds):
        assert earlier < later
        assert later - earlier >= 0.1 * later - 1e-9


@given(durations, st.integers(1, 50), st.integers(1, 50))
def test_more_operations_never_have_an_earlier_last_mark(
    seconds: list[float], first: int, second: int
) -> None:
    fewer, more = sorted((first, second))
    last = [marks_after(*seconds, operations=number).seconds[-1] for number in (fewer, more)]
    assert last[0] <= last[1]


@given(policies, waits, draws)
def test_delay_is_positive_and_at_most_the_maximum(
    policy: PollPolicy, waited: float, draw: float
) -> None:
    assert 0 < delay(policy, waited, draw) <= policy.maximum


@given(policies, waits, draws, times, st.booleans(), st.floats(0, 100), stretches)
def test_delay_is_positive_and_at_most_the_stretched_maximum_with_any_history(
    policy: PollPolicy,
    waited: float,
    draw: float,
    seconds: list[float],
    is_complete: bool,
    minimum: float,
    stretch: float,
) -> None:
    marks = Marks(tuple(seconds), is_complete)
    result = delay(policy, waited, draw, marks, minimum, stretch=stretch)
    longest = policy.maximum * max(stretch, 1.0)
    assert 0 < result <= longest
    assert result >= min(minimum, longest)


@given(policies, waits, waits)
def test_delays_grow_with_the_time_waited(policy: PollPolicy, first: float, second: float) -> None:
    assert delay(policy, min(first, second), 0.5) <= delay(policy, max(first, second), 0.5)


@given(policies, waits, draws)
def test_jitter_changes_a_delay_by_at_most_its_share(
    policy: PollPolicy, waited: float, draw: float
) -> None:
    mean = delay(policy, waited, 0.5)
    assert abs(delay(policy, waited, draw) - mean) <= mean * (policy.jitter + 1e-9)


def test_first_delays_without_jitter_are_a_geometric_series() -> None:
    waited = 0.0
    delays: list[float] = []
    for _ in range(5):
        delays.append(delay(STEADY, waited, draw=0.3))
        waited += delays[-1]
    assert delays == [0.25, 0.375, 0.5625, 0.84375, 1.265625]


def test_delays_grow_more_slowly_after_8_times_the_first_one() -> None:
    slow_from = SLOW_AFTER * STEADY.initial
    fast, constant = (slow_from - STEADY.initial) / 0.5, slow_from / (0.5 * SLOW_GROWTH)
    assert delay(STEADY, 0.9 * fast, 0.5) == pytest.approx(0.25 + 0.5 * 0.9 * fast)
    assert delay(STEADY, fast, 0.5) == delay(STEADY, constant, 0.5) == slow_from
    assert delay(STEADY, 2 * constant, 0.5) == pytest.approx(2 * slow_from)
    assert delay(STEADY, 100.0, 0.5) == 5.0


@given(st.floats(0.01, 60), waits, draws)
def test_constant_interval_does_not_grow(interval: float, waited: float, draw: float) -> None:
    assert delay(PollPolicy.constant(interval), waited, draw) == interval


@pytest.mark.parametrize(("draw", "expected"), [(0.0, 0.2), (0.5, 0.25), (0.75, 0.275), (1.0, 0.3)])
def test_jitter_spreads_the_delay_in_both_directions(draw: float, expected: float) -> None:
    policy = PollPolicy(initial=0.25, growth=1.5, maximum=5.0, jitter=0.2)
    assert delay(policy, 0.0, draw) == pytest.approx(expected)
    assert delay(policy, 1000.0, draw) == pytest.approx(min(20 * expected, 5.0))


@given(policies, waits, draws, times, st.floats(0, 100), stretches)
def test_next_poll_comes_at_the_next_mark_unless_only_the_last_one_is_left(
    policy: PollPolicy,
    waited: float,
    draw: float,
    seconds: list[float],
    minimum: float,
    stretch: float,
) -> None:
    marks = Marks(tuple(seconds), len(seconds))
    result = delay(policy, waited, draw, marks, minimum, stretch=stretch)
    longest = policy.maximum * max(stretch, 1.0)
    later = [mark for mark in seconds if mark > waited + minimum]
    passed = [mark for mark in seconds if mark <= waited]
    if len(later) > 1 or (later and not passed):
        assert result == pytest.approx(min(later[0] - waited, longest))
    elif later:
        assert result <= later[0] - waited or result == min(minimum, longest)
    else:
        assert result >= min(minimum, longest)


def test_very_long_operations_do_not_delay_the_others() -> None:
    seconds = [*[0.8] * 60, 10.0]
    marks = marks_after(*seconds, operations=1)
    assert marks.seconds == pytest.approx([0.836])  # the long one is beyond the last mark
    marks = marks_after(*seconds, operations=2)
    assert marks.seconds[0] == pytest.approx(0.836)
    waited, polled_at = 0.0, list[float]()
    while waited < 10:
        waited += delay(STEADY, waited, 0.5, marks)
        polled_at.append(waited)
    without_outlier = [1.09, 1.465, 2.03, 2.87, 4.1, 6.1]
    assert polled_at[0] == pytest.approx(0.836)
    assert polled_at[1:5] == pytest.approx(without_outlier[:4], abs=0.02)


def test_last_mark_is_approached_by_the_growing_series_or_the_gap_before_it() -> None:
    marks = Marks((1.0, 4.0, 40.0), 3)
    policy = PollPolicy(initial=0.25, growth=1.5, maximum=50.0, jitter=0.0)
    assert delay(policy, 3.9, 0.5, marks) == pytest.approx(0.1)
    assert delay(policy, 4.0, 0.5, marks) == 3.0  # the gap from 1 to 4 s
    assert delay(policy, 34.0, 0.5, marks) == pytest.approx(6.0)  # the mark
    assert delay(policy, 24.0, 0.5, marks) == pytest.approx(0.22 * 20)  # the growing series
    assert delay(policy, 24.0, 0.5, marks, stretch=2.0) == pytest.approx(2 * 0.22 * 20)
    assert delay(policy, 4.0, 0.5, Marks((4.0, 40.0), 2)) == 0.25
    assert delay(policy, 4.0, 0.5, Marks((1.0, 3.0, 4.0, 40.0), 4)) == 1.0
    assert delay(policy, 0.0, 0.5, Marks((40.0,), 1)) == 40.0


def test_minimum_is_kept_even_if_the_last_mark_is_bounded() -> None:
    assert delay(STEADY, 4.0, 0.5, Marks((4.0, 40.0), 2), 2.0) == 2.0
    assert delay(STEADY, 4.0, 0.5, Marks((4.0, 40.0), 2), 20.0) == 5.0


@given(policies, waits, draws, times)
def test_estimated_last_mark_never_makes_a_delay_longer_or_much_shorter(
    policy: PollPolicy, waited: float, draw: float, seconds: list[float]
) -> None:
    next_delay = delay(policy, waited, draw, Marks(tuple(seconds), len(seconds) - 1))
    without_history = delay(policy, waited, draw)
    assert next_delay >= without_history / 3
    if not any(mark > waited for mark in seconds[:-1]):
        assert next_delay <= without_history


def test_delays_grow_again_after_the_last_mark() -> None:
    assert delay(STEADY, 10.0, 0.5, Marks((10.0,), 1)) == 0.25
    assert delay(STEADY, 11.0, 0.5, Marks((10.0,), 1)) == 0.75
    assert delay(STEADY, 11.0, 0.5, Marks((10.0,), 1), stretch=3.0) == 2.25


def test_delay_after_an_estimated_mark_is_the_same_as_without_history() -> None:
    marks = Marks((1.0, 2.0), 1)
    assert delay(STEADY, 3.0, 0.5, marks) == 1.75
    assert delay(STEADY, 3.0, 0.5, marks, stretch=2.0) == 3.5


def test_mark_closer_than_the_minimum_is_polled_after_the_minimum() -> None:
    assert delay(PollPolicy(), 3.0, 0.5, Marks((2.0, 3.1), 2), minimum=0.6) == 0.6


def test_mark_closer_than_the_minimum_is_left_out() -> None:
    assert delay(STEADY, 0.0, 0.5, Marks((1.0, 2.0, 3.0), 3), minimum=1.0) == 2.0
    assert delay(STEADY, 0.0, 0.5, Marks((1.0, 2.0, 3.0), 3), minimum=0.99) == 1.0


def test_no_poll_comes_before_an_observed_mark() -> None:
    marks = Marks((2.0, 9.0), 1)
    assert delay(STEADY, 0.0, 0.5, marks) == 2.0


def test_incomplete_mark_that_is_very_close_is_left_out() -> None:
    marks = Marks((3.5, 9.0, 20.0), 2)
    assert delay(STEADY, 3.0, 0.5, marks) == pytest.approx(5.0)
    assert delay(STEADY, 2.6, 0.5, marks) == pytest.approx(0.9)
    # While the budget is short, each mark is worth a poll.
    assert delay(STEADY, 3.0, 0.5, marks, stretch=2.0) == 0.5


def test_short_budget_waits_for_an_estimated_end() -> None:
    marks = Marks((1.0, 9.0), 1)
    assert delay(STEADY, 1.0, 0.5, marks) == 0.75
    assert delay(STEADY, 1.0, 0.5, marks, stretch=2.0) == 8.0


@pytest.mark.parametrize(("stretch", "longest"), [(0.5, 5.0), (1.0, 5.0), (3.0, 15.0)])
def test_longest_delay_is_stretched_too(stretch: float, longest: float) -> None:
    assert delay(STEADY, 0.0, 0.5, Marks((100.0,), 1), stretch=stretch) == longest
    assert delay(STEADY, 0.0, 0.5, minimum=100.0, stretch=stretch) == longest
    assert delay(STEADY, 1000.0, 0.5, stretch=stretch) == stretch * 5.0
