"""The time of the next poll of a project, without I/O. Times are on the loop's clock."""

import math
import random
from collections.abc import Callable, Sequence

from neonctl_async.config import PollPolicy
from neonctl_async.models.operations import Operation
from neonctl_async.waiting import schedule
from neonctl_async.waiting.forecast import UNKNOWN, Forecast
from neonctl_async.waiting.pace import WHOLE_PROJECT_STRETCH, Pace
from neonctl_async.waiting.tracked import Queue, TrackedOperation, age, duration, queues_of

MIN_POLL_SHARE = 0.12
"""Shortest time between two polls, as a share of the wait for the youngest operation."""
MIN_POLL_GAP = 0.05
"""Shortest time between two polls that the schedule did not plan, in seconds."""
LAST_POLL_MARGIN = 0.05
"""Shortest time between the last poll and the deadline, in seconds."""

PATIENCE = 1.0
"""Seconds for which an operation waits for durations of others, times the stretch."""


def random_draw() -> float:
    """Return a random number from 0 to 1."""
    return random.random()  # noqa: S311 - spreads the load, protects no secret


class ProjectPlan:
    """The time of the next poll of one project.

    The plan reads the tracked operations, and the start and the duration of the newest poll. It
    adds the durations of the operations to the forecast that all projects of a client share.
    """

    def __init__(
        self,
        policy: PollPolicy,
        forecast: Forecast,
        pace: Pace,
        draw: Callable[[], float] = random_draw,
    ) -> None:
        self.next_poll_at: float = math.inf
        """The time of the next poll, inf if no poll is planned."""
        self._policy = policy
        self._min_delay = policy.initial * (1 - policy.jitter)
        self._max_delay = policy.maximum * (1 - policy.jitter)
        self._forecast = forecast
        self._pace = pace
        self.is_stretched = False
        self._is_scout = False
        self._polls = 0
        self._waits = 0
        self._draw = draw
        self._jitter = draw()
        self._poll_started_at = -math.inf
        self._poll_seconds = 0.0
        self._has_unseen = False

    def add(self, entry: TrackedOperation, queue: Queue, now: float) -> None:
        """Plan a poll for an operation that the wait of ``queue`` needs from now on."""
        if entry.record is None:
            self._has_unseen = True
            poll_at = self._first_poll_at(now)
        else:
            earliest = self._poll_started_at + self._min_delay
            stretch = self._pace.stretch() if self._policy.growth > 1 else 1.0
            self.is_stretched = stretch > 1
            poll_at = self._poll_of_wait_at([entry], earliest, stretch)
        self.next_poll_at = min(self.next_poll_at, poll_at, self._last_poll_at(queue, now))

    def note_waits(self, count: int) -> None:
        """Set the number of waits that this project's operations are pending for."""
        self._pace.note_waits(self._waits, count)
        self._waits = count

    def start_poll(self, now: float) -> None:
        """Record the start of a poll of all operations without a poll in progress."""
        self.next_poll_at = math.inf
        self._has_unseen = False
        self._poll_started_at = now
        self._polls += 1
        self._jitter = self._draw()

    def finish_poll(self, seconds: float) -> None:
        """Record the duration of a poll. Call :meth:`replan` afterwards."""
        self._poll_seconds = seconds

    def replan(self, ready: Sequence[TrackedOperation], now: float) -> None:
        """Set the time of the next poll: by the schedule, or just before a deadline.

        ``ready`` are the tracked operations without a poll in progress.
        """
        if self._has_unseen:
            self.next_poll_at = self._first_poll_at(now)
        elif ready:
            last_polls = (self._last_poll_at(queue, now) for queue in queues_of(ready))
            self.next_poll_at = min(self._scheduled_poll_at(ready), *last_polls)

    def last_deadline(self, now: float) -> float:
        """Return the latest deadline for which a poll at the time ``now`` is the last one."""
        return now + self._last_poll_margin + MIN_POLL_GAP

    def note_record(
        self, entry: TrackedOperation, record: Operation, now: float, *, is_settled: bool
    ) -> None:
        """Add the newest record of an operation to the forecast, before ``entry`` has it."""
        if entry.record is None:
            entry.started_at -= age(record)
            if not is_settled:
                entry.observation = self._forecast.observe(record.action, entry.started_at)
        if entry.observation is None:
            return
        if is_settled:
            seconds = duration(entry.observation, record, now)
            self._forecast.note_finished(entry.observation, seconds)
        else:
            self._forecast.note_pending(entry.observation, now)

    def remove(self, entry: TrackedOperation) -> None:
        """Record that an operation is not polled any more."""
        if entry.observation is not None:
            self._forecast.abandon(entry.observation)

    def _scheduled_poll_at(self, ready: Sequence[TrackedOperation]) -> float:
        recheck_at = min(entry.recheck_at for entry in ready)
        pending = [entry for entry in ready if not entry.has_new_failure]
        return min(recheck_at, self._poll_of_pending_at(pending)) if pending else recheck_at

    def _poll_of_pending_at(self, ready: Sequence[TrackedOperation]) -> float:
        stretch = self._pace.stretch() if self._policy.growth > 1 else 1.0
        self.is_stretched = stretch > 1
        self._is_scout = False
        youngest = max(ready, key=lambda entry: entry.started_at)
        # Among many predictions one is always near. The gap keeps the number of polls small.
        waited = self._poll_started_at - youngest.started_at
        gap = max(min(MIN_POLL_SHARE * waited, self._max_delay), self._min_delay)
        if self._forecast.is_empty and stretch == 1:
            # Without history, the youngest operation alone sets the delay.
            return self._poll_of_wait_at([youngest], self._poll_started_at + gap, 1.0)
        earliest = self._poll_started_at + gap * stretch
        polls = [self._poll_of_wait_at(wait, earliest, stretch) for wait in _waits(ready)]
        return max(polls) if stretch > WHOLE_PROJECT_STRETCH else min(polls)

    def _poll_of_wait_at(
        self, entries: Sequence[TrackedOperation], earliest: float, stretch: float
    ) -> float:
        groups = self._groups(entries)
        started_at = max(entry.started_at for entry in entries)
        polled_at = max(entry.polled_at for entry in entries)
        marks = schedule.marks_of(
            [group._replace(starts_after=group.starts_after - started_at) for group in groups],
            stretch,
        )
        minimum = max(earliest - polled_at, 0.0)
        waited = polled_at - started_at
        planned_at = polled_at + schedule.delay(
            self._policy, waited, self._jitter, marks, minimum, stretch
        )
        if stretch == 1:
            return planned_at
        if marks.seconds and marks.is_complete:
            alone = schedule.delay(self._policy, waited, self._jitter, minimum=minimum)
            scout_at = max(polled_at + alone, self._pace.explore_at(alone, self._polls))
            self._is_scout = scout_at < planned_at
            return min(scout_at, planned_at)
        kind = tuple(sorted({str(entry.record.action) for entry in entries if entry.record}))
        self._pace.note_pending(kind, waited)
        age = self._pace.scouted_age(kind)
        alone = schedule.delay(self._policy, age, self._jitter)
        if not marks.seconds:
            planned_at = max(planned_at, polled_at + PATIENCE * stretch, started_at + age + alone)
        scout_at = max(
            started_at + age + alone,
            self._pace.scout_at(alone, self._polls, stretch),
            polled_at + minimum,
        )
        self._is_scout = scout_at < planned_at
        return min(scout_at, planned_at)

    def _groups(self, entries: Sequence[TrackedOperation]) -> list[schedule.Group]:
        """Return the operations of a wait by action. Their starts are on the loop's clock."""
        groups: dict[str, schedule.Group] = {}
        for entry in entries:
            if entry.record is None or self._policy.growth == 1:
                return [schedule.Group(UNKNOWN, 1, entry.started_at)]
            action = entry.record.action
            known = groups.get(action)
            if known is None:
                prediction = self._forecast.prediction(action)
                groups[action] = schedule.Group(prediction, 1, entry.started_at)
            else:
                groups[action] = known._replace(
                    operations=known.operations + 1,
                    starts_after=max(known.starts_after, entry.started_at),
                )
        return list(groups.values())

    def claim(self, now: float) -> None:
        """Record that a poll was asked for now, so that no other project scouts with it."""
        if self._is_scout:
            self._pace.note_scout(now)
            self._is_scout = False

    def _first_poll_at(self, now: float) -> float:
        """Return when to poll operations without a record: now, or together after MIN_POLL_GAP."""
        return max(now, self._poll_started_at + MIN_POLL_GAP)

    def _last_poll_at(self, queue: Queue, now: float) -> float:
        """Return when to poll before a deadline. One poll serves deadlines close together."""
        poll_at = queue.deadline - self._last_poll_margin
        return max(poll_at, self._poll_started_at + MIN_POLL_GAP) if poll_at > now else math.inf

    @property
    def _last_poll_margin(self) -> float:
        return max(2 * self._poll_seconds, LAST_POLL_MARGIN)


def _waits(ready: Sequence[TrackedOperation]) -> list[list[TrackedOperation]]:
    """Return the operations of each wait. A wait that reports each operation counts for each."""
    waits: dict[object, list[TrackedOperation]] = {}
    for entry in ready:
        for queue in entry.queues:
            key = (queue, entry) if queue.reports_each else queue
            waits.setdefault(key, []).append(entry)
    return list(waits.values())
