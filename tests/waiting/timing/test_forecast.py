import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from neonctl_async.types import OperationAction
from neonctl_async.waiting.timing.forecast import (
    DURATIONS,
    MIN_DURATIONS,
    SAMPLE_SIZE,
    UNKNOWN,
    Forecast,
    Observation,
    Prediction,
)
from tests.support.records import PROJECT
from tests.waiting.timing.conditions import ACTION, learn
from tests.waiting.timing.test_forecast_history import records

durations = st.lists(st.floats(0, 1000), min_size=MIN_DURATIONS, max_size=100)
OTHER = OperationAction.START_COMPUTE
NOW = 10_000.0


def observe(forecast: Forecast, started_at: float = NOW) -> Observation:
    observation = forecast.observe(PROJECT, ACTION, started_at)
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


def prediction_of(forecast: Forecast) -> Prediction:
    return forecast.prediction(ACTION, PROJECT)


def durations_in(prediction: Prediction) -> list[float]:
    """Return the durations of a complete prediction."""
    assert prediction.is_complete
    assert prediction.end == prediction.quantiles[-1].seconds
    return [share.seconds for share in prediction.quantiles]


def abandon(forecast: Forecast, *seconds: float) -> None:
    """Abandon operations that were last seen pending at these ages."""
    for age in seconds:
        stuck = observe(forecast, NOW - age)
        forecast.note_pending(stuck, NOW)
        forecast.abandon(stuck)


# Reports to the pollers.


def test_five_durations_make_a_prediction_that_is_reported_once() -> None:
    forecast = Forecast()
    changes: list[bool] = []
    for _ in range(MIN_DURATIONS + 3):
        assert bool(prediction_of(forecast).quantiles) is (len(changes) >= MIN_DURATIONS)
        forecast.note_finished(observe(forecast), 1.0)
        changes.append(forecast.update(NOW))
    assert changes == [False] * (MIN_DURATIONS - 1) + [True] + [False] * 3


@pytest.mark.parametrize("usual", [1.0, 60.0])
def test_longer_durations_are_reported(usual: float) -> None:
    forecast = forecast_of(*[usual] * 10)
    forecast.note_finished(observe(forecast), 1.04 * usual)
    assert not forecast.update(NOW)
    forecast.note_finished(observe(forecast), 1.07 * usual)
    assert forecast.update(NOW)
    assert not forecast.update(NOW)


def test_slow_change_is_reported_once_it_adds_up() -> None:
    forecast = forecast_of(*[1.0] * 10)
    changes: list[bool] = []
    for longest in (1.03, 1.05, 1.06, 1.08):
        forecast.note_finished(observe(forecast), longest)
        changes.append(forecast.update(NOW))
    assert changes == [False, False, True, False]


def test_longer_pending_operations_are_reported() -> None:
    forecast = forecast_of(*[1.0] * 10)
    for _ in range(10):
        forecast.note_pending(observe(forecast, NOW - 5.0), NOW)
    assert forecast.update(NOW)


def test_shorter_durations_are_reported() -> None:
    forecast = forecast_of(*[60.0] * 10)
    for _ in range(SAMPLE_SIZE):
        forecast.note_finished(observe(forecast), 1.0)
    assert forecast.update(NOW)


def test_update_includes_all_changed_actions() -> None:
    forecast = Forecast()
    actions = (ACTION, OTHER, OperationAction.APPLY_CONFIG)
    for action in actions:
        for _ in range(MIN_DURATIONS):
            observation = forecast.observe(PROJECT, action, NOW)
            assert observation is not None
            forecast.note_finished(observation, 1.0)
    assert forecast.update(NOW)
    assert all(forecast.prediction(action, PROJECT).quantiles for action in actions)


# The prediction from observed operations.


def test_unobserved_action_has_no_prediction() -> None:
    assert prediction_of(Forecast()) == UNKNOWN
    assert forecast_of(*[1.0] * 10).prediction(OTHER, PROJECT) == UNKNOWN


def test_finished_operations_are_predicted_by_their_durations() -> None:
    prediction = prediction_of(forecast_of(5.0, 3.0, 1.0, 2.0, 4.0))
    assert [share.seconds for share in prediction.quantiles] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [share.finished for share in prediction.quantiles] == pytest.approx(
        [0.2, 0.4, 0.6, 0.8, 1]
    )
    assert (prediction.end, prediction.is_complete) == (5.0, True)


