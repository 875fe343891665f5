"""What the polls of all projects share: rate budget, response times, outages. Pure: no I/O."""

import logging
import math
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from neonctl_async.waiting.timing.forecast import MIN_DURATIONS

_logger = logging.getLogger(__name__)

UNKNOWN_POLLS = 6.0
"""The number of polls that a project needs while the end of its operations is unpredictable."""
MIN_STRETCH = 0.16
"""The smallest factor, while hardly any of the minute's requests are used: with a poll every 0.8 s,
waits return sooner than a loop that reads two operations every second, and send fewer requests."""
MAX_STRETCH = 7.0
"""The largest factor by which polls are delayed."""
PLENTY = 0.2
"""Delays are shorter than the policy's while the share of the limit that is used, or that waits
will need, is below this. At one third, other clients of the account would get more 429s."""
RESERVE = 0.1
"""The share of the limit that is left unplanned, for other calls and for later waits."""
SCOUTS = MIN_DURATIONS
"""The number of projects that are polled to measure how long an action takes. With fewer, the
durations of the others would stay unknown until some of their operations have finished."""
CROWD = UNKNOWN_POLLS
"""The smallest factor by which delays get longer for projects that are not scouts."""
RESPONSES = 16
"""The number of most recent polls whose durations are remembered."""
USUAL_SECONDS = 0.2
"""The duration of a poll that a new client assumes, in seconds."""
LAST_POLL_MARGIN = 0.1
"""The shortest time between the last poll and the deadline, in seconds."""
SAFE_MARGIN = 0.5
"""The minimum of :attr:`Pace.safe_margin`, in seconds."""
ROOM = 4.0
"""The minimum number of free slots for each poll that the waits need. With fewer, servers that hold
reads are not polled at once."""
OUTAGE = 3
"""The number of failed polls, without a successful one between them, that show an outage."""
RETRY_PART = 0.1
"""The share of the limit that polls may use while all of them fail."""


class PollBudget(Protocol):
    """The rate budget that all requests of a client share, as :class:`Budget` keeps it."""

    @property
    def per_minute(self) -> float:
        """The limit on requests per minute; inf means no limit."""
        ...

    @property
    def polls_per_second(self) -> float:
        """The limit on polls of one kind per second; inf means no limit."""
        ...

    @property
    def polls_left(self) -> float:
        """The per-minute slots that waiting calls leave for polls, or inf if there is no limit."""
        ...

    @property
    def is_contended(self) -> bool:
        """True if a 429 arrived within the last minute: other clients use the account too."""
        ...

    @property
    def polls_wanted(self) -> float:
        """The number of polls that the pending waits of this client will probably need."""
        ...


class Booking(NamedTuple):
    """The booked time of a poll, and the number of its slot in :class:`Bookings`."""

    at: float
    place: int


class Bookings:
    """Times for polls of different projects, at most ``per_second`` in a second."""

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._taken: set[int] = set()

    def book(self, at: float, step: int) -> Booking:
        """Book ``at``, or a free time before it (``step`` -1) or after it (``step`` 1)."""
        if self._per_second == math.inf:
            return Booking(at, 0)
        place = wanted = math.floor(at * self._per_second)
        while place in self._taken:
            place += step
        self._taken.add(place)
        return Booking(at if place == wanted else place / self._per_second, place)

    def cancel(self, booking: Booking) -> None:
        """Release a booked time."""
        self._taken.discard(booking.place)


