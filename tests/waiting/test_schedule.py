import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async import PollPolicy
from neonctl_async.waiting.forecast import Prediction
from neonctl_async.waiting.schedule import delay

policies = st.builds(
    PollPolicy,
    initial=st.floats(0.01, 5),
    growth=st.floats(1, 3),
    maximum=st.floats(0.01, 60),
    jitter=st.floats(0, 0.99),
)
waits = st.floats(0, 1e6)
chances = st.floats(0, 1)
quantiles = st.lists(st.floats(0.01, 100), min_size=1, max_size=3).map(sorted)


@given(policies, waits, chances)
def test_a_delay_is_never_zero_and_never_above_the_maximum(
    policy: PollPolicy, waited: float, chance: float
) -> None:
    assert 0 < delay(policy, waited, chance) <= policy.maximum


@given(policies, waits, waits)
def test_delays_grow_with_the_time_waited(policy: PollPolicy, one: float, other: float) -> None:
    assert delay(policy, min(one, other), 0.5) <= delay(policy, max(one, other), 0.5)


@given(policies, waits, chances)
def test_jitter_spreads_a_delay_by_its_share(
    policy: PollPolicy, waited: float, chance: float
) -> None:
    middle = delay(policy, waited, 0.5)
    assert abs(delay(policy, waited, chance) - middle) <= middle * (policy.jitter + 1e-9)


def test_without_jitter_the_delays_are_a_geometric_series() -> None:
    policy = PollPolicy(initial=0.25, growth=1.5, maximum=5.0, jitter=0.0)
    waited = 0.0
    delays: list[float] = []
    for _ in range(10):
        delays.append(delay(policy, waited, chance=0.3))
        waited += delays[-1]
    assert delays[:4] == [0.25, 0.375, 0.5625, 0.84375]
    assert delays[-2:] == [5.0, 5.0]


@given(st.floats(0.01, 60), waits, chances)
def test_a_constant_interval_stays(interval: float, waited: float, chance: float) -> None:
    assert delay(PollPolicy.constant(interval), waited, chance) == interval


@given(policies, waits, chances, quantiles, st.floats(0, 100))
def test_a_known_kind_is_looked_at_at_its_next_mark(
    policy: PollPolicy, waited: float, chance: float, quantiles: list[float], least: float
) -> None:
    next_delay = delay(policy, waited, chance, Prediction(tuple(quantiles)), least)
    assert 0 < next_delay <= policy.maximum
    ahead = [mark for mark in quantiles if mark > waited + least]
    if ahead:
        assert next_delay == pytest.approx(min(ahead[0] - waited, policy.maximum))
    else:
        assert next_delay >= min(least, policy.maximum)


@given(policies, waits, chances, quantiles)
def test_an_end_that_is_but_expected_makes_no_look_later_and_none_much_sooner(
    policy: PollPolicy, waited: float, chance: float, quantiles: list[float]
) -> None:
    next_delay = delay(policy, waited, chance, Prediction(tuple(quantiles), is_complete=False))
    blind = delay(policy, waited, chance)
    assert next_delay >= blind / 3
    if not any(mark > waited for mark in quantiles[:-1]):
        assert next_delay <= blind


def test_past_the_last_mark_looks_grow_rarer_from_there() -> None:
    policy = PollPolicy(jitter=0.0)
    known = Prediction((10.0,))
    assert delay(policy, 10.0, 0.5, known) == 0.25
    assert delay(policy, 11.0, 0.5, known) == 0.75


def test_past_an_expected_end_looks_come_as_if_nothing_were_known() -> None:
    policy = PollPolicy(jitter=0.0)
    assert delay(policy, 3.0, 0.5, Prediction((1.0, 2.0), is_complete=False)) == 1.75


def test_a_last_mark_that_is_too_near_is_looked_at_a_little_later() -> None:
    assert delay(PollPolicy(), 3.0, 0.5, Prediction((2.0, 3.1)), least=0.6) == 0.6


def test_before_a_mark_by_which_some_ended_no_look_comes_though_others_go_on() -> None:
    known = Prediction((2.0, 9.0), is_complete=False)
    assert delay(PollPolicy(jitter=0.0), 0.0, 0.5, known) == 2.0
