from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.waiting.forecast import ENOUGH, POLLS, SAMPLE, Forecast, Observation

durations = st.lists(st.floats(0, 1000), min_size=ENOUGH, max_size=100)
KIND = "create_branch"
NOW = 10_000.0


def follow(forecast: Forecast, began: float = NOW) -> Observation:
    one = forecast.follow(KIND, began)
    assert one is not None
    return one


def learned(*seconds: float, pending_for: tuple[float, ...] = ()) -> Forecast:
    """A forecast that has seen operations of these durations, and some that have not ended."""
    forecast = Forecast()
    for age in pending_for:
        forecast.note_pending(follow(forecast, NOW - age), NOW)
    for one in seconds:
        forecast.note_end(follow(forecast), one)
    forecast.update(NOW)
    return forecast


def test_a_kind_is_known_once_enough_were_seen_and_that_is_news_once() -> None:
    forecast = Forecast()
    news: list[bool] = []
    for _ in range(ENOUGH + 3):
        forecast.note_end(follow(forecast), 1.0)
        news.append(forecast.update(NOW))
    assert news == [False] * (ENOUGH - 1) + [True] + [False] * 3
    assert not forecast.is_empty


@pytest.mark.parametrize("usual", [1.0, 60.0])
def test_it_is_news_when_operations_begin_to_take_longer(usual: float) -> None:
    forecast = learned(*[usual] * 10)
    forecast.note_end(follow(forecast), 1.04 * usual)
    assert not forecast.update(NOW)
    forecast.note_end(follow(forecast), 1.07 * usual)
    assert forecast.update(NOW)


def test_it_is_news_when_operations_go_on_for_longer() -> None:
    forecast = learned(*[1.0] * 10)
    for _ in range(10):
        forecast.note_pending(follow(forecast, NOW - 5.0), NOW)
    assert forecast.update(NOW)


def test_what_was_never_seen_has_no_marks() -> None:
    assert Forecast().is_empty
    assert learned(*[1.0] * 10).prediction("start_compute").quantiles == ()


def test_a_duration_that_never_varies_takes_one_look_just_after_it() -> None:
    [mark] = learned(*[1.0] * 10).prediction(KIND).quantiles
    assert mark == pytest.approx(1.04)


def test_a_range_of_durations_is_divided_into_equal_shares() -> None:
    quantiles, is_complete = learned(*[1 + n / 10 for n in range(40)]).prediction(KIND)
    assert quantiles == pytest.approx([within * 1.02 + 0.02 for within in (1.9, 2.9, 3.9, 4.9)])
    assert is_complete


def test_those_that_go_on_are_expected_to_end_at_the_pace_of_the_others() -> None:
    # 10 of 40 have ended between 1 and 2 s: the rest should take until 5 s.
    forecast = learned(*[1 + n / 9 for n in range(10)], pending_for=(2.0,) * 30)
    quantiles, is_complete = forecast.prediction(KIND)
    assert quantiles == pytest.approx([2.0 * 1.02 + 0.02, 5.0 * 1.02 + 0.02])
    assert not is_complete


def test_after_a_gap_those_that_go_on_are_expected_to_last_as_long_again() -> None:
    forecast = learned(*[1 + n / 9 for n in range(10)], pending_for=(5.0, 5.0))
    assert forecast.prediction(KIND).quantiles[-1] == pytest.approx(8.0 * 1.02 + 0.02)


@pytest.mark.parametrize(("pending", "is_complete"), [(1, True), (2, False)])
def test_where_nine_in_ten_have_ended_the_rest_are_exceptions(
    pending: int, is_complete: bool
) -> None:
    durations = [1 + n / 9 for n in range(10 - pending)]
    prediction = learned(*durations, pending_for=(5.0,) * pending).prediction(KIND)
    assert prediction.is_complete is is_complete
    if is_complete:
        assert prediction.quantiles[-1] == pytest.approx(durations[-1] * 1.02 + 0.02)


@pytest.mark.parametrize(("unsure", "is_known"), [(40, False), (5, False), (4, True)])
def test_ends_that_few_can_speak_of_are_not_gone_by(unsure: int, is_known: bool) -> None:
    forecast = Forecast()
    for _ in range(unsure):
        forecast.note_pending(follow(forecast, NOW - 1.6), NOW - 1.1)
    for seconds in (1.0, 1.1, 1.2, 1.3, 1.4, 1.5):
        forecast.note_end(follow(forecast), seconds)
    assert forecast.update(NOW) is is_known
    # They may have ended like the 6: they were looked at last when they were 0.5 s old.
    assert forecast.is_empty is not is_known


