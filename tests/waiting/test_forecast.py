from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.waiting.forecast import (
    MIN_DURATIONS,
    QUANTILES,
    SAMPLE_SIZE,
    Forecast,
    Observation,
)

durations = st.lists(st.floats(0, 1000), min_size=MIN_DURATIONS, max_size=100)
ACTION = "create_branch"
NOW = 10_000.0


def observe(forecast: Forecast, started_at: float = NOW) -> Observation:
    observation = forecast.observe(ACTION, started_at)
    assert observation is not None
    return observation


def forecast_of(*seconds: float, pending_for: tuple[float, ...] = ()) -> Forecast:
    """Return a forecast after operations of these durations, and some that are pending."""
    forecast = Forecast()
    for age in pending_for:
        forecast.note_pending(observe(forecast, NOW - age), NOW)
    for duration in seconds:
        forecast.note_finished(observe(forecast), duration)
    forecast.update(NOW)
    return forecast


def test_five_durations_make_a_prediction_that_is_reported_once() -> None:
    forecast = Forecast()
    changes: list[bool] = []
    for _ in range(MIN_DURATIONS + 3):
        forecast.note_finished(observe(forecast), 1.0)
        changes.append(forecast.update(NOW))
    assert changes == [False] * (MIN_DURATIONS - 1) + [True] + [False] * 3
    assert not forecast.is_empty


@pytest.mark.parametrize("usual", [1.0, 60.0])
def test_longer_durations_are_reported(usual: float) -> None:
    forecast = forecast_of(*[usual] * 10)
    forecast.note_finished(observe(forecast), 1.04 * usual)
    assert not forecast.update(NOW)
    forecast.note_finished(observe(forecast), 1.07 * usual)
    assert forecast.update(NOW)


def test_longer_pending_operations_are_reported() -> None:
    forecast = forecast_of(*[1.0] * 10)
    for _ in range(10):
        forecast.note_pending(observe(forecast, NOW - 5.0), NOW)
    assert forecast.update(NOW)


def test_unobserved_action_has_no_quantiles() -> None:
    assert Forecast().is_empty
    assert forecast_of(*[1.0] * 10).prediction("start_compute").quantiles == ()


def test_constant_duration_has_one_quantile_just_after_it() -> None:
    [quantile] = forecast_of(*[1.0] * 10).prediction(ACTION).quantiles
    assert quantile == pytest.approx(1.04)


def test_varying_durations_are_divided_into_four_equal_shares() -> None:
    quantiles, is_complete = forecast_of(*[1 + n / 10 for n in range(40)]).prediction(ACTION)
    assert quantiles == pytest.approx([seconds * 1.02 + 0.02 for seconds in (1.9, 2.9, 3.9, 4.9)])
    assert is_complete


def test_pending_operations_are_predicted_at_the_pace_of_finished_ones() -> None:
    # 10 of 40 took 1 to 2 s, so the rest should take until 5 s.
    forecast = forecast_of(*[1 + n / 9 for n in range(10)], pending_for=(2.0,) * 30)
    quantiles, is_complete = forecast.prediction(ACTION)
    assert quantiles == pytest.approx([2.0 * 1.02 + 0.02, 5.0 * 1.02 + 0.02])
    assert not is_complete


def test_pending_operations_are_predicted_no_sooner_than_the_last_gap() -> None:
    forecast = forecast_of(*[1 + n / 9 for n in range(10)], pending_for=(5.0, 5.0))
    assert forecast.prediction(ACTION).quantiles[-1] == pytest.approx(8.0 * 1.02 + 0.02)


@pytest.mark.parametrize(("pending", "is_complete"), [(1, True), (2, False)])
def test_prediction_is_complete_if_nine_in_ten_are_finished(
    pending: int, is_complete: bool
) -> None:
    durations = [1 + n / 9 for n in range(10 - pending)]
    prediction = forecast_of(*durations, pending_for=(5.0,) * pending).prediction(ACTION)
    assert prediction.is_complete is is_complete
    if is_complete:
        assert prediction.quantiles[-1] == pytest.approx(durations[-1] * 1.02 + 0.02)


@pytest.mark.parametrize(("unknown", "is_predicted"), [(40, False), (5, False), (4, True)])
def test_durations_are_ignored_while_most_operations_are_in_an_unknown_state(
    unknown: int, is_predicted: bool
) -> None:
    forecast = Forecast()
    for _ in range(unknown):
        forecast.note_pending(observe(forecast, NOW - 1.6), NOW - 1.1)
    for seconds in (1.0, 1.1, 1.2, 1.3, 1.4, 1.5):
        forecast.note_finished(observe(forecast), seconds)
    assert forecast.update(NOW) is is_predicted
    # They may be finished too: their last poll was 0.5 s after their start.
    assert forecast.is_empty is not is_predicted


