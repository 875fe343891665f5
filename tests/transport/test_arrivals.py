"""The rate of calls. Times are numbers."""

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.transport.arrivals import Arrivals


def rate_after(times: list[float], now: float) -> float:
    arrivals = Arrivals()
    for time in times:
        arrivals.note(time)
    return arrivals.per_second(now)


def test_steady_calls_have_their_rate() -> None:
    calls = [1000.0 + number / 4 for number in range(41)]
    assert rate_after(calls, 1010.0) == 4
    assert rate_after(calls, 1010.9) == 4


def test_burst_does_not_count() -> None:
    assert rate_after([1000.0] * 500 + [1001.0] * 500, 1002.0) == 0


@pytest.mark.parametrize(("seconds", "rate"), [(5, 1), (6, 2), (10, 2)])
def test_rate_is_the_median_of_the_last_10_seconds(seconds: int, rate: float) -> None:
    calls = [float(second) for second in range(seconds) for _ in range(2)]
    assert rate_after(calls, 10.0) == rate


@given(st.lists(st.floats(0, 40)), st.floats(0, 40))
def test_only_whole_seconds_before_now_count(times: list[float], later: float) -> None:
    now = max(times, default=0.0) + later
    last = int(now)
    counts = [sum(int(time) == second for time in times) for second in range(last - 10, last)]
    assert rate_after(sorted(times), now) == median(counts)