def test_those_that_began_a_short_while_ago_take_nothing_from_what_is_known() -> None:
    alone, among_others = learned(*[1.0] * 6), learned(*[1.0] * 6, pending_for=(0.5,) * 40)
    assert among_others.prediction(KIND) == alone.prediction(KIND)


def test_old_durations_are_forgotten() -> None:
    forecast = learned(*[60.0] * 10, *[1.0] * SAMPLE)
    assert max(forecast.prediction(KIND).quantiles) < 2


def test_an_operation_that_was_given_up_took_longer_than_it_was_waited_for() -> None:
    forecast = learned(*[1.0] * 10)
    for _ in range(10):
        stuck = follow(forecast, NOW - 5.0)
        forecast.note_pending(stuck, NOW)
        forecast.forget(stuck)
    forecast.note_end(follow(forecast), 1.0)
    forecast.update(NOW)
    quantiles, is_complete = forecast.prediction(KIND)
    assert quantiles == pytest.approx([1.04, 9.0 * 1.02 + 0.02])
    assert not is_complete


def test_what_was_given_up_is_forgotten_in_time() -> None:
    forecast = learned(*[1.0] * 10)
    stuck = follow(forecast, NOW - 5.0)
    forecast.note_pending(stuck, NOW)
    forecast.forget(stuck)
    for _ in range(SAMPLE):
        forecast.note_end(follow(forecast), 1.0)
    forecast.update(NOW)
    assert forecast.prediction(KIND).is_complete


def test_of_a_great_many_a_sample_is_followed_spread_over_all() -> None:
    forecast = Forecast()
    observation = [forecast.follow(KIND, NOW) for _ in range(10 * SAMPLE)]
    begun = [(place + 1) / 256 for place in range(10 * SAMPLE)]
    for one, seconds in zip(observation, begun, strict=True):
        if one is not None:
            forecast.note_end(one, seconds)
    forecast.update(NOW)
    quantiles = forecast.prediction(KIND).quantiles
    assert quantiles == pytest.approx([2.5, 5.0, 7.5, 10.0], rel=0.1)


def test_a_sample_that_is_full_of_stuck_ones_makes_room() -> None:
    forecast = Forecast()
    for _ in range(SAMPLE):
        follow(forecast)
    taken = [forecast.follow(KIND, NOW) for _ in range(SAMPLE)]
    assert sum(one is not None for one in taken) >= SAMPLE // 2


@given(durations, st.lists(st.floats(0, 1000), max_size=100))
def test_marks_rise_and_the_last_is_after_all_that_was_seen(
    seconds: list[float], pending_for: list[float]
) -> None:
    forecast = learned(*seconds, pending_for=tuple(pending_for))
    quantiles, is_complete = forecast.prediction(KIND)
    assert len(quantiles) <= POLLS
    assert list(quantiles) == sorted(quantiles)
    if quantiles and is_complete:
        assert quantiles[-1] > max(seconds)
    elif quantiles:
        assert quantiles[-1] > max(pending_for)


@given(durations)
def test_without_any_that_go_on_the_marks_are_complete(seconds: list[float]) -> None:
    quantiles, is_complete = learned(*seconds).prediction(KIND)
    assert is_complete
    assert quantiles[-1] == pytest.approx(max(seconds) * 1.02 + 0.02)


@given(durations)
def test_marks_are_never_close_together(seconds: list[float]) -> None:
    for earlier, later in pairwise(learned(*seconds).prediction(KIND).quantiles):
        assert later - earlier >= 0.1 * later - 1e-9


def test_after_a_great_many_each_is_followed_again() -> None:
    forecast = Forecast()
    for one in [forecast.follow(KIND, NOW) for _ in range(10 * SAMPLE)]:
        if one is not None:
            forecast.forget(one)
    for _ in range(5):
        follow(forecast)


def test_it_is_news_when_operations_no_longer_take_as_long() -> None:
    forecast = learned(*[60.0] * 10)
    for _ in range(SAMPLE):
        forecast.note_end(follow(forecast), 1.0)
    assert forecast.update(NOW)


def test_kinds_that_are_news_at_once_are_all_taken_in() -> None:
    forecast = Forecast()
    kinds = (KIND, "start_compute", "apply_config")
    for action in kinds:
        for _ in range(ENOUGH):
            one = forecast.follow(action, NOW)
            assert one is not None
            forecast.note_end(one, 1.0)
    assert forecast.update(NOW)
    assert all(forecast.prediction(action).quantiles for action in kinds)