def test_pending_operations_are_predicted_at_the_pace_of_finished_ones() -> None:
    # 10 of 40 took 1 to 2 s, so the rest should take until 5 s.
    prediction = prediction_of(
        forecast_of(*[1 + n / 9 for n in range(10)], pending_for=(2.0,) * 30)
    )
    assert prediction.quantiles[-1] == pytest.approx((0.25, 2.0))
    assert prediction.end == pytest.approx(5.0)
    assert not prediction.is_complete


def test_pending_operations_are_predicted_no_sooner_than_the_last_gap() -> None:
    forecast = forecast_of(*[1 + n / 9 for n in range(10)], pending_for=(5.0, 5.0))
    assert prediction_of(forecast).end == pytest.approx(8.0)


def test_estimate_is_later_than_the_longest_pending_operation() -> None:
    forecast = forecast_of(*[1 + n / 9 for n in range(10)], pending_for=(*(2.0,) * 29, 4.0))
    assert prediction_of(forecast).end == pytest.approx(4.0 + 3 * (4.0 - 1.0))


def test_operations_that_are_pending_for_less_count_for_the_shares_they_reached() -> None:
    # Two of six were last seen pending before the later durations: 1 - (5/6)(4/5) = 1/3, then 3/4.
    forecast = forecast_of(1.0, 1.1, 3.0, 3.1, 3.2, pending_for=(2.0,))
    finished = [share.finished for share in prediction_of(forecast).quantiles]
    assert finished == pytest.approx([1 / 6, 1 / 3, 5 / 9, 7 / 9, 1.0])


@pytest.mark.parametrize(("pending", "is_complete"), [(1, True), (2, False)])
def test_prediction_is_complete_if_nine_in_ten_are_finished(
    pending: int, is_complete: bool
) -> None:
    durations = [1 + n / 9 for n in range(10 - pending)]
    prediction = prediction_of(forecast_of(*durations, pending_for=(5.0,) * pending))
    assert prediction.is_complete is is_complete
    assert (prediction.end == durations[-1]) is is_complete


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
    assert bool(prediction_of(forecast).quantiles) is is_predicted


def test_operations_that_were_never_polled_are_ignored() -> None:
    forecast = Forecast()
    for _ in range(40):
        observe(forecast, NOW - 5.0)
    for seconds in (1.0, 1.1, 1.2, 1.3, 1.4):
        forecast.note_finished(observe(forecast), seconds)
    assert forecast.update(NOW)
    assert prediction_of(forecast).is_complete
    assert prediction_of(forecast).end == 1.4


def test_recently_started_operations_do_not_change_the_prediction() -> None:
    alone, with_others = forecast_of(*[1.0] * 6), forecast_of(*[1.0] * 6, pending_for=(0.5,) * 40)
    assert prediction_of(with_others) == prediction_of(alone)


def test_old_durations_are_forgotten() -> None:
    forecast = forecast_of(*[1.0, 1.4] * 10, *[1.0] * SAMPLE_SIZE)
    assert prediction_of(forecast).end == 1.0


def test_abandoned_operation_counts_as_longer_than_its_wait() -> None:
    forecast = forecast_of(*[1.0] * 10)
    abandon(forecast, *[5.0] * 10)
    forecast.note_finished(observe(forecast), 1.0)
    forecast.update(NOW)
    prediction = prediction_of(forecast)
    assert prediction.quantiles[-1] == pytest.approx((11 / 21, 1.0))
    assert prediction.end == pytest.approx(9.0)
    assert not prediction.is_complete


def test_abandoned_operations_are_forgotten_like_other_durations() -> None:
    forecast = forecast_of(*[1.0] * 10)
    abandon(forecast, *[5.0] * 10)
    for _ in range(SAMPLE_SIZE):
        forecast.note_finished(observe(forecast), 1.0)
    forecast.update(NOW)
    assert prediction_of(forecast).is_complete


# Durations that change.


def test_newest_durations_replace_the_older_ones() -> None:
    forecast = forecast_of(*[1.0] * DURATIONS)
    learn(forecast, *[9.0] * MIN_DURATIONS)
    # A few are enough for a poll after 9 s, and the older ones are not forgotten at once.
    assert durations_in(prediction_of(forecast)) == [1.0] * (DURATIONS - 5) + [9.0] * 5
    learn(forecast, *[9.0] * DURATIONS)
    assert durations_in(prediction_of(forecast)) == [9.0] * DURATIONS


def test_a_few_much_shorter_durations_replace_all_others() -> None:
    forecast = forecast_of(*[0.8], *[3.0] * 40)
    learn(forecast, 0.5, 3.0, 0.5, 0.5)
    assert durations_in(prediction_of(forecast))[-1] == 3.0
    learn(forecast, 0.5)
    assert not prediction_of(forecast).quantiles
    learn(forecast, 0.5, 0.5)
    assert durations_in(prediction_of(forecast)) == [0.5] * 5


