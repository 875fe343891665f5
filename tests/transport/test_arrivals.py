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


def test_seconds_before_the_first_call_count() -> None:
    assert each_second(3, 3, 3).per_second(3.0) == 0
    assert each_second(*[3] * 5).per_second(5.0) == 1.5
    assert each_second(*[3] * 6).per_second(6.0) == 3


def test_calls_of_the_present_second_do_not_count_yet() -> None:
    arrivals = each_second(0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 100)
    assert arrivals.per_second(10.9) == 1
    assert arrivals.per_second(11.0) == 2


def test_rate_falls_after_the_last_call() -> None:
    arrivals = each_second(*[4] * 20)
    rates = [arrivals.per_second(now) for now in (20.0, 24.9, 25.0, 26.0, 1000.0)]
    assert rates == [4, 4, 2, 0, 0]


def test_call_in_a_new_second_keeps_the_last_ten() -> None:
    arrivals = each_second(*[2] * 5, *[0] * 5, 1)
    assert arrivals.per_second(10.5) == 1


@given(st.lists(st.floats(0, 100), max_size=200).map(sorted), st.floats(0, 30))
def test_rate_is_that_of_all_calls_of_the_last_whole_seconds(
    times: list[float], later: float
) -> None:
    now = (times[-1] if times else 0.0) + later
    whole = range(int(now) - SECONDS, int(now))
    counts = sorted(sum(int(time) == second for time in times) for second in whole)
    expected = (counts[SECONDS // 2 - 1] + counts[SECONDS // 2]) / 2
    assert arrivals_of(*times).per_second(now) == pytest.approx(expected)
