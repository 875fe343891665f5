"""How long operations take: predictions from listed and from observed operations. Pure: no I/O."""

from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple

from neonctl_async.models.operations import Operation, OperationStatus

MIN_DURATIONS = 5
"""The minimum number of finished operations of an action that a prediction needs."""
AGREEMENT = 1.5
"""Two predictions agree if one median is at most this many times the other."""
HISTORY_PAGE = 50
"""The number of operations that the first poll of a project reads."""
MAX_AGE = timedelta(days=30)
"""Operations that are this much older than the newest one are ignored."""
MAX_AGE_MS = 10**12
"""The longest plausible duration of an operation, in milliseconds: 30 years."""
MIN_WHOLE_SECONDS = 2.0
"""The shortest duration for which timestamps in whole seconds are precise enough."""
MAX_PROJECTS = 1000
"""The maximum number of projects whose histories are kept."""
SAMPLE_SIZE = 256
"""The maximum number of pending operations of an action that are observed at a time."""
MIN_KNOWN_RATIO = 0.5
"""The smallest ratio of operations in a known state to operations in an unknown state."""
COMPLETE = 0.9
"""The share of finished operations above which the pending ones count as exceptions."""
DURATIONS = 64
"""How many of an action's latest durations are remembered. With fewer, changes show sooner."""
CHANGED = 3
"""The number of latest durations that replace all others if nearly all others are much longer."""
REPLAN_CHANGE = 0.05
"""The relative change of an action's expected end that makes all pollers replan."""


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
        """Return the share of the operations that finish within ``seconds``."""
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
    """Return the prediction from complete durations, or UNKNOWN if there are too few."""
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


def age(record: Operation) -> float:
    """Return how long an operation had been running when Neon wrote its record, in seconds.

    The result is limited to plausible durations, from 0 to MAX_AGE_MS.
    """
    return min(max(record.total_duration_ms or 0, 0), MAX_AGE_MS) / 1000


def durations_of(operations: Iterable[Operation]) -> dict[str, list[float]]:
    """Return the durations of the finished operations by action, in seconds from their creation."""
    finished = [one for one in operations if one.status == OperationStatus.FINISHED]
    newest = max((one.created_at for one in finished), default=None)
    durations: dict[str, list[float]] = {}
    for one in finished:
        seconds = _listed_duration(one)
        if seconds is not None and newest is not None and newest - one.created_at < MAX_AGE:
            durations.setdefault(one.action, []).append(seconds)
    return durations


def _listed_duration(record: Operation) -> float | None:
    """Return the time from the creation of an operation to its end, or None if it is unknown.

    ``total_duration_ms`` leaves out the time in a queue. Timestamps may be in whole seconds.
    """
    elapsed = (record.updated_at - record.created_at).total_seconds()
    if elapsed < 0:
        return None
    if record.updated_at.microsecond or record.created_at.microsecond:
        return elapsed
    if record.total_duration_ms is not None and abs(age(record) - elapsed) <= 1:
        return age(record)
    return elapsed if elapsed >= MIN_WHOLE_SECONDS else None


class Histories:
    """The separate histories of the most recently polled projects."""

    def __init__(self) -> None:
        self._by_project: OrderedDict[str, dict[str, Prediction]] = OrderedDict()
        self._common: dict[str, Prediction] = {}
        """The results of :meth:`of_all`, until a history changes."""

    def note(self, project_id: str, operations: Iterable[Operation]) -> None:
        """Replace the history of each action that has enough finished operations."""
        histories = self._by_project.setdefault(project_id, {})
        for action, seconds in durations_of(operations).items():
            if (prediction := predict(seconds)).quantiles:
                histories[action] = prediction
        self._by_project.move_to_end(project_id)
        forgotten: dict[str, Prediction] = {}
        if len(self._by_project) > MAX_PROJECTS:
            forgotten = self._by_project.popitem(last=False)[1]
        if histories or forgotten:
            self._common.clear()

    def has(self, project_id: str) -> bool:
        """Return whether the history of a project was noted, even if it is empty."""
        return project_id in self._by_project

    def note_finished(self, project_id: str, action: str, seconds: float) -> None:
        """Drop the history of a project if the duration of a tracked operation contradicts it."""
        histories = self._by_project.get(project_id, {})
        known = histories.get(action)
        if known is not None and not agree(predict([seconds] * MIN_DURATIONS), known):
            del histories[action]
            self._common.clear()

    def of_project(self, action: str, project_id: str) -> Prediction:
        """Return the prediction from a project's own history, or UNKNOWN if it is too short."""
        return self._by_project.get(project_id, {}).get(action, UNKNOWN)

    def of_all(self, action: str) -> Prediction:
        """Return the latest history of an action if the previous project's agrees, or UNKNOWN."""
        if action not in self._common:
            newest = (
                histories[action]
                for histories in reversed(self._by_project.values())
                if action in histories
            )
            first, second = next(newest, UNKNOWN), next(newest, UNKNOWN)
            is_common = second is not UNKNOWN and agree(first, second)
            self._common[action] = first if is_common else UNKNOWN
        return self._common[action]


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
    """A sample of the operations of one action: pending operations and the latest durations."""

    def __init__(self) -> None:
        self.durations: deque[_Duration] = deque(maxlen=DURATIONS)
        self.pending: dict[Observation, None] = {}
        self.prediction = UNKNOWN
        self.reported_end = 0.0
        """The predicted end that was last reported to the pollers."""

    def observe(self, project_id: str, action: str, started_at: float) -> Observation | None:
        if len(self.pending) == SAMPLE_SIZE:
            return None
        observation = Observation(project_id, action, started_at)
        self.pending[observation] = None
        return observation

    def release(self, observation: Observation, duration: _Duration) -> bool:
        """Replace a pending operation with its duration. Return whether it was in the sample."""
        if observation not in self.pending:
            return False
        del self.pending[observation]
        self.durations.append(duration)
        self._forget_longer()
        return True

    def _forget_longer(self) -> None:
        """Forget all but the latest durations if these show that operations have become faster.

        Slower operations need no such rule, because polls show that they are still pending.
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
    """A small summary of how long operations took recently, by action.

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
        """Record that an operation is no longer polled: it takes longer than observed so far."""
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
    """Return the Kaplan-Meier estimate (1958). All arguments are sorted.

    It stops at the first duration for which too few operations are in a known state. Operations
    that are older than the duration and have not been polled since are in an unknown state.
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

    If no operation has finished for some time, the result is at least that far in the future.
    """
    first, latest = quantiles[0].seconds, quantiles[-1].seconds
    now = max(latest, *pending_for)
    pending_share = 1 - quantiles[-1].finished
    return now + max(pending_share / quantiles[-1].finished * (now - first), now - latest)
