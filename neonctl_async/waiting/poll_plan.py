"""The time of the next poll of a project, without I/O. Times are on the loop's clock."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from neonctl_async.config import PollPolicy
from neonctl_async.models.operations import Operation
from neonctl_async.waiting.timing.forecast import Forecast, Observation, age
from neonctl_async.waiting.timing.pace import CROWD, UNKNOWN_POLLS, Booking, Bookings, Pace
from neonctl_async.waiting.timing.schedule import (
    Group,
    cheapest_poll,
    ends_of,
    growing_delay,
    is_constant,
    random_draw,
)
from neonctl_async.waiting.tracked import OperationWait, TrackedOperation

PRICE = 0.5
"""The cost of a poll, in seconds: a wait may return this much late if that saves a poll."""
MIN_PRICE = 0.03
"""The minimum cost of a poll, while the minute's budget is almost unused. With a lower value, waits
of one second send more requests than a loop that reads each operation every second."""
LAST_POLLS_TOGETHER = 0.9
"""A poll within this share of the safe margin before a deadline counts as the last poll."""
RETRY_MAXIMUM = 0.8
"""The longest delay after a failed poll, as a share of the longest usual delay, so that the end of
an outage is noticed a little sooner."""
FIRST_POLL_GAP = PollPolicy().initial
"""The longest time, in seconds, from a poll to the first poll of a reference added later."""
RECHECK = 1.0
"""The longest time, in seconds, until a project notices effects of other projects' polls."""


class _Timing:
    """The timing of a wait, or of one operation if the wait reports each change."""

    __slots__ = (
        "at",
        "deadline",
        "ends",
        "entries",
        "halfway",
        "is_measured",
        "polled_at",
        "polls",
        "required_at",
        "required_from",
        "started_at",
    )

    def __init__(self, now: float, deadline: float) -> None:
        self.entries: dict[TrackedOperation, None] = {}
        self.deadline: float = deadline if now < deadline else math.inf
        """The time before which the wait needs a last poll; inf if it needs none."""
        self.halfway: float = (now + deadline) / 2
        """The time when half of the wait's timeout has passed. Its last poll is sent no earlier."""
        self.required_from: float = -math.inf
        """The time from which the wait needs one more poll at once; -inf if it does not."""
        self.ends: list[float] = []
        """Equally probable end times of the wait; empty if durations are unknown."""
        self.at = math.inf
        """The latest time for the wait's next poll, regardless of ``ends``."""
        self.is_measured = False
        """True while the wait's polls measure how long operations of unknown duration take."""
        self.polled_at = -math.inf
        self.started_at = -math.inf
        """The start of the wait's latest poll."""
        self.polls = 0
        """The number of polls for the wait so far."""
        self.required_at = math.inf
        """The time of a poll that needs no gap after the previous poll; inf if there is none."""

    @property
    def is_claimed(self) -> bool:
        """True if polls are reading all operations of the wait."""
        return all(entry.poll is not None for entry in self.entries)

    def last_poll_at(self, margin: float, safe_margin: float) -> float:
        """Return when the last poll is due, ``margin`` before the deadline; inf if it was sent."""
        served_from = self.deadline - LAST_POLLS_TOGETHER * safe_margin
        if self.started_at >= max(served_from, self.halfway):
            return math.inf
        return max(self.deadline - margin, self.halfway)


class _LastPoll:
    """The booked poll before the next deadline that needs one."""

    def __init__(self, bookings: Bookings) -> None:
        self.at: float = math.inf
        """The booked time; inf if no poll is booked."""
        self.margin: float = math.inf
        """The margin with which the poll was booked."""
        self._bookings = bookings
        self._booking: Booking | None = None
        self._deadline = math.inf

    def book(self, timings: Iterable[_Timing], margin: float, safe_margin: float) -> None:
        """Book the poll for these waits, in place of the previous booking."""
        self.cancel()
        self.margin = margin
        latest, deadline = math.inf, math.inf
        for timing in timings:
            if (at := timing.last_poll_at(margin, safe_margin)) < latest:
                latest, deadline = at, timing.deadline
        if latest < math.inf:
            self._booking = self._bookings.book(latest, -1)
            self._deadline = deadline
            self.at = self._booking.at

    def serves(self, timing: _Timing, now: float) -> bool:
        """Return whether a poll that starts now is the last one before a wait's deadline."""
        return now >= self.at and timing.deadline <= self._deadline

    def cancel(self) -> None:
        """Cancel the booking, if any."""
        self.at = math.inf
        if self._booking is not None:
            self._bookings.cancel(self._booking)
            self._booking = None


