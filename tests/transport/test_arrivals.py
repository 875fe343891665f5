import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.transport.arrivals import SECONDS, Arrivals


def arrivals_of(*times: float) -> Arrivals:
    arrivals = Arrivals()
    for time in times:
        arrivals.note(time)
    return arrivals


def each_second(*counts: int, start: int = 0) -> Arrivals:
    """Return calls of which this many come in each second."""
    return arrivals_of(
        *(start + second + 0.5 for second, count in enumerate(counts) for _ in range(count))
    )


def test_rate_without_calls_is_zero() -> None:
    assert Arrivals().per_second(1000.0) == 0


def test_steady_calls_have_their_rate() -> None:
    assert each_second(*[3] * SECONDS).per_second(float(SECONDS)) == 3
    assert each_second(*[3] * 50, start=100).per_second(150.9) == 3


def test_burst_does_not_count() -> None:
    arrivals = each_second(600, 600, 600, *[0] * 7)
    assert arrivals.per_second(10.0) == 0


def test_rate_is_the_median_of_the_whole_seconds() -> None:
    assert each_second(1, 2, 3, 4, 5, 6, 7, 8, 9, 10).per_second(10.0) == 5.5


def test_seconds_without_calls_count() -> None:
    calls = [float(second) for second in range(10) for _ in range(2)]
    assert [rate_after(calls, now) for now in (14.0, 15.0, 16.0, 500.0)] == [2, 1, 0, 0]


@given(st.lists(st.floats(0, 40)), st.floats(0, 40))
def test_only_whole_seconds_before_now_count(times: list[float], later: float) -> None:
    now = max(times, default=0.0) + later
    last = int(now)
    counts = [sum(int(time) == second for time in times) for second in range(last - 10, last)]
    assert rate_after(sorted(times), now) == median(counts)
