"""The time of the next poll of one wait, without I/O. Times are on the loop's clock."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from neonctl_async.config import PollPolicy
from neonctl_async.waiting.timing.forecast import Forecast
from neonctl_async.waiting.timing.pace import Pace
from neonctl_async.waiting.timing.prediction import UNKNOWN, Prediction
from neonctl_async.waiting.timing.schedule import NO_MARKS, Group, Marks, delay, marks_of
from neonctl_async.waiting.tracked import TrackedOperation

CROWD = 100
"""The number of operations of a wait, or of waits in a project, that get the most polls."""
HURRY = 0.5
"""The factor for the delays of a wait for CROWD or more operations."""
NO_JITTER = 0.5
"""The random number without jitter. Scouts need none: the one with the fewest polls is next."""
ORDER_SECONDS = 0.01
"""The head start of a scout for each poll that it had less than another one."""
PATIENCE = 1.0
"""Seconds for which a wait is not polled until durations of others are known, times the stretch."""


class Conditions(NamedTuple):
    """The conditions of the placement of a poll, beside the operations of the wait."""

    earliest: float
    """The time before which the project is not polled again."""
    jitter: float
    """A random number from 0 to 1."""
    polls: int
    """The number of polls of the project so far."""
    stretch: float
    """The factor for delays, above 1 if the rate budget is short."""


class Placed(NamedTuple):
    """The time of a poll."""

    at: float
    is_scout: bool = False
    """True if the poll comes early, to measure how long operations take."""


class _Wait(NamedTuple):
    """The pending operations of a wait."""

    kind: tuple[str, ...]
    started_at: float
    polled_at: float
    marks: Marks

    @property
    def waited(self) -> float:
        """The age of the youngest operation at the newest poll, in seconds."""
        return self.polled_at - self.started_at


class _SingleMarks(NamedTuple):
    """The marks of waits for one operation of an action, and what they depend on."""

    prediction: Prediction
    stretch: float
    marks: Marks


class Placement:
    """Places the polls of the waits of one project.

    With known durations, a poll comes at the next mark of the wait. While the rate budget is short
    and durations are unknown, a few projects are polled as scouts, and the others wait for what
    these find.
    """

    def __init__(self, policy: PollPolicy, forecast: Forecast, pace: Pace) -> None:
        self._policy = policy
        self._forecast = forecast
        self._pace = pace
        self._most_operations = 0
        """The largest number of operations of a wait so far."""
        self._single_marks: dict[str, _SingleMarks] = {}

    def place(self, entries: Sequence[TrackedOperation], conditions: Conditions) -> Placed:
        """Return the time of the next poll for the operations of one wait."""
        earliest, jitter, _, stretch = conditions
        wait = self._wait_of(entries, stretch)
        minimum = max(earliest - wait.polled_at, 0.0)
        self._most_operations = max(self._most_operations, len(entries))
        if self._most_operations >= CROWD and self._pace.is_ample():
            stretch, minimum = HURRY, minimum * HURRY
        seconds = delay(self._policy, wait.waited, jitter, wait.marks, minimum, stretch=stretch)
        planned_at = wait.polled_at + seconds
        if stretch <= 1:
            return Placed(planned_at)
        if wait.marks.seconds and wait.marks.are_complete:
            scout_at = self._explorer_at(wait, minimum, conditions)
        else:
            scout_at = self._scout_at(wait, minimum, conditions)
            if not wait.marks.seconds:
                planned_at = max(planned_at, self._patient_at(wait, conditions))
        longest = self._pace.longest_delay(self._policy.maximum, stretch, wait.waited)
        planned_at = min(planned_at, wait.polled_at + longest)
        return Placed(min(scout_at, planned_at), is_scout=scout_at < planned_at)

    def _wait_of(self, entries: Sequence[TrackedOperation], stretch: float) -> _Wait:
        groups: dict[str, Group] = {}
        started_at = max(entry.started_at for entry in entries)
        for entry in entries:
            if entry.record is not None:
                action = str(entry.record.action)
                group = groups.get(action)
                if group is None:
                    prediction = self._forecast.prediction(action, entry.ref.project_id)
                    group = Group(prediction, 0, entry.started_at - started_at)
                groups[action] = group.with_operation(entry.started_at - started_at)
            else:
                groups[""] = Group(UNKNOWN, 1, 0.0)
        marks = NO_MARKS if self._policy.growth == 1 else self._marks_of(groups, stretch)
        polled_at = max(entry.polled_at for entry in entries)
        return _Wait(tuple(sorted(groups)), started_at, polled_at, marks)

    def _marks_of(self, groups: Mapping[str, Group], stretch: float) -> Marks:
        """Return the marks of a wait. Thousands of waits for one operation have the same ones."""
        if len(groups) > 1 or any(group.operations > 1 for group in groups.values()):
            return marks_of([*groups.values()], stretch)
        [(action, group)] = groups.items()
        known = self._single_marks.get(action)
        if known is None or known.prediction is not group.prediction or known.stretch != stretch:
            known = _SingleMarks(group.prediction, stretch, marks_of([group], stretch))
            self._single_marks[action] = known
        return known.marks

    def _explorer_at(self, wait: _Wait, minimum: float, conditions: Conditions) -> float:
        """Return when to check whether durations have changed."""
        alone = delay(self._policy, wait.waited, conditions.jitter, minimum=minimum)
        at = max(wait.polled_at + alone, self._pace.explore_at(alone))
        return at + conditions.polls * ORDER_SECONDS

    def _scout_at(self, wait: _Wait, minimum: float, conditions: Conditions) -> float:
        """Return when to poll in order to measure the durations of such waits.

        A scout is polled at a greater age than all such waits that were seen pending.
        """
        self._pace.note_pending(wait.kind, wait.waited)
        age = self._pace.scouted_age(wait.kind)
        alone = delay(self._policy, age, NO_JITTER)
        at = max(
            wait.started_at + age + alone,
            self._pace.scout_at(alone, conditions.stretch),
            wait.polled_at + minimum,
        )
        return at + conditions.polls * ORDER_SECONDS

    def _patient_at(self, wait: _Wait, conditions: Conditions) -> float:
        """Return when to poll a wait that is no scout, and that no scout has helped so far."""
        age = self._pace.scouted_age(wait.kind)
        alone = delay(self._policy, age, NO_JITTER)
        patience = wait.polled_at + PATIENCE * conditions.stretch
        return max(patience, wait.started_at + age + alone)
