"""The time of the next poll of a project, without I/O. Times are on the loop's clock."""

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from neonctl_async.config import PollPolicy
from neonctl_async.models.operations import Operation
from neonctl_async.waiting.timing.forecast import Forecast, Observation
from neonctl_async.waiting.timing.history import age
from neonctl_async.waiting.timing.pace import CROWD, UNKNOWN_POLLS, LastPoll, Pace
from neonctl_async.waiting.timing.schedule import (
    Group,
    cheapest_poll,
    ends_of,
    growing_delay,
    is_constant,
    random_draw,
)
from neonctl_async.waiting.tracked import Queue, TrackedOperation

PRICE = 0.5
"""The cost of a poll, in seconds by which one wait returns late."""
LAST_POLL_MARGIN = 0.05
"""The shortest time between the last poll and the deadline, in seconds."""
LAST_POLLS_TOGETHER = 0.5
"""How long before a deadline a poll may be so that no other is needed, in seconds."""
FIRST_POLL_GAP = PollPolicy().initial
"""The longest time from a poll to the first poll of a reference added after it, in seconds."""
RECHECK = 1.0
"""The time after which a plan that depends on other projects is made again, in seconds."""


class _Wait:
    """The operations of a wait, or one operation of a wait that reports each of them."""

    __slots__ = (
        "at",
        "ends",
        "entries",
        "halfway",
        "is_measured",
        "is_steady",
        "polled_at",
        "polls",
        "required_at",
        "started_at",
    )

    def __init__(self) -> None:
        self.entries: dict[TrackedOperation, None] = {}
        self.ends: list[float] = []
        """Equally probable times of its end; empty without known durations."""
        self.at = math.inf
        """The time of its next poll at the latest, whatever its ends."""
        self.is_measured = False
        """True while its polls show how long unknown operations take."""
        self.is_steady = True
        """True if its next poll shall find the end of operations, and not confirm a failure."""
        self.polled_at = -math.inf
        self.started_at = -math.inf
        """The start of its newest poll; the time for which a long poll was planned."""
        self.polls = 0
        """The number of its polls so far."""
        self.required_at = math.inf
        """The time of a poll that comes without a gap after the one before."""
        self.halfway = -math.inf
        """Half of its time, before which its last poll does not come."""

    @property
    def is_claimed(self) -> bool:
        """True if polls are reading all its operations."""
        return all(entry.poll is not None for entry in self.entries)


def _key(entry: TrackedOperation, queue: Queue) -> object:
    """Return the key of the wait that needs an operation."""
    return (queue, entry) if queue.reports_each else queue


