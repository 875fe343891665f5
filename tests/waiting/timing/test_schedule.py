"""The ends of waits, the polls that cost the least, and the delays between polls."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import PollPolicy
from neonctl_async.waiting.timing.forecast import predict
from neonctl_async.waiting.timing.schedule import (
    CHOICES,
    GRID,
    Group,
    cheapest_poll,
    ends_of,
    growing_delay,
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
STEADY = PollPolicy(initial=0.25, growth=1.5, maximum=5.0, jitter=0.0)


def group(
    *seconds: float, operations: int = 1, started_at: float = 0.0, pending_at: float = 0.0
) -> Group:
    """Return pending operations of an action with these known durations."""
    return Group(predict(seconds), operations, started_at, max(pending_at, started_at))


EVEN = [1 + n / 10 for n in range(41)]


@pytest.mark.parametrize(("end", "late"), [(0.5, 0.03), (4.0, 0.1), (5.0, 0.12), (90.0, 0.12)])
def test_ends_of_a_constant_duration_come_just_after_it(end: float, late: float) -> None:
    assert ends_of([group(*[end] * 10)]) == pytest.approx([end + late] * GRID)


def test_ends_are_equally_probable() -> None:
    ends = ends_of([group(*EVEN)])
    assert ends == pytest.approx([1.0 + 4.0 * (n + 0.5) / GRID + 0.1 for n in range(GRID)], abs=0.2)


def test_wait_that_is_still_pending_ends_like_those_that_took_longer() -> None:
    ends = ends_of([group(*EVEN, pending_at=4.0)])
    assert ends == pytest.approx([4.0 + (n + 0.5) / GRID + 0.1 for n in range(GRID)], abs=0.1)


def test_ends_of_many_operations_are_those_of_the_last_one() -> None:
    assert ends_of([group(*EVEN, operations=50)])[0] > 4.0


def test_ends_of_operations_of_different_actions_are_those_of_the_slowest_one() -> None:
    fast, slow = group(*[1.0] * 10), group(*[3.0] * 10)
    assert ends_of([fast, slow]) == pytest.approx(ends_of([slow]))
    early = group(*[3.0] * 10, started_at=-2.5)
    assert ends_of([fast, early])[-1] == pytest.approx(1.04)


def test_poll_comes_after_a_cluster_and_not_in_between() -> None:
    ends = [1.0 + n / 100 for n in range(GRID // 2)] + [8.0 + n / 100 for n in range(GRID // 2)]
    assert cheapest_poll(ends, 0.5, 0.0).at == pytest.approx(1.07)
    assert cheapest_poll([*ends[GRID // 2 :]] * 2, 0.5, 2.0).at == pytest.approx(8.07)


def test_higher_price_means_fewer_and_later_polls() -> None:
    ends = [10.0 * (n + 1) / GRID for n in range(GRID)]
    polls = [cheapest_poll(ends, price, 0.0) for price in (0.01, 0.1, 1.0, 10.0)]
    assert [poll.at for poll in polls] == sorted(poll.at for poll in polls)
    assert polls[0].at == ends[0]
    assert polls[-1] == (10.0, 1.0)
    assert [poll.polls for poll in polls] == sorted((poll.polls for poll in polls), reverse=True)


def test_more_waits_bring_the_poll_of_a_project_forward() -> None:
    ends = [10.0 * (n + 1) / GRID for n in range(GRID)]
    assert cheapest_poll(ends * 20, 0.5, 0.0).at < cheapest_poll(ends, 0.5, 0.0).at


def test_ends_that_have_passed_are_polled_at_once() -> None:
    assert cheapest_poll([1.0] * GRID, 0.5, 3.0).at == 3.0


@given(
    st.lists(st.floats(0, 100), min_size=1, max_size=200),
    st.floats(0.001, 100),
    st.floats(0, 100),
)
def test_cheapest_poll_is_one_of_the_ends_and_none_is_cheaper(
    ends: list[float], price: float, now: float
) -> None:
    poll = cheapest_poll(ends, price, now)
    assert now <= poll.at <= max(now, *ends)
    assert 0 < poll.polls <= CHOICES


@given(st.lists(st.floats(0, 50), min_size=1, max_size=GRID), st.floats(0.01, 5))
def test_cheapest_poll_is_that_of_the_best_of_all_plans(ends: list[float], price: float) -> None:
    """Compare with all ways to divide the ends among polls."""
    times = sorted(ends)

    def cost(first: int) -> tuple[float, float]:
        """Return the least cost from an end on, and the time of the first poll."""
        if first == len(times):
            return 0.0, math.inf
        chance = (len(times) - first) / GRID
        return min(
            (
                sum(times[last] - one for one in times[first : last + 1]) / GRID
                + chance * price
                + cost_from[last + 1],
                times[last],
            )
            for last in range(first, len(times))
        )

    cost_from = [0.0] * (len(times) + 1)
    for first in range(len(times) - 1, -1, -1):
        cost_from[first] = cost(first)[0]
    at = cheapest_poll(times, price, 0.0).at
    place = max(n for n, one in enumerate(times) if one == at)
    late = sum(at - one for one in times[: place + 1]) / GRID
    chosen = late + len(times) / GRID * price + cost_from[place + 1]
    assert chosen == pytest.approx(cost_from[0], abs=1e-6)


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


@given(st.floats(0.01, 60), waits, draws)
def test_constant_interval_does_not_grow(interval: float, waited: float, draw: float) -> None:
    assert growing_delay(PollPolicy.constant(interval), waited, draw) == interval


@pytest.mark.parametrize(("draw", "expected"), [(0.0, 0.2), (0.5, 0.25), (0.75, 0.275), (1.0, 0.3)])
def test_jitter_spreads_the_delay_in_both_directions(draw: float, expected: float) -> None:
    policy = PollPolicy(initial=0.25, growth=1.5, maximum=5.0, jitter=0.2)
    assert growing_delay(policy, 0.0, draw) == pytest.approx(expected)
    assert growing_delay(policy, 1000.0, draw) == pytest.approx(min(20 * expected, 5.0))
