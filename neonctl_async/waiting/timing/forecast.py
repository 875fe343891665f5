"""Predictions of how long operations take, from observed operations. Pure: no I/O."""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from neonctl_async.waiting.timing.history import Histories
from neonctl_async.waiting.timing.prediction import (
    AGREEMENT,
    MIN_DURATIONS,
    UNKNOWN,
    Prediction,
    Quantile,
    agree,
)

SAMPLE_SIZE = 256
"""The pending operations of an action that are observed at a time."""
MIN_KNOWN_RATIO = 0.5
"""Smallest ratio of operations in a known state to those in an unknown state."""
COMPLETE = 0.9
"""The share of finished operations above which the pending ones count as exceptions."""
DURATIONS = 64
"""How many of an action's newest durations are remembered. With fewer, changes show sooner."""
CHANGED = 3
"""The number of newest durations, much shorter than nearly all before, that replace these."""
REPLAN_CHANGE = 0.05
"""Relative change of an action's expected end that makes all pollers replan."""


class Observation:
    """An operation of the sample. Its times are seconds on one clock."""

    __slots__ = ("action", "pending_at", "project_id", "started_at")

    def __init__(self, project_id: str, action: str, started_at: float) -> None:
        self.project_id: str = project_id
        self.action: str = action
        self.started_at: float = started_at
        self.pending_at: float = started_at
        """The last time at which the operation was seen pending."""


class _Duration(NamedTuple):
    """The duration of an operation, or its lower bound if the operation was abandoned."""

    seconds: float
    is_final: bool


class _ActionSample:
    """A sample of the operations of one action: pending ones and the newest durations."""

    def __init__(self) -> None:
        self.durations: deque[_Duration] = deque(maxlen=DURATIONS)
        self.pending: dict[Observation, None] = {}
        self.prediction = UNKNOWN
        self.reported_end = 0.0
        """The end of the prediction at the time of the newest report to the pollers."""

    def observe(self, project_id: str, action: str, started_at: float) -> Observation | None:
        if len(self.pending) == SAMPLE_SIZE:
            return None
        observation = Observation(project_id, action, started_at)
        self.pending[observation] = None
        return observation

    def release(self, observation: Observation, duration: _Duration) -> bool:
        """Replace a pending operation by its duration. Return whether it was in the sample."""
        if observation not in self.pending:
            return False
        del self.pending[observation]
        self.durations.append(duration)
        self._forget_longer()
        return True

    def _forget_longer(self) -> None:
        """Forget all durations but the newest if these show that operations take less time now.

        Longer ones need no such rule: polls before their end show that they are pending.
        """
        final = [known.seconds for known in self.durations if known.is_final]
        newest, before = final[-CHANGED:], sorted(final[:-CHANGED])
        if len(before) >= MIN_DURATIONS and AGREEMENT * max(newest) < before[len(before) // 10]:
            self.durations = deque((_Duration(one, is_final=True) for one in newest), DURATIONS)
            self.prediction = UNKNOWN

    def update(self, now: float) -> bool:
        """Compute the prediction. Return whether its end changed by REPLAN_CHANGE."""
        finished = sorted(known.seconds for known in self.durations if known.is_final)
        if len(finished) < MIN_DURATIONS:
            return False
        abandoned = [known.seconds for known in self.durations if not known.is_final]
        # An operation that was never polled has no known duration, not even a shortest one.
        polled = [one for one in self.pending if one.pending_at > one.started_at]
        pending_for = sorted([*abandoned, *(one.pending_at - one.started_at for one in polled)])
        ages = sorted([*abandoned, *(now - one.started_at for one in polled)])
        quantiles = _quantiles(finished, pending_for, ages)
        if len(quantiles) < MIN_DURATIONS:
            return False
        self.prediction = _predict(quantiles, pending_for)
        expected = self.prediction.end
        if abs(expected - self.reported_end) <= REPLAN_CHANGE * expected:
            return False
        self.reported_end = expected
        return True


class Forecast:
    """A small summary of how long operations of each action took recently.

    It observes a sample of the operations from start to finish. Durations of finished operations
    alone would be too short on average, because long operations are still pending.
    """

    def __init__(self) -> None:
        self.histories: Histories = Histories()
        self._samples: dict[str, _ActionSample] = {}
        self._changed: set[str] = set()

    def observe(self, project_id: str, action: str, started_at: float) -> Observation | None:
        """Add an operation to the sample. Return None if the sample is full."""
        sample = self._samples.setdefault(action, _ActionSample())
        return sample.observe(project_id, action, started_at)

    def note_pending(self, observation: Observation, now: float) -> None:
        """Record that an operation is still pending."""
        observation.pending_at = now
        if observation in self._samples[observation.action].pending:
            self._changed.add(observation.action)

    def note_finished(self, observation: Observation, seconds: float) -> None:
        """Record the duration of an operation that reached a terminal state."""
        self.histories.note_finished(observation.project_id, observation.action, seconds)
        duration = _Duration(seconds, is_final=True)
        if self._samples[observation.action].release(observation, duration):
            self._changed.add(observation.action)

    def abandon(self, observation: Observation) -> None:
        """Record that an operation is no longer polled: it took longer than observed."""
        seconds = observation.pending_at - observation.started_at
        self._samples[observation.action].release(observation, _Duration(seconds, is_final=False))

    def update(self, now: float) -> bool:
        """Update the predictions of changed actions. Return whether polls must be replanned."""
        changes = [self._samples[action].update(now) for action in self._changed]
        self._changed.clear()
        return any(changes)

    def prediction(self, action: str, project_id: str) -> Prediction:
        """Return the prediction for an action in a project, or UNKNOWN without enough history.

        What this client observed counts for all projects, and takes precedence over the project's
        own history, unless the two contradict each other.
        """
        sample = self._samples.get(action)
        observed = UNKNOWN if sample is None else sample.prediction
        own = self.histories.of_project(action, project_id)
        if own.quantiles and not (observed.quantiles and agree(own, observed)):
            return own
        return observed if observed.quantiles else self.histories.of_all(action)


def _quantiles(
    durations: Sequence[float], pending_for: Sequence[float], ages: Sequence[float]
) -> list[Quantile]:
    """Return the estimate of Kaplan and Meier (1958). All arguments are sorted.

    It stops at the first duration for which too few operations are in a known state. Operations
    that are older than the duration and were not polled since then are in an unknown state.
    """
    pending_share = 1.0
    quantiles: list[Quantile] = []
    for index, duration in enumerate(durations):
        younger = bisect_left(pending_for, duration)
        at_risk = len(durations) - index + len(pending_for) - younger
        if at_risk < MIN_KNOWN_RATIO * (younger - bisect_left(ages, duration)):
            break
        pending_share *= 1 - 1 / at_risk
        quantiles.append(Quantile(1 - pending_share, duration))
    return quantiles


def _predict(quantiles: Sequence[Quantile], pending_for: Sequence[float]) -> Prediction:
    is_complete = quantiles[-1].finished >= COMPLETE
    end = quantiles[-1].seconds if is_complete else _expected_end(quantiles, pending_for)
    return Prediction(tuple(quantiles), end, is_complete)


def _expected_end(quantiles: Sequence[Quantile], pending_for: Sequence[float]) -> float:
    """Return when the pending operations finish if they continue at the pace of the others.

    If none has finished for some time, the result is at least the same time ahead.
    """
    first, latest = quantiles[0].seconds, quantiles[-1].seconds
    now = max(latest, *pending_for)
    pending_share = 1 - quantiles[-1].finished
    return now + max(pending_share / quantiles[-1].finished * (now - first), now - latest)