class Pace:
    """The pace of all polls of a client, which depends on what is left of the rate budget."""

    def __init__(self, budget: PollBudget) -> None:
        self._budget = budget
        self._is_short = False
        self._scouts: dict[str, set[object]] = {}
        self.released_scouts: int = 0
        """The number of scouts released so far. Each release lets another project become one."""
        self.last_polls: Bookings = Bookings(budget.polls_per_second)
        """The times of the last polls before deadlines."""
        self.retries: Bookings = Bookings(RETRY_PART * budget.per_minute / 60.0)
        """The times of the polls that follow failed polls."""
        self._durations = deque([USUAL_SECONDS], maxlen=RESPONSES)
        self._failures = 0
        self._success_at = -math.inf
        self.recovered_at: float = -math.inf
        """The time of the latest success after a period without one."""

    def stretch(self) -> float:
        """Return the factor by which delays are multiplied, from MIN_STRETCH to MAX_STRETCH.

        It is 1 while the budget just suffices for all polls, and less while hardly any of the
        minute's requests are used. It is rounded, so that small changes of the budget do not change
        any plan.
        """
        wanted, left = self._budget.polls_wanted, self._left
        self._report(left / wanted if wanted else math.inf)
        return self._stretch_of(wanted)

    @property
    def has_room(self) -> bool:
        """True if the minute has at least ``ROOM`` slots left for each poll that the waits need."""
        return ROOM * self._budget.polls_wanted <= self._left

    def stretch_of_scouts(self) -> float:
        """Return the factor for scouts, which are polled as if there were no other projects."""
        return min(self.stretch(), self._stretch_of(SCOUTS * UNKNOWN_POLLS))

    def _stretch_of(self, wanted: float) -> float:
        limit, left = self._budget.per_minute, self._left
        if wanted > left:
            return min(round(4 * wanted / left) / 4, MAX_STRETCH) if left else MAX_STRETCH
        if self._budget.is_contended:
            return 1.0
        used = 0.0 if limit == math.inf else 1 - (self._budget.polls_left - wanted) / limit
        return min(max(round(20 * used / PLENTY) / 20, MIN_STRETCH), 1.0)

    @property
    def _left(self) -> float:
        """The per-minute slots that may be planned for."""
        if self._budget.per_minute == math.inf:
            return math.inf
        return max(self._budget.polls_left - RESERVE * self._budget.per_minute, 0.0)

    def _report(self, share: float) -> None:
        """Log once that the rate budget is running low, and again only after it has recovered."""
        is_short = share < (2 if self._is_short else 1)
        if is_short and not self._is_short:
            _logger.info(
                "the rate budget is short: with the calls that wait for a slot, it allows %.2g "
                "of the polls that the waits need. Polls come later than usual, and calls that "
                "start operations may wait longer",
                share,
            )
        self._is_short = is_short

    def is_scout(self, project: object, actions: Iterable[str]) -> bool:
        """Return whether a project is polled as usual to measure how long ``actions`` take.

        The first SCOUTS projects of each action are scouts until they are released.
        """
        is_scout = False
        for action in actions:
            scouts = self._scouts.setdefault(action, set())
            if project not in scouts and len(scouts) < SCOUTS:
                scouts.add(project)
            is_scout |= project in scouts
        return is_scout

    def release_scout(self, project: object) -> None:
        """Record that a project no longer measures durations."""
        for scouts in self._scouts.values():
            if project in scouts:
                scouts.discard(project)
                self.released_scouts += 1

    def note_response(self, seconds: float, now: float, silence: float) -> None:
        """Record the duration of a successful poll.

        It counts as a recovery if no other poll has succeeded in the last ``silence`` seconds.
        """
        self._durations.append(seconds)
        self._failures = 0
        if self._success_at < now - silence:
            self.recovered_at = now
        self._success_at = now

    def note_failure(self) -> None:
        """Record a failed poll."""
        self._failures += 1

    @property
    def is_out(self) -> bool:
        """True while polls are failing, and none succeeds in between."""
        return self._failures >= OUTAGE

    @property
    def margin(self) -> float:
        """How long before its deadline a wait's last poll is due.

        This is enough for the slowest recent poll.
        """
        return max(1.25 * max(self._durations), LAST_POLL_MARGIN)

    @property
    def safe_margin(self) -> float:
        """How long before a deadline to start even a slow poll, so that it ends in time."""
        return max(2 * max(self._durations), SAFE_MARGIN)
