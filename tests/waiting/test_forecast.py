from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.waiting.forecast import ENOUGH, LOOKS, REMEMBERED, Forecast

durations = st.lists(st.floats(0, 1000), min_size=ENOUGH, max_size=100)


def learned(*seconds: float) -> Forecast:
    forecast = Forecast()
    for one in seconds:
        forecast.note("create_branch", one)
    return forecast


def test_a_kind_is_known_once_enough_were_seen_and_that_is_news_once() -> None:
    forecast = Forecast()
    news = [forecast.note("create_branch", 1.0) for _ in range(ENOUGH + 3)]
    assert news == [False] * (ENOUGH - 1) + [True] + [False] * 3
    assert not forecast.is_empty


def test_what_was_never_seen_has_no_marks() -> None:
    assert Forecast().is_empty
    assert learned(*[1.0] * 10).marks("start_compute") == ()


def test_a_duration_that_never_varies_takes_one_look_just_after_it() -> None:
    [mark] = learned(*[1.0] * 10).marks("create_branch")
    assert mark == pytest.approx(1.04)


def test_a_range_of_durations_is_divided_into_equal_shares() -> None:
    marks = learned(*[1 + n / 10 for n in range(30)]).marks("create_branch")
    assert marks == pytest.approx([1.9 * 1.02 + 0.02, 2.9 * 1.02 + 0.02, 3.9 * 1.02 + 0.02])


def test_old_durations_are_forgotten() -> None:
    forecast = learned(*[60.0] * 10, *[1.0] * REMEMBERED)
    assert max(forecast.marks("create_branch")) < 2


@given(durations)
def test_marks_rise_and_the_last_is_after_all_that_was_seen(seconds: list[float]) -> None:
    marks = learned(*seconds).marks("create_branch")
    assert 1 <= len(marks) <= LOOKS
    assert list(marks) == sorted(marks)
    assert marks[-1] > max(seconds[-REMEMBERED:])


@given(durations)
def test_looks_are_never_close_together(seconds: list[float]) -> None:
    marks = learned(*seconds).marks("create_branch")
    for earlier, later in pairwise(marks):
        assert later - earlier >= 0.1 * later - 1e-9