class _Retry:
    """The booked poll after a failed poll."""

    def __init__(self, bookings: Bookings) -> None:
        self._bookings = bookings
        self._booking: Booking | None = None
        self._failed_at = -math.inf

    def book(self, at: float, failed_at: float) -> float:
        """Book the poll after a failure, at ``at`` or later, and return its time.

        Later calls for the same failure return the same time.
        """
        if self._booking is None or self._failed_at < failed_at:
            self.cancel()
            self._failed_at = failed_at
            self._booking = self._bookings.book(at, 1)
        return self._booking.at

    def cancel(self) -> None:
        """Cancel the booking, if any."""
        if self._booking is not None:
            self._bookings.cancel(self._booking)
            self._booking = None


def _key(entry: TrackedOperation, wait: OperationWait) -> object:
    """Return the key of the timing that covers an operation of ``wait``."""
    return (wait, entry) if wait.reports_each else wait


class PollPlan:
    """The time of the next poll of one project.

    A poll has a price, expressed as seconds by which one wait returns late. If durations are known,
    the next poll, which serves all waits of the project, is planned for the time at which the sum
    of price and lateness is lowest. Otherwise, the delays between polls grow. While the rate budget
    runs low, price and delays are higher. A poll is also planned shortly before each deadline.
    """

    def __init__(
        self,
        policy: PollPolicy,
        forecast: Forecast,
        pace: Pace,
        draw: Callable[[], float] = random_draw,
    ) -> None:
        self._policy = policy
        self._forecast = forecast
        self._pace = pace
        self._draw = draw
        self._jitter = draw()
        self._timings: dict[object, _Timing] = {}
        self._outdated: dict[_Timing, None] = {}
        """The timings whose ends must be computed again."""
        self._at: float | None = None
        """The time of the next poll, or None if it must be planned again."""
        self._stretch = 1.0
        self._planned_pace: object = None
        """The values behind the plan that polls of other projects can change."""
        self.polls: float = UNKNOWN_POLLS
        """The number of polls that the project will probably need, as long as the budget
        suffices."""
        self._last_poll = _LastPoll(pace.last_polls)
        self._retry = _Retry(pace.retries)
        self._started_at = -math.inf
        """The start of the latest poll."""

    def add(self, entry: TrackedOperation, wait: OperationWait, now: float) -> None:
        """Plan polls for an operation that ``wait`` needs from now on."""
        key = _key(entry, wait)
        timing = self._timings.get(key)
        if timing is None:
            timing = self._timings[key] = _Timing(now, wait.deadline)
        timing.entries[entry] = None
        self._outdated[timing] = None

    def remove(self, entry: TrackedOperation, wait: OperationWait) -> None:
        """Stop planning polls for an operation that ``wait`` no longer needs."""
        key = _key(entry, wait)
        timing = self._timings.get(key)
        if timing is None or entry not in timing.entries:
            return
        del timing.entries[entry]
        self._outdated[timing] = None
        self._at = None
        if not timing.entries:
            del self._timings[key]
            if not self._timings:
                self._pace.release_scout(self)
                self._last_poll.cancel()
                self._retry.cancel()

    def drop(self, entry: TrackedOperation) -> None:
        """Record that an operation is no longer polled."""
        for wait in entry.waits:
            self.remove(entry, wait)
        if entry.observation is not None:
            self._forecast.abandon(entry.observation)

    def replan(self) -> None:
        """Discard the plan and all ends. They are computed again when they are needed."""
        self._outdated |= dict.fromkeys(self._timings.values())
        self._at = None

    def require(self, wait: OperationWait, now: float) -> None:
        """Plan an immediate poll of all operations that ``wait`` still needs."""
        for key, timing in self._timings.items():
            if key is wait or (isinstance(key, tuple) and key[0] is wait):
                timing.required_from = now
                self._outdated[timing] = None

    def next_poll_at(self, now: float) -> float:
        """Return the time of the next poll, or an earlier time at which to call this again.

        The result is ``now`` or earlier if the poll is due, and inf if no wait needs a poll.
        """
        shared = self._pace
        pace = (shared.stretch(), shared.released_scouts, shared.recovered_at, shared.is_out)
        if pace != self._planned_pace:
            self._planned_pace = pace
            self._stretch = pace[0]
            self.replan()
        if self._last_poll.margin != self.margin:
            self._at = None
        self._note_changes()
        if self._at is None:
            self._at = self._plan(now)
        at = min(self._at, self._last_poll.at)
        return at if at <= now or at == math.inf else min(at, now + RECHECK)

    def start_poll(self, entries: Iterable[TrackedOperation], now: float) -> None:
        """Record the start of a poll of these operations."""
        for timing in self._timings_of(entries):
            timing.started_at = now
            if self._last_poll.serves(timing, now):
                timing.deadline = math.inf
        self._started_at = now
        self._jitter = self._draw()
        self._last_poll.cancel()
        self.replan()

    def release(self, entries: Iterable[TrackedOperation]) -> None:
        """Record that a poll has released these operations."""
        for timing in self._timings_of(entries):
            self._outdated[timing] = None
        self._at = None

    def note_response(self, seconds: float, now: float) -> None:
        """Record that the requests of a poll took ``seconds``, and at least one succeeded."""
        self._pace.note_response(seconds, now, self._policy.maximum)

    @property
    def has_room(self) -> bool:
        """True if delays may grow, and the minute has ``ROOM`` slots left for each poll needed."""
        return not is_constant(self._policy) and self._pace.has_room

    @property
    def last_poll_at(self) -> float:
        """The time of the poll before the next deadline; inf if none is planned."""
        return self._last_poll.at

    @property
    def margin(self) -> float:
        """The time between a last poll and its deadline, unless the wait is too short."""
        return self._pace.margin

    @property
    def safe_margin(self) -> float:
        """How long before a deadline polls start to read all operations of the wait."""
        return self._pace.safe_margin

    def note_failure(self) -> None:
        """Record that a request of a poll failed and will be repeated."""
        self._pace.note_failure()

    def wants_history(self, project_id: str, ready: Sequence[TrackedOperation]) -> bool:
        """Return whether a list with finished operations would improve the timing of polls."""
        if is_constant(self._policy) or self._forecast.histories.has(project_id):
            return False
        return any(
            entry.record is None
            or not self._forecast.prediction(entry.record.action, project_id).quantiles
            for entry in ready
        )

    def note_history(self, project_id: str, operations: Iterable[Operation]) -> None:
        """Record the durations of a project's finished operations that no wait needs."""
        self._forecast.histories.note(project_id, operations)

    def note_record(
        self, entry: TrackedOperation, record: Operation, now: float, *, is_settled: bool
    ) -> None:
        """Add a new record to the forecast. Call this before the record is stored in ``entry``."""
        if entry.record is None:
            entry.started_at = min(entry.started_at, now - age(record))
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

    def _timings_of(self, entries: Iterable[TrackedOperation]) -> Iterator[_Timing]:
        for entry in entries:
            for wait in entry.waits:
                timing = self._timings.get(_key(entry, wait))
                if timing is not None:
                    yield timing

    def _note_changes(self) -> None:
        """Compute the ends of changed waits. Discard the plan if a wait needs an earlier poll."""
        margin, safe_margin = self.margin, self.safe_margin
        for timing in self._outdated:
            self._update(timing)
            if self._at is None:
                continue
            earliest = min(timing.at, timing.required_at, *timing.ends[:1])
            last_poll_at = timing.last_poll_at(margin, safe_margin)
            if earliest < self._at or last_poll_at < self._last_poll.at:
                self._at = None
        self._outdated.clear()

    def _plan(self, now: float) -> float:
        """Plan the next poll and return its time. Book the last poll before a deadline."""
        # The other waits are planned when the polls in flight are over.
        timings = [timing for timing in self._timings.values() if not timing.is_claimed]
        at = min((timing.at for timing in timings), default=math.inf)
        is_unknown = not all(timing.ends for timing in timings)
        if timings:
            self.polls = UNKNOWN_POLLS if is_unknown else 1.0
        if ends := [end for timing in timings for end in timing.ends]:
            cheapest = cheapest_poll(ends, max(PRICE * self._stretch**2, MIN_PRICE), now)
            at = min(at, cheapest.at)
            # The stretch makes polls rarer. Without it, that many more would be needed.
            self.polls = max(self.polls, cheapest.polls * self._stretch)
        if self._stretch <= 1:
            for timing in timings:
                safe_at = timing.last_poll_at(self.safe_margin, self.safe_margin)
                if timing.started_at < safe_at:
                    at = min(at, safe_at)
        at = max(at, self._started_at + self._gap)
        self._last_poll.book(timings, self.margin, self.safe_margin)
        return min([at, *(timing.required_at for timing in timings)])

    @property
    def _gap(self) -> float:
        """The shortest time between the starts of two polls."""
        return self._policy.initial * (1 - self._policy.jitter)

    def _update(self, timing: _Timing) -> None:
        """Compute the ends of a wait, and the latest time at which it needs a poll."""
        timing.ends, timing.at, timing.required_at = [], math.inf, math.inf
        timing.is_measured = False
        ready = [entry for entry in timing.entries if entry.poll is None]
        if not ready:
            return
        pending = [entry for entry in ready if not entry.has_new_failure]
        # Failures of a wait become final in the polls for its other operations.
        if not pending or any(entry.missing_final_at < math.inf for entry in pending):
            timing.required_at = min(entry.recheck_at for entry in ready)
        if timing.started_at < timing.required_from:
            timing.required_at = min(timing.required_at, timing.required_from)
        polled_at = max(entry.polled_at for entry in ready)
        timing.polls += polled_at > timing.polled_at > -math.inf
        timing.polled_at = polled_at
        if any(entry.record is None and not entry.was_polled for entry in pending):
            gap = min(self._gap, FIRST_POLL_GAP)
            first_at = max(polled_at, self._started_at + gap)
            timing.required_at = min(timing.required_at, first_at)
            return
        if is_constant(self._policy) and pending:
            timing.at = polled_at + self._delay(0.0, stretch=1.0)
            return
        is_out = self._pace.is_out
        failing = [one for one in pending if is_out or one.failing_since < math.inf]
        seen = [one for one in pending if not is_out and one.failing_since == math.inf]
        if seen:
            timing.at = self._latest(timing, seen, max(entry.polled_at for entry in seen))
        if failing:
            timing.at = min(timing.at, self._retry_at(failing))

    def _latest(
        self, timing: _Timing, pending: Sequence[TrackedOperation], polled_at: float
    ) -> float:
        """Set the ends of a wait. Return the latest time of its next poll.

        Until the longest known duration has passed, only the ends determine the next poll. From
        then on, delays grow. If the end is unknown or an estimate, delays grow from the start.
        """
        started_at = max(entry.started_at for entry in pending)
        groups = self._groups(pending)
        unknown = [name for name, group in groups.items() if not group.prediction.quantiles]
        if unknown:
            return polled_at + self._delay_of_unknown(timing, unknown, polled_at - started_at)
        known_until = max(group.started_at + group.prediction.longest for group in groups.values())
        estimated = [name for name, group in groups.items() if not group.prediction.is_complete]
        if polled_at < known_until or estimated:
            timing.ends = ends_of([*groups.values()])
        if estimated:
            delay = self._delay_of_unknown(timing, estimated, polled_at - started_at)
        else:
            delay = self._delay(polled_at - known_until)
        latest = max(polled_at, known_until) + delay
        maximum = self._policy.maximum
        latest = min(latest, polled_at + max(self._stretch, 1.0) * maximum)
        if timing.ends:
            latest = min(latest, max(polled_at, timing.ends[0]) + self._stretch * maximum)
        return latest

    def _retry_at(self, failing: Sequence[TrackedOperation]) -> float:
        """Return the time of the poll after a failed poll.

        Forecasts are ignored, because a failed poll shows nothing about the operations. Delays grow
        from the first failure on. In an outage, the retries of all projects share a part of the
        limit.
        """
        failed_at = max(entry.polled_at for entry in failing)
        waited = failed_at - min(entry.failing_since for entry in failing)
        stretch = max(self._stretch, 1.0)
        longest = RETRY_MAXIMUM * stretch * self._policy.maximum
        at = failed_at + min(self._delay(waited, stretch), longest)
        return at if self._pace.recovered_at > failed_at else self._retry.book(at, failed_at)

    def _delay_of_unknown(self, timing: _Timing, actions: Sequence[str], waited: float) -> float:
        """Return the delay while the durations of some actions are unknown.

        Only scouts are polled as usual, and only a few times. The other projects use the durations
        that the scouts measure.
        """
        timing.is_measured = timing.polls < UNKNOWN_POLLS
        if timing.is_measured and self._pace.is_scout(self, actions):
            # The first delay is short. With few polls left, it must be worth a poll.
            stretch = self._pace.stretch_of_scouts()
            extra = max(stretch - 1.0, 0.0) * stretch * PRICE / 2
            return self._delay(waited, stretch) + extra
        if not any(one.is_measured for one in self._timings.values()):
            self._pace.release_scout(self)
        stretch = self._stretch
        if timing.is_measured:
            stretch = max(stretch, CROWD * min(stretch, 1.0))
        return self._delay(waited, stretch)

    def _delay(self, waited: float, stretch: float | None = None) -> float:
        stretch = self._stretch if stretch is None else stretch
        return growing_delay(self._policy, max(waited, 0.0), self._jitter, stretch)

    def _groups(self, pending: Iterable[TrackedOperation]) -> dict[str, Group]:
        """Return the operations by action, which is empty while an operation has no record."""
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


def duration(observation: Observation, record: Operation, now: float) -> float:
    """Return how long an operation took from its start, in seconds.

    This is the duration in its record, limited to the range that the polls allow. The record
    contains only the running time, without the time spent queued behind another operation.
    """
    minimum, maximum = observation.pending_at - observation.started_at, now - observation.started_at
    if record.total_duration_ms is None:
        return (minimum + maximum) / 2
    return min(max(age(record), minimum), maximum)