def test_recently_started_operations_do_not_change_the_prediction() -> None:
    alone, with_others = forecast_of(*[1.0] * 6), forecast_of(*[1.0] * 6, pending_for=(0.5,) * 40)
    assert with_others.prediction(ACTION) == alone.prediction(ACTION)


def test_old_durations_are_forgotten() -> None:
    forecast = forecast_of(*[60.0] * 10, *[1.0] * SAMPLE_SIZE)
    assert max(forecast.prediction(ACTION).quantiles) < 2


def test_abandoned_operation_counts_as_longer_than_its_wait() -> None:
    forecast = forecast_of(*[1.0] * 10)
    for _ in range(10):
        stuck = observe(forecast, NOW - 5.0)
        forecast.note_pending(stuck, NOW)
        forecast.abandon(stuck)
    forecast.note_finished(observe(forecast), 1.0)
    forecast.update(NOW)
    quantiles, is_complete = forecast.prediction(ACTION)
    assert quantiles == pytest.approx([1.04, 9.0 * 1.02 + 0.02])
    assert not is_complete


def test_abandoned_operations_are_forgotten_like_other_durations() -> None:
    forecast = forecast_of(*[1.0] * 10)
    stuck = observe(forecast, NOW - 5.0)
    forecast.note_pending(stuck, NOW)
    forecast.abandon(stuck)
    for _ in range(SAMPLE_SIZE):
        forecast.note_finished(observe(forecast), 1.0)
    forecast.update(NOW)
    assert forecast.prediction(ACTION).is_complete


def test_sample_is_spread_over_all_operations() -> None:
    forecast = Forecast()
    observations = [forecast.observe(ACTION, NOW) for _ in range(10 * SAMPLE_SIZE)]
    for number, observation in enumerate(observations, 1):
        if observation is not None:
            forecast.note_finished(observation, number / 256)
    forecast.update(NOW)
    quantiles = forecast.prediction(ACTION).quantiles
    assert quantiles == pytest.approx([2.5, 5.0, 7.5, 10.0], rel=0.1)


def test_sample_full_of_stuck_operations_accepts_new_ones() -> None:
    forecast = Forecast()
    for _ in range(SAMPLE_SIZE):
        observe(forecast)
    newer = [forecast.observe(ACTION, NOW) for _ in range(SAMPLE_SIZE)]
    assert sum(observation is not None for observation in newer) >= SAMPLE_SIZE // 2


@given(durations, st.lists(st.floats(0, 1000), max_size=100))
def test_quantiles_ascend_and_the_last_is_later_than_all_durations(
    seconds: list[float], pending_for: list[float]
) -> None:
    forecast = forecast_of(*seconds, pending_for=tuple(pending_for))
    quantiles, is_complete = forecast.prediction(ACTION)
    assert len(quantiles) <= QUANTILES
    assert list(quantiles) == sorted(quantiles)
    if quantiles and is_complete:
        assert quantiles[-1] > max(seconds)
    elif quantiles:
        assert quantiles[-1] > max(pending_for)


@given(durations)
def test_prediction_without_pending_operations_is_complete(seconds: list[float]) -> None:
    quantiles, is_complete = forecast_of(*seconds).prediction(ACTION)
    assert is_complete
    assert quantiles[-1] == pytest.approx(max(seconds) * 1.02 + 0.02)


@given(durations)
def test_quantiles_are_never_close_together(seconds: list[float]) -> None:
    for earlier, later in pairwise(forecast_of(*seconds).prediction(ACTION).quantiles):
        assert later - earlier >= 0.1 * later - 1e-9


def test_empty_sample_observes_every_operation_again() -> None:
    forecast = Forecast()
    for observation in [forecast.observe(ACTION, NOW) for _ in range(10 * SAMPLE_SIZE)]:
        if observation is not None:
            forecast.abandon(observation)
    for _ in range(5):
        observe(forecast)


def test_shorter_durations_are_reported() -> None:
    forecast = forecast_of(*[60.0] * 10)
    for _ in range(SAMPLE_SIZE):
        forecast.note_finished(observe(forecast), 1.0)
    assert forecast.update(NOW)


def test_update_includes_all_changed_actions() -> None:
    forecast = Forecast()
    actions = (ACTION, "start_compute", "apply_config")
    for action in actions:
        for _ in range(MIN_DURATIONS):
            observation = forecast.observe(action, NOW)
            assert observation is not None
            forecast.note_finished(observation, 1.0)
    assert forecast.update(NOW)
    assert all(forecast.prediction(action).quantiles for action in actions)
