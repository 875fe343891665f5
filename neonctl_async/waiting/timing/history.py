"""The durations of finished operations in the lists that polls read anyway. Pure: no I/O."""

from collections import OrderedDict
from collections.abc import Iterable
from datetime import timedelta
from itertools import islice

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
"""The age of operations, before the newest one, from which they are ignored."""
MAX_AGE_MS = 10**12
"""The longest duration of an operation that is believed, in milliseconds: 30 years."""
MIN_WHOLE_SECONDS = 2.0
"""The shortest duration that is read from timestamps of whole seconds."""
MAX_PROJECTS = 1000
"""The number of projects whose histories are kept."""
MAX_COMPARED = 10
"""The number of other projects whose histories have to agree."""
CONTRADICTIONS = 3
"""The number of contradicting durations in a row after which a history is dropped."""


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


class _History:
    """The prediction from one project's history of an action."""

    def __init__(self, prediction: Prediction) -> None:
        self.prediction = prediction
        self._contradictions = 0

    def is_refuted_by(self, seconds: float) -> bool:
        """Compare the history with a new duration. Return True if too many contradict it now."""
        is_contradiction = not agree(predict([seconds] * MIN_DURATIONS), self.prediction)
        self._contradictions = self._contradictions + 1 if is_contradiction else 0
        return self._contradictions == CONTRADICTIONS


class Histories:
    """The histories of the projects that were polled most recently, each for itself."""

    def __init__(self) -> None:
        self._by_project: OrderedDict[str, dict[str, _History]] = OrderedDict()
        self._common: dict[str, Prediction] = {}
        """The results of :meth:`of_all`, until a history changes."""

    def note(self, project_id: str, operations: Iterable[Operation]) -> None:
        """Replace the history of each action of which these operations are enough."""
        histories = self._by_project.setdefault(project_id, {})
        for action, seconds in durations_of(operations).items():
            if (prediction := predict(seconds)).quantiles:
                histories[action] = _History(prediction)
        self._by_project.move_to_end(project_id)
        forgotten: dict[str, _History] = {}
        if len(self._by_project) > MAX_PROJECTS:
            forgotten = self._by_project.popitem(last=False)[1]
        if histories or forgotten:
            self._common.clear()

    def has(self, project_id: str) -> bool:
        """Return whether the history of a project was noted."""
        return project_id in self._by_project

    def note_finished(self, project_id: str, action: str, seconds: float) -> None:
        """Compare the history of a project with the duration of a tracked operation.

        Drop the history if CONTRADICTIONS durations in a row contradict it.
        """
        histories = self._by_project.get(project_id, {})
        if action in histories and histories[action].is_refuted_by(seconds):
            del histories[action]
            self._common.clear()

    def of_project(self, action: str, project_id: str) -> Prediction:
        """Return the prediction from a project's own history, UNKNOWN without enough of it."""
        history = self._by_project.get(project_id, {}).get(action)
        return UNKNOWN if history is None else history.prediction

    def of_all(self, action: str) -> Prediction:
        """Return the newest history of an action, if at least two projects agree on it."""
        if action not in self._common:
            self._common[action] = self._common_history(action)
        return self._common[action]

    def _common_history(self, action: str) -> Prediction:
        newest = (
            histories[action].prediction
            for histories in reversed(self._by_project.values())
            if action in histories
        )
        known = list(islice(newest, MAX_COMPARED))
        is_common = len(known) > 1 and all(agree(known[0], other) for other in known[1:])
        return known[0] if is_common else UNKNOWN
