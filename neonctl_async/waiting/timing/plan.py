"""The time of the next poll of a project, without I/O. Times are on the loop's clock."""

import heapq
import itertools
import math
import random
from collections.abc import Callable, Iterable, Sequence

from neonctl_async.config import PollPolicy
from neonctl_async.models.operations import Operation
from neonctl_async.waiting.timing.forecast import Forecast
from neonctl_async.waiting.timing.history import age
from neonctl_async.waiting.timing.pace import LastPoll, Pace
from neonctl_async.waiting.timing.schedule import (
    NO_MARKS,
    POLLS,
    ROUNDING,
    Group,
    Marks,
    marks_of,
    next_delay,
)
from neonctl_async.waiting.tracked import Queue, TrackedOperation, duration

TOGETHER = 0.05
"""The time for which a poll waits for marks of other waits, as a share of the operation's age."""
UNKNOWN_POLLS = 3 * POLLS
"""The polls that a wait takes while nothing is known about the durations of its operations."""
LAST_POLL_MARGIN = 0.05
"""The shortest time between the last poll and the deadline, in seconds."""
LAST_POLLS_TOGETHER = 0.5
"""The longest time between a poll and a deadline that needs no other poll, in seconds."""


FIRST_POLL_GAP = 0.25
"""The longest time from a poll to the first poll of a reference that is added later, in seconds."""


def random_draw() -> float:
    """Return a random number from 0 to 1."""
    return random.random()  # noqa: S311 - spreads the load, protects no secret


class _Wait:
    """The operations of a wait, or one operation of a wait that reports each of them."""

    __slots__ = (
        "ends_by",
        "entries",
        "gap",
        "is_required",
        "marks",
        "passed",
        "polled_at",
        "polls",
        "unknown",
        "version",
    )

    def __init__(self) -> None:
        self.entries: dict[TrackedOperation, None] = {}
        self.unknown: tuple[str, ...] = ()
        """The actions whose durations are not known."""
        self.ends_by = math.inf
        """The time of its last mark, inf without known durations."""
        self.gap = 0.0
        """The shortest time from the newest poll of the project to that of its next mark."""
        self.is_required = False
        """True if its next mark requires a poll in any case."""
        self.passed = 0
        """The number of marks that have passed since the newest poll."""
        self.polled_at = -math.inf
        self.polls = 0
        """The number of polls so far."""
        self.marks = POLLS
        """The number of marks, which the rate budget limits."""
        self.version = 0
        """The number of times that its next mark was computed."""

    @property
    def started_at(self) -> float:
        """The start of the youngest operation."""
        return max((entry.started_at for entry in self.entries), default=math.inf)


