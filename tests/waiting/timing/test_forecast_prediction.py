import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_async.waiting.timing.forecast import (
    MIN_DURATIONS,
    UNKNOWN,
    Prediction,
    Quantile,
    agree,
    predict,
)

durations = st.lists(st.floats(0, 1000), min_size=MIN_DURATIONS, max_size=100)
quantiles = st.floats(0, 1)


@pytest.mark.parametrize(
    ("share", "seconds"), [(0.0, 1.0), (0.1, 1.0), (0.15, 1.5), (0.5, 5.0), (0.97, 9.7), (1, 10.0)]
)
def test_share_of_operations_finishes_within_the_duration_of_the_last_of_them(
    share: float, seconds: float
) -> None:
    assert predict(range(10, 0, -1)).seconds_of(share) == pytest.approx(seconds)


@given(durations, quantiles)
def test_share_within_a_time_is_the_inverse_of_the_time_of_a_share(
    seconds: list[float], share: float
) -> None:
    prediction = predict(seconds)
    within = prediction.finished_within(prediction.seconds_of(share))
    assert within >= share - 1e-6
    assert prediction.finished_within(min(seconds) - 1.0) == 0.0
    assert prediction.finished_within(max(seconds)) == 1.0


def test_longest_known_duration_is_no_estimate() -> None:
    assert predict([1.0, 2.0, 30.0, 4.0, 5.0]).longest == 30.0
    estimated = Prediction((Quantile(0.25, 1.0), Quantile(0.5, 2.0)), end=6.0, is_complete=False)
    assert estimated.longest == 2.0
    assert estimated.finished_within(4.0) == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("share", "seconds"), [(0.25, 1.0), (0.5, 2.0), (0.75, 4.0), (0.9, 5.2), (1.0, 6.0)]
)
def test_pending_operations_are_spread_from_the_last_duration_to_the_estimated_end(
    share: float, seconds: float
) -> None:
    prediction = Prediction((Quantile(0.25, 1.0), Quantile(0.5, 2.0)), end=6.0, is_complete=False)
    assert prediction.seconds_of(share) == pytest.approx(seconds)


def test_exceptions_of_a_complete_prediction_finish_at_the_observed_end() -> None:
    prediction = Prediction((Quantile(0.5, 1.0), Quantile(0.95, 2.0)), end=2.0)
    assert prediction.seconds_of(0.97) == 2.0


def test_too_few_durations_predict_nothing() -> None:
    assert predict([1.0] * (MIN_DURATIONS - 1)) == UNKNOWN
    assert Prediction((), 0.0, is_complete=True) == UNKNOWN


def test_each_duration_is_a_share_and_the_longest_one_is_the_end() -> None:
    prediction = predict([5.0, 1.0, 2.0, 4.0, 3.0])
    assert [share.seconds for share in prediction.quantiles] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [share.finished for share in prediction.quantiles] == pytest.approx(
        [0.2, 0.4, 0.6, 0.8, 1]
    )
    assert prediction.end == 5.0
    assert prediction.is_complete


@pytest.mark.parametrize(("other", "expected"), [(1.0, True), (1.5, True), (1.6, False)])
def test_predictions_agree_if_their_medians_are_close(other: float, expected: bool) -> None:
    first = predict([0.1, 0.1, 1.0, 20.0, 20.0])
    second = predict([0.2, 0.2, other, 90.0, 90.0])
    assert agree(first, second) is expected
    assert agree(second, first) is expected


@given(durations, quantiles, quantiles)
def test_larger_shares_never_finish_sooner(
    seconds: list[float], first: float, second: float
) -> None:
    prediction = predict(seconds)
    assert prediction.seconds_of(min(first, second)) <= prediction.seconds_of(max(first, second))


@given(durations, quantiles, quantiles, st.floats(0, 1000), st.integers(1, 99))
def test_larger_shares_never_finish_sooner_in_an_incomplete_prediction(
    seconds: list[float], first: float, second: float, further: float, finished: int
) -> None:
    known = [
        Quantile(one.finished * finished / 100, one.seconds) for one in predict(seconds).quantiles
    ]
    prediction = Prediction(tuple(known), known[-1].seconds + further, is_complete=False)
    earlier, later = (prediction.seconds_of(share) for share in sorted((first, second)))
    assert earlier <= later + 1e-6
    assert known[0].seconds <= earlier
    assert later <= prediction.end + 1e-6


@given(durations, quantiles)
def test_at_least_the_share_of_durations_is_within_the_predicted_time(
    seconds: list[float], share: float
) -> None:
    predicted = predict(seconds).seconds_of(share)
    assert min(seconds) <= predicted <= max(seconds)
    within = sum(one <= predicted + 1e-6 for one in seconds)
    assert within >= share * len(seconds) - 1 - 1e-6


@given(durations)
def test_prediction_agrees_with_itself(seconds: list[float]) -> None:
    prediction = predict(seconds)
    assert agree(prediction, prediction)
