"""Predictions of how long operations of one action take, from known durations. Pure: no I/O."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

MIN_DURATIONS = 5
"""The number of finished operations of an action that a prediction needs."""
AGREEMENT = 1.5
"""The largest factor between the medians of two predictions that agree."""


class Quantile(NamedTuple):
    """The share of all operations that finish within a number of seconds."""

    finished: float
    seconds: float


class Prediction(NamedTuple):
    """The probable durations of operations of one action, in seconds from their start."""

    quantiles: tuple[Quantile, ...] = ()
    """The observed quantiles, in order; empty without history."""
    end: float = 0.0
    """The duration of the longest operations: observed, or an estimate for pending ones."""
    is_complete: bool = True
    """True if the end was observed, False if it is an estimate for pending operations."""

    @property
    def longest(self) -> float:
        """The longest observed duration."""
        return self.quantiles[-1].seconds

    def seconds_of(self, share: float) -> float:
        """Return the time within which this share of the operations finishes."""
        place = bisect_left(self.quantiles, share - 1e-9, key=lambda one: one.finished)
        if place == len(self.quantiles):
            last, following = self.quantiles[-1], Quantile(1.0, self.end)
            if self.is_complete:
                return self.end
        else:
            last = self.quantiles[place - 1] if place else Quantile(0.0, self.quantiles[0].seconds)
            following = self.quantiles[place]
        progress = (share - last.finished) / (following.finished - last.finished)
        return last.seconds + progress * (following.seconds - last.seconds)

    def finished_within(self, seconds: float) -> float:
        """Return the share of the operations that finish within some time."""
        place = bisect_right(self.quantiles, seconds, key=lambda one: one.seconds)
        if place == 0:
            return 0.0
        last = self.quantiles[place - 1]
        following = (
            self.quantiles[place] if place < len(self.quantiles) else Quantile(1.0, self.end)
        )
        if following.seconds <= seconds:
            return 1.0 if self.is_complete else last.finished
        progress = (seconds - last.seconds) / (following.seconds - last.seconds)
        return last.finished + progress * (following.finished - last.finished)


UNKNOWN = Prediction()


def predict(durations: Iterable[float]) -> Prediction:
    """Return the prediction from complete durations: UNKNOWN if they are too few."""
    ordered = sorted(durations)
    if len(ordered) < MIN_DURATIONS:
        return UNKNOWN
    quantiles = (Quantile(n / len(ordered), seconds) for n, seconds in enumerate(ordered, 1))
    return Prediction(tuple(quantiles), ordered[-1])


def agree(first: Prediction, second: Prediction) -> bool:
    """Return whether two predictions, neither of them UNKNOWN, have about the same median."""
    shorter, longer = sorted((_median(first), _median(second)))
    return longer <= AGREEMENT * shorter


def _median(prediction: Prediction) -> float:
    """Return the duration of the operation in the middle, without interpolation."""
    observed = (one.seconds for one in prediction.quantiles if one.finished >= 0.5 - 1e-9)
    return next(observed, prediction.end)
