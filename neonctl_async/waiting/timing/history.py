"""The durations of finished operations in the lists that polls read anyway. Pure: no I/O."""

from collections import OrderedDict
from collections.abc import Iterable
from datetime import timedelta

from neonctl_async.models.operations import Operation, OperationStatus
from neonctl_async.waiting.timing.prediction import (
    MIN_DURATIONS,
    UNKNOWN,
    Prediction,
    agree,
    predict,
)

HISTORY_PAGE = 50
"""The number of operations that the first poll of a project reads."""
MAX_AGE = timedelta(days=30)
"""How much older than the newest operation others may be before they are ignored."""
MAX_AGE_MS = 10**12
"""The longest plausible duration of an operation, in milliseconds: 30 years."""
MIN_WHOLE_SECONDS = 2.0
"""The shortest duration for which timestamps in whole seconds are precise enough."""
MAX_PROJECTS = 1000
"""The number of projects whose histories are kept."""


def age(record: Operation) -> float:
    """Return how long an operation had been running when Neon wrote its record, in seconds.

    A duration that no operation can have counts as 0 or as MAX_AGE_MS.
    """
    return min(max(record.total_duration_ms or 0, 0), MAX_AGE_MS) / 1000


def durations_of(operations: Iterable[Operation]) -> dict[str, list[float]]:
    """Return the durations of the finished operations by action, in seconds from their creation."""
    finished = [one for one in operations if one.status == OperationStatus.FINISHED]
    newest = max((one.created_at for one in finished), default=None)
    durations: dict[str, list[float]] = {}
    for one in finished:
        seconds = _duration(one)
        if seconds is not None and newest is not None and newest - one.created_at < MAX_AGE:
            durations.setdefault(one.action, []).append(seconds)
    return durations


def _duration(record: Operation) -> float | None:
    """Return the time from the creation of an operation to its end, None if it is not known.

    ``total_duration_ms`` leaves out the time in a queue. Timestamps may have whole seconds.
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
        """Replace the history of each action that has enough of these operations."""
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
        """Return whether the history of a project was noted."""
        return project_id in self._by_project

    def note_finished(self, project_id: str, action: str, seconds: float) -> None:
        """Drop the history of a project if the duration of a tracked operation contradicts it."""
        histories = self._by_project.get(project_id, {})
        known = histories.get(action)
        if known is not None and not agree(predict([seconds] * MIN_DURATIONS), known):
            del histories[action]
            self._common.clear()

    def of_project(self, action: str, project_id: str) -> Prediction:
        """Return the prediction from a project's own history, or UNKNOWN without enough of it."""
        return self._by_project.get(project_id, {}).get(action, UNKNOWN)

    def of_all(self, action: str) -> Prediction:
        """Return the newest history of an action if it agrees with the one before."""
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