class PollPlan:
    """The time of the next poll of one project.

    A poll has a price, in seconds by which one wait returns late. If durations are known, the next
    poll, which serves all waits of the project, comes when the sum of price and lateness is least.
    If not, polls come at growing delays. While the rate budget is short, price and delays grow.
    Each deadline has a poll shortly before it.
    """

    def __init__(
        self,
        policy: PollPolicy,
        forecast: Forecast,
        pace: Pace,
        draw: Callable[[], float] = random_draw,
    ) -> None:
        self._policy = policy
        self._is_constant = is_constant(policy)
        self._forecast = forecast
        self._pace = pace
        self._draw = draw
        self._jitter = draw()
        self._waits: dict[object, _Wait] = {}
        self._outdated: dict[_Wait, None] = {}
        """The waits whose ends must be computed again."""
        self._at: float | None = None
        """The time of the next poll, None if it must be planned again."""
        self._stretch = 1.0
        """The stretch for which it was planned, and the scouts released until then."""
        self._released_scouts: int = 0
        self._depends_on_others = False
        """True if polls of other projects may change the plan."""
        self.polls: float = 0.0
        """The number of polls that the project will probably need, while the budget suffices."""
        self._numbers = itertools.count()
        self._deadlines: list[tuple[float, int, _Wait]] = []
        """A heap of the deadlines."""
        self._claimed_deadlines: list[tuple[float, int, _Wait]] = []
        """Those whose last poll cannot come before another poll releases their operations."""
        self._served_deadline = math.inf
        """The next deadline that needs a poll."""
        self._last_poll: LastPoll | None = None
        """The poll before it."""
        self._started_at = -math.inf
        """The start of the newest poll; the time for which a long poll was planned."""
        self._allows_long_polls = True
        self._seconds = 0.0
        """The duration of the requests of the newest poll that is over."""

    def add(self, entry: TrackedOperation, queue: Queue, now: float) -> None:
        """Plan polls for an operation that the wait of ``queue`` needs from now on."""
        key = _key(entry, queue)
        wait = self._waits.get(key)
        if wait is None:
            wait = self._waits[key] = _Wait()
            if now < queue.deadline - LAST_POLL_MARGIN < math.inf:
                wait.halfway = (now + queue.deadline) / 2
                heapq.heappush(self._deadlines, (queue.deadline, next(self._numbers), wait))
        wait.entries[entry] = None
        self._outdated[wait] = None

    def remove(self, entry: TrackedOperation, queue: Queue) -> None:
        """Plan no more polls of an operation for the wait of ``queue``."""
        key = _key(entry, queue)
        wait = self._waits.get(key)
        if wait is None or entry not in wait.entries:
            return
        del wait.entries[entry]
        self._outdated[wait] = None
        self._at = None
        if not wait.entries:
            del self._waits[key]
            if not self._waits:
                self._pace.release_scout(self)
                self._cancel_last_poll()

    def drop(self, entry: TrackedOperation) -> None:
        """Record that an operation is no longer polled."""
        for queue in entry.queues:
            self.remove(entry, queue)
        if entry.observation is not None:
            self._forecast.abandon(entry.observation)

    def replan(self) -> None:
        """Compute all ends again, because the forecast has changed."""
        self._outdated |= dict.fromkeys(self._waits.values())
        self._at = None

    def next_poll_at(self, now: float, longest_ahead: float = 0.0) -> float:
        """Return the time of the next poll, or an earlier time to call this again.

        The result is ``now`` or earlier if the poll is due, or inf if no wait needs one. A long
        poll is sent up to ``longest_ahead`` seconds before its time.
        """
        poll_at = self._due_at(now)
        ahead = longest_ahead if self._is_steady else 0.0
        poll_at -= ahead
        if now < poll_at < math.inf and self._depends_on_others:
            poll_at = min(poll_at, now + RECHECK)
        return min(poll_at, self.last_poll_at - ahead)

    def ahead(self, now: float, longest_ahead: float) -> float:
        """Return for how long the response to a poll that is sent now may be delayed, in seconds.

        This is the time until the poll is due, at most ``longest_ahead``. The result is 0 if the
        poll is due, or must not be a long poll.
        """
        due_at = min(self._due_at(now), self.last_poll_at)
        return max(min(due_at - now, longest_ahead), 0.0) if self._is_steady else 0.0

    def end_long_polls(self) -> None:
        """Send no poll ahead of its time any more: the server responds before anything changes."""
        self._allows_long_polls = False

    @property
    def _is_steady(self) -> bool:
        return self._allows_long_polls and all(wait.is_steady for wait in self._waits.values())

    def _due_at(self, now: float) -> float:
        """Return the time of the next poll, without those that deadlines require."""
        pace = (self._pace.stretch(), self._pace.released_scouts)
        if pace != (self._stretch, self._released_scouts):
            self._stretch, self._released_scouts = pace
            self.replan()
        self._note_changes()
        return self._plan(now) if self._at is None else self._at

    @property
    def last_poll_at(self) -> float:
        """The time of the poll before the next deadline; inf if none is planned."""
        while self._deadlines:
            deadline, _, wait = self._deadlines[0]
            if wait.entries and wait.is_claimed:
                self._claimed_deadlines.append(heapq.heappop(self._deadlines))
                continue
            if self._last_poll is None or self._served_deadline != deadline:
                self._cancel_last_poll()
                self._served_deadline = deadline
                latest = max(deadline - self.last_poll_margin, wait.halfway)
                self._last_poll = self._pace.book_last_poll(latest)
            served_from = min(self._last_poll.at, deadline - LAST_POLLS_TOGETHER)
            if wait.entries and wait.started_at < served_from:
                return self._last_poll.at
            heapq.heappop(self._deadlines)
        self._cancel_last_poll()
        return math.inf

    @property
    def last_poll_margin(self) -> float:
        """The time between a last poll and its deadline, unless the wait is too short."""
        return max(2 * self._seconds, LAST_POLL_MARGIN)

    def start_poll(self, entries: Iterable[TrackedOperation], at: float) -> None:
        """Record the start of a poll of these operations, planned for the time ``at``."""
        self._started_at = at
        for wait in self._waits_of(entries):
            wait.started_at = at
        self._jitter = self._draw()
        self.replan()

    def finish_poll(self, entries: Iterable[TrackedOperation], seconds: float, now: float) -> None:
        """Record that a poll releases these operations. Its requests took ``seconds`` so far."""
        while self._claimed_deadlines:
            heapq.heappush(self._deadlines, self._claimed_deadlines.pop())
        if self.last_poll_margin < 2 * seconds:
            self._cancel_last_poll()  # it has to come earlier
        self._seconds = seconds
        self._started_at = min(self._started_at, now)
        for wait in self._waits_of(entries):
            wait.started_at = min(wait.started_at, now)
            self._outdated[wait] = None

    def wants_history(self, project_id: str, ready: Sequence[TrackedOperation]) -> bool:
        """Return whether a list with finished operations would improve the timing of polls."""
        if self._is_constant or self._forecast.histories.has(project_id):
            return False
        return any(
            entry.record is None
            or not self._forecast.prediction(entry.record.action, project_id).quantiles
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

    def _waits_of(self, entries: Iterable[TrackedOperation]) -> Iterator[_Wait]:
        for entry in entries:
            for queue in entry.queues:
                wait = self._waits.get(_key(entry, queue))
                if wait is not None:
                    yield wait

    def _note_changes(self) -> None:
        """Compute the ends of changed waits. Drop the plan if one of them may end before it."""
        for wait in self._outdated:
            self._update(wait)
            earliest = min(wait.at, wait.required_at, *wait.ends[:1])
            if self._at is not None and earliest < self._at:
                self._at = None
        self._outdated.clear()

    def _plan(self, now: float) -> float:
        """Plan the next poll, and return its time."""
        # Polls in flight decide about the other waits.
        waits = [wait for wait in self._waits.values() if not wait.is_claimed]
        at = min((wait.at for wait in waits), default=math.inf)
        is_unknown = not all(wait.ends for wait in waits)
        if waits:
            self.polls = UNKNOWN_POLLS if is_unknown else 1.0
        self._depends_on_others = not self._is_constant and (is_unknown or self._stretch > 1)
        if ends := [end for wait in waits for end in wait.ends]:
            cheapest = cheapest_poll(ends, PRICE * self._stretch**2, now)
            at = min(at, cheapest.at)
            # Polls get rarer by the stretch, and without it, so many more would be needed.
            self.polls = max(self.polls, cheapest.polls * self._stretch)
        at = max(at, self._started_at + self._gap)
        self._at = min([at, *(wait.required_at for wait in waits)])
        return self._at

    @property
    def _gap(self) -> float:
        """The shortest time between the starts of two polls."""
        return self._policy.initial * (1 - self._policy.jitter)

    def _update(self, wait: _Wait) -> None:
        """Compute the ends of a wait, and the time at which it needs a poll at the latest."""
        wait.ends, wait.at, wait.required_at = [], math.inf, math.inf
        wait.is_measured = False
        wait.is_steady = True
        ready = [entry for entry in wait.entries if entry.poll is None]
        if not ready:
            return
        pending = [entry for entry in ready if not entry.has_new_failure]
        # Failures of a wait become final in the polls for its other operations.
        if not pending or any(entry.missing_final_at < math.inf for entry in pending):
            wait.required_at = min(entry.recheck_at for entry in ready)
        polled_at = max(entry.polled_at for entry in ready)
        wait.polls += polled_at > wait.polled_at > -math.inf
        wait.polled_at = polled_at
        if any(entry.record is None and not entry.was_polled for entry in pending):
            gap = min(self._gap, FIRST_POLL_GAP)
            wait.required_at = max(polled_at, self._started_at + gap)
        elif self._is_constant and pending:
            wait.at = polled_at + self._delay(0.0)
        elif pending:
            wait.at = self._latest(wait, pending, polled_at)
        is_failing = any(entry.failing_since < math.inf for entry in ready)
        wait.is_steady = wait.required_at == math.inf and not is_failing

    def _latest(self, wait: _Wait, pending: Sequence[TrackedOperation], polled_at: float) -> float:
        """Set the ends of a wait. Return the time of its next poll at the latest.

        Before the longest known duration, the ends decide alone. Afterwards, delays grow from that
        time on. They grow from the start if the end is unknown or an estimate.
        """
        started_at = max(entry.started_at for entry in pending)
        groups = self._groups(pending)
        unknown = [name for name, group in groups.items() if not group.prediction.quantiles]
        if unknown:
            return polled_at + self._delay_of_unknown(wait, unknown, polled_at - started_at)
        known_until = max(group.started_at + group.prediction.longest for group in groups.values())
        estimated = [name for name, group in groups.items() if not group.prediction.is_complete]
        if polled_at < known_until or estimated:
            wait.ends = ends_of([*groups.values()])
        if estimated:
            delay = self._delay_of_unknown(wait, estimated, polled_at - started_at)
        else:
            delay = self._stretch * self._delay(polled_at - known_until)
        latest = max(polled_at, known_until) + delay
        failing_since = min(entry.failing_since for entry in pending)
        if failing_since < math.inf:  # a failed poll does not show that they are pending
            retry_at = polled_at + self._stretch * self._delay(polled_at - failing_since)
            latest = min(latest, retry_at)
        return min(latest, polled_at + self._stretch * self._policy.maximum)

    def _delay_of_unknown(self, wait: _Wait, actions: Sequence[str], waited: float) -> float:
        """Return the delay while it is not known how long some actions take.

        Only scouts are polled as usual, and only a few times: the others profit from what these
        find.
        """
        delay = self._delay(waited)
        wait.is_measured = wait.polls < UNKNOWN_POLLS
        if wait.is_measured and self._pace.is_scout(self, actions):
            # The first delay is short. With few polls left, it must not be worth one of them.
            stretch = self._pace.stretch_of_scouts()
            return stretch * (delay + (stretch - 1) * self._policy.initial)
        if not any(one.is_measured for one in self._waits.values()):
            self._pace.release_scout(self)
        return delay * (max(self._stretch, CROWD) if wait.is_measured else self._stretch)

    def _delay(self, waited: float) -> float:
        return growing_delay(self._policy, max(waited, 0.0), self._jitter)

    def _groups(self, pending: Iterable[TrackedOperation]) -> dict[str, Group]:
        """Return the operations by action; the action of a reference is empty."""
        groups: dict[str, Group] = {}
        for entry in pending:
            action = str(entry.record.action) if entry.record else ""
            group = groups.get(action)
            if group is None:
                prediction = self._forecast.prediction(action, entry.ref.project_id)
                group = Group(prediction, 0, entry.started_at, entry.polled_at)
            groups[action] = Group(
                group.prediction,
                group.operations + 1,
                max(group.started_at, entry.started_at),
                max(group.pending_at, entry.polled_at),
            )
        return groups

    def _cancel_last_poll(self) -> None:
        if self._last_poll is not None:
            self._pace.cancel_last_poll(self._last_poll)
            self._last_poll = None


def duration(observation: Observation, record: Operation, now: float) -> float:
    """Return how long an operation took from its start, in seconds.

    This is the duration in its record, limited to the range that the polls allow. The record
    contains only the running time, without the time spent in the queue of another operation.
    """
    minimum, maximum = observation.pending_at - observation.started_at, now - observation.started_at
    if record.total_duration_ms is None:
        return (minimum + maximum) / 2
    return min(max(age(record), minimum), maximum)
