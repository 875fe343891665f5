"""The time of the next poll of a project, without I/O. Times are on the loop's clock."""

import math
import random
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from neonctl_async.config import PollPolicy
from neonctl_async.models.operations import Operation
from neonctl_async.waiting.timing.forecast import Forecast
from neonctl_async.waiting.timing.history import age
from neonctl_async.waiting.timing.pace import WHOLE_PROJECT_STRETCH, Pace
from neonctl_async.waiting.timing.placement import CROWD, Conditions, Placement
from neonctl_async.waiting.tracked import Queue, TrackedOperation, duration, queues_of

MIN_POLL_SHARE = 0.12
"""Shortest time between two polls, as a share of the wait for the youngest operation."""
MIN_POLL_SHARE_OF_CROWD = 0.04
"""The same for CROWD or more waits."""
MIN_POLL_GAP = 0.05
"""Shortest time between two polls that the schedule did not plan, in seconds."""
MOST_DOUBLINGS = 10
"""The number of times that the gap between the first polls of waits doubles at most."""
LAST_POLL_MARGIN = 0.05
"""Shortest time between the last poll and the deadline, in seconds."""


def random_draw() -> float:
    """Return a random number from 0 to 1."""
    return random.random()  # noqa: S311 - spreads the load, protects no secret