class ProjectPlan:
    """The time of the next poll of one project.

    Each wait has a next mark: a time at which it probably ends. When a mark has passed, the poll
    waits a little for the marks of other waits: one poll serves all waits of the project. While the
    rate budget is short, waits have fewer marks. Each deadline has a poll shortly before it.
    """

    def __init__(
        self,
        policy: PollPolicy,
        forecast: Forecast,
        pace: Pace,
        draw: Callable[[], float] = random_draw,
    ) -> None:
        self._policy = policy
        self._is_constant = policy.growth == 1
        """True if polls have constant delays, which no duration and no budget changes."""
        self._forecast = forecast
        self._pace = pace
        self._draw = draw
        self._jitter = draw()
        self._waits: dict[object, _Wait] = {}
        self._outdated: dict[_Wait, None] = {}
        """The waits whose next mark must be computed."""
        self._marks: list[tuple[float, int, int, _Wait]] = []
        """A heap of the next marks, each with the version of its wait."""
        self._numbers = itertools.count()
        self._due: tuple[float, float, float] | None = None
        """The first mark that requires a poll, the age of its wait then, and its gap."""
        self._deadlines: list[tuple[float, int, _Wait]] = []
        """A heap of the deadlines."""
        self._served_deadline = math.inf
        """The next deadline that needs a poll."""
        self._last_poll: LastPoll | None = None
        """The poll before it."""
        self._started_at = -math.inf
        """The start of the newest poll."""
        self._seconds = 0.0
        """The duration of the newest poll that is over."""

    def add(self, entry: TrackedOperation, queue: Queue, now: float) -> None:
        """Plan polls for an operation that the wait of ``queue`` needs from now on."""
        key = (queue, entry) if queue.reports_each else queue
        wait = self._waits.get(key)
        if wait is None:
            wait = self._waits[key] = _Wait()
            if now < queue.deadline - self.last_poll_margin < math.inf:
                heapq.heappush(self._deadlines, (queue.deadline, next(self._numbers), wait))
        wait.entries[entry] = None
        self._outdated[wait] = None

    def remove(self, entry: TrackedOperation, queue: Queue) -> None:
        """Plan no more polls of an operation for the wait of ``queue``."""
        key = (queue, entry) if queue.reports_each else queue
        wait = self._waits.get(key)
        if wait is None or entry not in wait.entries:
            return
        del wait.entries[entry]
        self._outdated[wait] = None
        if not wait.entries:
            del self._waits[key]
            if not self._waits:
                self._pace.release_scout(self)
                self._cancel_last_poll()

    def drop(self, entry: TrackedOperation) -> None:
        """Record that an operation is not polled any more."""
        for queue in entry.queues:
            self.remove(entry, queue)
        if entry.observation is not None:
            self._forecast.abandon(entry.observation)

    @property
    def waits(self) -> int:
        """The number of waits, up to the number of marks: one poll serves many of them."""
        return min(len(self._waits), POLLS)

    def replan(self) -> None:
        """Compute all marks again, because the forecast has changed."""
        self._outdated |= dict.fromkeys(self._waits.values())

    def next_poll_at(self, now: float) -> float:
        """Return the time of the next poll, or an earlier time to call this again.

        The result is ``now`` or earlier if the poll is due, and inf without a mark.
        """
        self._update_marks()
        while self._marks and self._marks[0][0] <= now:
            at, _, version, wait = heapq.heappop(self._marks)
            if version == wait.version:
                self._pass(wait, at)
        poll_at = self._marks[0][0] if self._marks else math.inf
        if self._due is not None:
            due_at, waited, gap = self._due
            if poll_at > due_at + self._patience(waited):
                poll_at = due_at
            poll_at = max(poll_at, self._started_at + gap)
        return min(poll_at, self.last_poll_at)

    @property
    def last_poll_at(self) -> float:
        """The time of the poll before the next deadline, inf if none is planned."""
        while self._deadlines:
            deadline, _, wait = self._deadlines[0]
            if self._last_poll is None or self._served_deadline != deadline:
                self._cancel_last_poll()
                self._served_deadline = deadline
                self._last_poll = self._pace.book_last_poll(deadline - self.last_poll_margin)
            served_from = min(self._last_poll.at, deadline - LAST_POLLS_TOGETHER)
            if wait.entries and self._started_at < served_from:
                return self._last_poll.at
            heapq.heappop(self._deadlines)
        self._cancel_last_poll()
        return math.inf

    @property
    def last_poll_margin(self) -> float:
        """The time between the last poll of a wait and its deadline."""
        return max(2 * self._seconds, LAST_POLL_MARGIN)

    def start_poll(self, now: float) -> None:
        """Record the start of a poll of all operations that no poll reads yet."""
        self._started_at = now
        self._jitter = self._draw()
        self._due = None
        self._marks.clear()
        self._outdated.clear()

    def finish_poll(self, entries: Iterable[TrackedOperation], seconds: float) -> None:
        """Record the end of a poll of these operations, which took ``seconds``."""
        if self.last_poll_margin < 2 * seconds:
            self._cancel_last_poll()  # it has to come earlier
        self._seconds = seconds
        for entry in entries:
            for queue in entry.queues:
                wait = self._waits.get((queue, entry) if queue.reports_each else queue)
                if wait is not None:
                    self._outdated[wait] = None

    def wants_history(self, project_id: str, ready: Sequence[TrackedOperation]) -> bool:
        """Return whether a list with finished operations would make the next polls better."""
        if self._is_constant or self._forecast.histories.has(project_id):
            return False
        return any(
            entry.record is None
            or not self._forecast.prediction(entry.record.action, project_id).shares
            for entry in ready
        )

    def note_history(self, project_id: str, operations: Iterable[Operation]) -> None:
        """Record the durations of finished operations of a project that nobody waits for."""
        self._forecast.histories.note(project_id, operations)

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

    def _update_marks(self) -> None:
        for wait in self._outdated:
            ready = [entry for entry in wait.entries if entry.poll is None]
            wait.version += 1
            wait.passed = 0
            if ready:
                polled_at = max(entry.polled_at for entry in ready)
                wait.polls += polled_at > wait.polled_at > -math.inf
                wait.polled_at = polled_at
                self._push(wait, self._next_mark(wait, ready, wait.polled_at))
        self._outdated.clear()

    def _push(self, wait: _Wait, at: float) -> None:
        heapq.heappush(self._marks, (at, next(self._numbers), wait.version, wait))

    def _pass(self, wait: _Wait, at: float) -> None:
        """Record that a mark has passed: its wait requires a poll, or has a next mark."""
        wait.passed += 1
        if self._due is None and self._needs_poll(wait, at):
            self._due = (at, max(at - wait.started_at, 0.0), wait.gap)
        else:
            ready = [entry for entry in wait.entries if entry.poll is None]
            self._push(wait, max(self._next_mark(wait, ready, at), at + LAST_POLL_MARGIN))

    def _patience(self, waited: float) -> float:
        """Return how long a poll waits for marks of other waits."""
        return 0.0 if self._is_constant else TOGETHER * waited * self._pace.stretch()

    def _needs_poll(self, wait: _Wait, at: float) -> bool:
        """Return whether a mark of a wait requires a poll, or the budget is too short for it."""
        if self._is_constant or wait.is_required:
            return True
        if wait.polled_at < wait.ends_by - ROUNDING < math.inf:
            return at >= wait.ends_by - ROUNDING or wait.marks <= self._pace.marks()
        stretch = self._pace.stretch()
        is_new = wait.polls < UNKNOWN_POLLS
        if wait.unknown and is_new and self._pace.is_short_for(UNKNOWN_POLLS):
            if not self._pace.is_scout(self, wait.unknown):
                return at >= wait.polled_at + self._policy.maximum * stretch
            stretch = self._pace.stretch_of_scouts()
        return wait.passed >= round(stretch)

    def _next_mark(self, wait: _Wait, ready: Sequence[TrackedOperation], since: float) -> float:
        """Return the first time after ``since`` at which the wait probably ends."""
        recheck_at = min(entry.recheck_at for entry in ready)
        pending = [entry for entry in ready if not entry.has_new_failure]
        wait.gap, wait.is_required = 0.0, True
        if not pending:
            return recheck_at
        min_gap = self._policy.initial * (1 - self._policy.jitter)
        if any(entry.record is None and not entry.was_polled for entry in pending):
            wait.gap = min(min_gap, FIRST_POLL_GAP)
            return since
        started_at = max(entry.started_at for entry in pending)
        marks = self._marks_of(wait, pending, started_at)
        wait.ends_by = started_at + marks.seconds[-1] if marks.seconds else math.inf
        waited = since - started_at
        is_short = wait.marks < POLLS
        mark_at = since + next_delay(self._policy, waited, self._jitter, marks, is_short=is_short)
        is_missing = any(entry.missing_final_at < math.inf for entry in pending)
        if is_missing and recheck_at < mark_at:
            return recheck_at
        wait.gap, wait.is_required = min_gap, False
        return mark_at

    def _marks_of(
        self, wait: _Wait, pending: Sequence[TrackedOperation], started_at: float
    ) -> Marks:
        groups: dict[str, Group] = {}
        wait.marks = self._pace.marks()
        for entry in pending:
            if entry.record is None:
                wait.unknown = ("",)
                return NO_MARKS
            action = str(entry.record.action)
            known = groups.get(action)
            prediction = (
                known.prediction
                if known
                else (self._forecast.prediction(action, entry.ref.project_id))
            )
            later = entry.started_at - started_at
            groups[action] = Group(
                prediction,
                known.operations + 1 if known else 1,
                max(known.starts_after, later) if known else later,
            )
        wait.unknown = tuple(action for action, one in groups.items() if not one.prediction.shares)
        return NO_MARKS if self._is_constant else marks_of([*groups.values()], wait.marks)

    def _cancel_last_poll(self) -> None:
        if self._last_poll is not None:
            self._pace.cancel_last_poll(self._last_poll)
            self._last_poll = None
