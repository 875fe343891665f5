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
draws = st.floats(0, 1)
quantiles = st.lists(st.floats(0.01, 100), min_size=1, max_size=3).map(sorted)


@given(policies, waits, draws)
def test_delay_is_positive_and_at_most_the_maximum(
    policy: PollPolicy, waited: float, draw: float
) -> None:
    assert 0 < delay(policy, waited, draw) <= policy.maximum


@given(policies, waits, waits)
def test_delays_grow_with_the_time_waited(policy: PollPolicy, first: float, second: float) -> None:
    assert delay(policy, min(first, second), 0.5) <= delay(policy, max(first, second), 0.5)


@given(policies, waits, draws)
def test_jitter_changes_a_delay_by_at_most_its_share(
    policy: PollPolicy, waited: float, draw: float
) -> None:
    mean = delay(policy, waited, 0.5)
    assert abs(delay(policy, waited, draw) - mean) <= mean * (policy.jitter + 1e-9)


def test_delays_without_jitter_are_a_geometric_series() -> None:
    policy = PollPolicy(initial=0.25, growth=1.5, maximum=5.0, jitter=0.0)
    waited = 0.0
    delays: list[float] = []
    for _ in range(10):
        delays.append(delay(policy, waited, draw=0.3))
        waited += delays[-1]
    assert delays[:4] == [0.25, 0.375, 0.5625, 0.84375]
    assert delays[-2:] == [5.0, 5.0]


@given(st.floats(0.01, 60), waits, draws)
def test_constant_interval_does_not_grow(interval: float, waited: float, draw: float) -> None:
    assert delay(PollPolicy.constant(interval), waited, draw) == interval


@given(policies, waits, draws, quantiles, st.floats(0, 100))
def test_next_poll_comes_at_the_next_quantile(
    policy: PollPolicy, waited: float, draw: float, quantiles: list[float], minimum: float
) -> None:
    next_delay = delay(policy, waited, draw, Prediction(tuple(quantiles)), minimum)
    assert 0 < next_delay <= policy.maximum
    later = [quantile for quantile in quantiles if quantile > waited + minimum]
    if later:
        assert next_delay == pytest.approx(min(later[0] - waited, policy.maximum))
    else:
        assert next_delay >= min(minimum, policy.maximum)


@given(policies, waits, draws, quantiles)
def test_estimated_last_quantile_never_makes_a_delay_longer_or_much_shorter(
    policy: PollPolicy, waited: float, draw: float, quantiles: list[float]
) -> None:
    next_delay = delay(policy, waited, draw, Prediction(tuple(quantiles), is_complete=False))
    without_history = delay(policy, waited, draw)
    assert next_delay >= without_history / 3
    if not any(quantile > waited for quantile in quantiles[:-1]):
        assert next_delay <= without_history


def test_delays_grow_again_after_the_last_quantile() -> None:
    policy = PollPolicy(jitter=0.0)
    prediction = Prediction((10.0,))
    assert delay(policy, 10.0, 0.5, prediction) == 0.25
    assert delay(policy, 11.0, 0.5, prediction) == 0.75


def test_delay_after_an_estimated_quantile_is_the_same_as_without_history() -> None:
    policy = PollPolicy(jitter=0.0)
    assert delay(policy, 3.0, 0.5, Prediction((1.0, 2.0), is_complete=False)) == 1.75


def test_quantile_closer_than_the_minimum_is_polled_after_the_minimum() -> None:
    assert delay(PollPolicy(), 3.0, 0.5, Prediction((2.0, 3.1)), minimum=0.6) == 0.6


def test_no_poll_comes_before_an_observed_quantile() -> None:
    prediction = Prediction((2.0, 9.0), is_complete=False)
    assert delay(PollPolicy(jitter=0.0), 0.0, 0.5, prediction) == 2.0