class _Poll(NamedTuple):
    """The newest poll of a project."""

    number: int
    started_at: float
    jitter: float
    seconds: float = 0.0
    """The duration of the newest poll that is over."""


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
        self.is_stretched: bool = False
        """True if the plan depends on the rate budget, and has to be made again now and then."""
        self._policy = policy
        self._forecast = forecast
        self._pace = pace
        self._placement = Placement(policy, forecast, pace)
        self._draw = draw
        self._poll = _Poll(0, -math.inf, draw())
        self._waits = 0
        self._has_unseen = False
        self._first_polls = 0
        """The number of polls in a row that an operation without a record required."""
        self._first_poll_by = math.inf
        """The time before which a deadline requires such a poll."""
        self._is_scout = False

    def add(self, entry: TrackedOperation, queue: Queue, now: float) -> None:
        """Plan a poll for an operation that the wait of ``queue`` needs from now on."""
        if entry.record is None:
            self._has_unseen = True
            last_poll_at = queue.deadline - self.last_poll_margin
            self._first_poll_by = min(self._first_poll_by, last_poll_at)
            poll_at = self._first_poll_at(now)
        else:
            poll_at = self._scheduled_poll_at([entry])
        self.next_poll_at = min(self.next_poll_at, poll_at, self._last_poll_at(queue, now))

    def note_waits(self, count: int) -> None:
        """Set the number of waits that this project's operations are pending for."""
        self._pace.note_waits(self._waits, count)
        self._waits = count

    def wants_history(self, ready: Sequence[TrackedOperation]) -> bool:
        """Return whether a list with finished operations would make the next polls better."""
        return self._policy.growth > 1 and any(
            entry.record is not None
            and not self._forecast.histories.has(entry.ref.project_id)
            and not self._forecast.prediction(entry.record.action, entry.ref.project_id).shares
            for entry in ready
        )

    def note_history(self, project_id: str, operations: Iterable[Operation]) -> None:
        """Record the durations of finished operations of a project that nobody waits for."""
        self._forecast.histories.note(project_id, operations)

    def start_poll(self, now: float) -> None:
        """Record the start of a poll of all operations without a poll in progress."""
        self.next_poll_at = math.inf
        self._first_polls = self._first_polls + 1 if self._has_unseen else 0
        self._has_unseen = False
        self._first_poll_by = math.inf
        self._poll = _Poll(self._poll.number + 1, now, self._draw(), self._poll.seconds)

    def finish_poll(self, seconds: float) -> None:
        """Record the duration of a poll. Call :meth:`replan` afterwards."""
        self._poll = self._poll._replace(seconds=seconds)

    def replan(self, ready: Sequence[TrackedOperation], now: float) -> None:
        """Set the time of the next poll: by the schedule, or just before a deadline.

        ``ready`` are the tracked operations without a poll in progress.
        """
        if self._has_unseen or ready:
            first_poll_at = self._first_poll_at(now) if self._has_unseen else math.inf
            scheduled_at = self._scheduled_poll_at(ready) if ready else math.inf
            last_polls = (self._last_poll_at(queue, now) for queue in queues_of(ready))
            self.next_poll_at = min(first_poll_at, scheduled_at, *last_polls)

    def claim(self, now: float) -> None:
        """Record that the planned poll starts now. If it is a scout, other scouts come later."""
        if self._is_scout:
            self._pace.note_scout(now)
            self._is_scout = False

    @property
    def recheck_seconds(self) -> float:
        """The time after which the plan has to be made again, inf if it stays valid."""
        return self._pace.recheck_seconds() if self.is_stretched else math.inf

    @property
    def last_poll_margin(self) -> float:
        """The time between the last poll of a wait and its deadline."""
        return max(2 * self._poll.seconds, LAST_POLL_MARGIN)

    def note_record(
        self, entry: TrackedOperation, record: Operation, now: float, *, is_settled: bool
    ) -> None:
        """Add the newest record of an operation to the forecast, before ``entry`` has it."""
        if entry.record is None:
            entry.started_at -= age(record)
            if not is_settled:
                entry.observation = self._forecast.observe(
                    record.project_id, record.action, entry.started_at
                )
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
        stretch = self._pace.stretch() if self._policy.growth > 1 else 1.0
        self.is_stretched = stretch > 1
        pending = [entry for entry in ready if not entry.has_new_failure]
        poll_at = _recheck_at(ready, pending, stretch)
        return min(poll_at, self._poll_of_pending_at(pending, stretch)) if pending else poll_at

    def _poll_of_pending_at(self, ready: Sequence[TrackedOperation], stretch: float) -> float:
        youngest = max(ready, key=lambda entry: entry.started_at)
        waits = _waits(ready)
        gap = self._gap(len(waits), self._poll.started_at - youngest.started_at)
        earliest = self._poll.started_at + gap * stretch
        conditions = Conditions(earliest, self._poll.jitter, self._poll.number, stretch)
        polls = [self._placement.place(wait, conditions) for wait in waits]
        # One poll serves all waits of the project if there are hardly any.
        poll = max(polls) if stretch > WHOLE_PROJECT_STRETCH else min(polls)
        self._is_scout = poll.is_scout
        return poll.at

    def _gap(self, waits: int, waited: float) -> float:
        """Return the shortest time between two polls of the schedule, in seconds.

        Among the marks of many waits one is always near. The gap keeps the number of polls small.
        If the rate budget is ample, many waits are worth more polls.
        """
        if waits == 1:
            return self._min_delay
        crowd = min(waits / CROWD, 1.0) if self._pace.is_ample() else 0.0
        share = MIN_POLL_SHARE - (MIN_POLL_SHARE - MIN_POLL_SHARE_OF_CROWD) * crowd
        longest = self._policy.maximum * (1 - self._policy.jitter)
        return max(min(share * waited, longest), self._min_delay)

    @property
    def _min_delay(self) -> float:
        return self._policy.initial * (1 - self._policy.jitter)

    def _first_poll_at(self, now: float) -> float:
        """Return when to poll operations without a record: now, or together after a gap.

        The gap doubles while waits join one after another: each of them would start a poll. A
        deadline ends it early.
        """
        longest = max(self._min_delay, MIN_POLL_GAP)
        doublings = min(max(self._first_polls - 1, 0), MOST_DOUBLINGS)
        gap = min(MIN_POLL_GAP * 2.0**doublings, longest)
        poll_at = min(self._poll.started_at + gap, self._first_poll_by)
        return max(now, self._poll.started_at + MIN_POLL_GAP, poll_at)

    def _last_poll_at(self, queue: Queue, now: float) -> float:
        """Return when to poll before a deadline. One poll serves deadlines close together."""
        poll_at = queue.deadline - self.last_poll_margin
        return max(poll_at, self._poll.started_at + MIN_POLL_GAP) if poll_at > now else math.inf


def _recheck_at(
    ready: Sequence[TrackedOperation], pending: Sequence[TrackedOperation], stretch: float
) -> float:
    """Return when to poll failures and 404s again, inf if the next planned poll is early enough.

    A wait that also needs pending operations, and does not report each, needs no earlier poll.
    """
    unfinished = queues_of(pending)
    return min(
        (
            entry.polled_at + stretch * (entry.recheck_at - entry.polled_at)
            for entry in ready
            if not entry.has_new_failure
            or any(queue.reports_each or queue not in unfinished for queue in entry.queues)
        ),
        default=math.inf,
    )


def _waits(ready: Sequence[TrackedOperation]) -> list[list[TrackedOperation]]:
    """Return the operations of each wait. A wait that reports each operation counts for each."""
    waits: dict[object, list[TrackedOperation]] = {}
    for entry in ready:
        for queue in entry.queues:
            key = (queue, entry) if queue.reports_each else queue
            waits.setdefault(key, []).append(entry)
    return list(waits.values())
