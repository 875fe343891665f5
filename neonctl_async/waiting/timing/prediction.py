"""Predictions of how long operations of one action take, from known durations. Pure: no I/O."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

MIN_DURATIONS = 5
"""Finished operations of an action that a prediction needs."""
AGREEMENT = 1.5
"""The largest factor between the medians of predictions that agree."""


class Share(NamedTuple):
    """The share of all operations that finish within a number of seconds."""

    finished: float
    seconds: float


class Prediction(NamedTuple):
    """The probable durations of operations of one action, in seconds from their start."""

    shares: tuple[Share, ...] = ()
    """The observed shares, in order; empty without history."""
    end: float = 0.0
    """The duration of the longest operations: observed, or an estimate for pending ones."""
    is_complete: bool = True
    """True if the end was observed, False if it is an estimate for pending operations."""

    def has_observed(self, share: float) -> bool:
        """Return whether :meth:`seconds_of` is observed for this share, and not an estimate."""
        return self.is_complete or share <= self.shares[-1].finished

    def seconds_of(self, share: float) -> float:
        """Return the time within which this share of the operations finishes."""
        place = bisect_left(self.shares, share - 1e-9, key=lambda one: one.finished)
        if place < len(self.shares):
            return self.shares[place].seconds
        if self.is_complete:
            return self.end
        last = self.shares[-1]
        progress = (share - last.finished) / (1 - last.finished)
        return last.seconds + progress * (self.end - last.seconds)


UNKNOWN = Prediction()


def predict(durations: Iterable[float]) -> Prediction:
    """Return the prediction from complete durations: UNKNOWN if they are too few."""
    ordered = sorted(durations)
    if len(ordered) < MIN_DURATIONS:
        return UNKNOWN
    shares = (Share(n / len(ordered), seconds) for n, seconds in enumerate(ordered, 1))
    return Prediction(tuple(shares), ordered[-1])


def agree(first: Prediction, second: Prediction) -> bool:
    """Return whether two predictions, neither of them UNKNOWN, have about the same median."""
    shorter, longer = sorted((first.seconds_of(0.5), second.seconds_of(0.5)))
    return longer <= AGREEMENT * shorter