def test_last_of_a_burst_do_not_hide_the_shorter_ones() -> None:
    # Those that finish last are the long ones. They show no change.
    forecast = forecast_of(*[1.0] * 20, *[8.0] * 20)
    assert durations_in(prediction_of(forecast)) == [1.0] * 20 + [8.0] * 20


# The sample.


def test_full_sample_observes_no_further_operation() -> None:
    forecast = Forecast()
    for _ in range(SAMPLE_SIZE):
        observe(forecast)
    assert forecast.observe(PROJECT, ACTION, NOW + 1.0) is None


def test_empty_sample_observes_every_operation_again() -> None:
    forecast = Forecast()
    for observation in [forecast.observe(PROJECT, ACTION, NOW) for _ in range(10 * SAMPLE_SIZE)]:
        if observation is not None:
            forecast.abandon(observation)
    for _ in range(5):
        observe(forecast)


# The history of projects.


def test_history_of_the_project_is_used_until_operations_were_observed() -> None:
    forecast = Forecast()
    forecast.histories.note(PROJECT, records(*[3.0] * 5))
    assert durations_in(prediction_of(forecast)) == [3.0] * 5
    assert forecast.prediction(ACTION, "other") == UNKNOWN
    learn(forecast, *[3.3] * 5)
    assert durations_in(prediction_of(forecast)) == [3.3] * 5


def test_history_of_the_project_decides_if_observations_contradict_it() -> None:
    forecast = Forecast()
    learn(forecast, *[9.0] * 5, project_id="other")
    forecast.histories.note(PROJECT, records(*[3.0] * 5))
    assert durations_in(prediction_of(forecast)) == [3.0] * 5
    assert durations_in(forecast.prediction(ACTION, "other")) == [9.0] * 5


def test_observations_in_the_project_refute_its_history() -> None:
    forecast = Forecast()
    forecast.histories.note(PROJECT, records(*[3.0] * 5))
    learn(forecast, *[9.0] * 5)
    assert durations_in(prediction_of(forecast)) == [9.0] * 5


def test_histories_of_other_projects_are_used_if_they_agree() -> None:
    forecast = Forecast()
    forecast.histories.note("a", records(*[3.0] * 5))
    forecast.histories.note("b", records(*[3.1] * 5))
    assert durations_in(prediction_of(forecast)) == [3.1] * 5
    learn(forecast, *[9.0] * 5)
    assert durations_in(prediction_of(forecast)) == [9.0] * 5


# Laws.


@given(durations, st.lists(st.floats(0, 1000), max_size=100))
def test_shares_ascend_and_the_end_is_not_before_the_last_one(
    seconds: list[float], pending_for: list[float]
) -> None:
    prediction = prediction_of(forecast_of(*seconds, pending_for=tuple(pending_for)))
    assert list(prediction.quantiles) == sorted(prediction.quantiles)
    assert [share.seconds for share in prediction.quantiles] == sorted(
        share.seconds for share in prediction.quantiles
    )
    assert all(0 < finished <= 1 + 1e-9 for finished, _ in prediction.quantiles)
    if not prediction.quantiles:
        assert prediction == UNKNOWN
    elif prediction.is_complete:
        assert prediction.end == prediction.quantiles[-1].seconds
    else:
        assert prediction.end >= max(*pending_for, prediction.quantiles[-1].seconds)


@given(durations)
def test_prediction_without_pending_operations_is_that_of_their_durations(
    seconds: list[float],
) -> None:
    prediction = prediction_of(forecast_of(*seconds))
    assume(prediction.quantiles)  # much shorter durations than before need a few more
    remembered = durations_in(prediction)
    assert len(remembered) >= MIN_DURATIONS  # those before a change are forgotten
    assert remembered == sorted(seconds[-len(remembered) :])
    assert prediction.quantiles[-1].finished == pytest.approx(1.0)


@given(durations, st.lists(st.floats(0, 1000), max_size=30))
def test_pending_operations_never_make_the_prediction_shorter(
    seconds: list[float], pending_for: list[float]
) -> None:
    alone = prediction_of(forecast_of(*seconds))
    prediction = prediction_of(forecast_of(*seconds, pending_for=tuple(pending_for)))
    if (
        prediction.quantiles
        and prediction.is_complete
        and len(prediction.quantiles) == len(alone.quantiles)
    ):
        for share in (0.1, 0.5, 0.9):
            # Sums in another order differ in their last bits.
            assert prediction.seconds_of(share) >= alone.seconds_of(share) - 1e-9
