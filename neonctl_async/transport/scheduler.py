"""The order of the requests of a client under its rate limits. Pure: times are passed in."""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from statistics import median

from neonctl_async.transport.account import MINUTE, Account, Demand

CALL_RESERVE = 0.05
"""The last share of the requests per minute. Polls use it slowly, so that a new call finds a slot.
"""
MAX_POLL_RESERVE = 0.5
"""The largest share of the requests per minute that is kept for the polls of running work."""
ARRIVAL_SECONDS = 10
"""The time over which the rate of calls is measured, in seconds."""
CALLS_PER_POLL = 9
"""The largest number of calls that are sent before a waiting poll."""
FIRST_PAUSE = 1.0
"""The pause after a 429 without ``Retry-After``, in seconds. Each further one is twice as long."""
MAX_PAUSE = 60.0
"""The longest pause after a 429, in seconds. Neon's windows are not longer."""
TRIAL_SECONDS = 1.0
"""The longest time for which other requests wait for the trial after a pause, in seconds."""


class Ticket:
    """A request that waits for its slot."""

    __slots__ = ("is_mutation", "is_poll", "is_withdrawn", "number", "route")

    def __init__(self, route: str, *, is_poll: bool = False) -> None:
        self.route: str = route
        self.is_poll: bool = is_poll
        self.is_mutation: bool = not route.startswith("GET ")
        self.is_withdrawn: bool = False
        self.number: int = 0


class _Line:
    """Tickets of one kind in their order, by route, so that a busy route does not block others."""

    def __init__(self) -> None:
        self._routes: dict[str, deque[Ticket]] = {}
        self._number = 0
        self.length = 0

    def append(self, ticket: Ticket) -> None:
        self._number += 1
        ticket.number = self._number
        self.length += 1
        self._routes.setdefault(ticket.route, deque()).append(ticket)

    def withdraw(self, ticket: Ticket) -> None:
        ticket.is_withdrawn = True
        self.length -= 1

    def remove_first(self, ticket: Ticket) -> None:
        self.length -= 1
        self._routes[ticket.route].popleft()

    def first_of_routes(self) -> Iterator[Ticket]:
        """Yield the first ticket of each route."""
        for route, tickets in list(self._routes.items()):
            while tickets and tickets[0].is_withdrawn:
                tickets.popleft()
            if tickets:
                yield tickets[0]
            else:
                del self._routes[route]


class _Arrivals:
    """The rate of calls: the median of the last seconds, so that a burst does not count."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def note(self, now: float) -> None:
        second = int(now)
        self._counts[second] = self._counts.get(second, 0) + 1

    def per_second(self, now: float) -> float:
        last = int(now)
        first = last - ARRIVAL_SECONDS
        if len(self._counts) > ARRIVAL_SECONDS:
            self._counts = {at: count for at, count in self._counts.items() if at >= first}
        return median(self._counts.get(second, 0) for second in range(first, last))


def _per(slots: float, waits: float) -> float:
    return slots / waits if waits else math.inf


class Scheduler:
    """Decides which request is sent next, and when.

    Calls, which are all requests but polls, are sent in their order and before polls. While both
    wait, every tenth request is a poll. The last 5 % of the minute are spread over the time until
    more slots are free. Calls that start work wait while the rest of the minute is needed to see
    the end of the work that already runs.
    """

    def __init__(self, account: Account, connections: int) -> None:
        self.account = account
        self._free_connections = connections
        self._calls = _Line()
        self._mutations = 0
        self._polls = _Line()
        self._calls_since_poll = 0
        self._arrivals = _Arrivals()
        self._last_poll_at = -math.inf
        self._pending = Demand()
        self._pause = _Pause()

    @property
    def has_waiting(self) -> bool:
        """True if any request waits for a slot."""
        return bool(self._calls.length or self._polls.length)

    def note_pending(self, waits: int, projects: int) -> None:
        """Set the number of pending waits, and of the projects that they need polls of."""
        self._pending = Demand(projects, waits)

    def share(self, now: float) -> float:
        """Return how many polls the rest of the minute allows for each pending wait.

        Each call that waits costs its own slot now and a poll later. The result is negative if
        there are more calls than slots, and inf without a limit.
        """
        free = self.account.free(now)
        if free == math.inf:
            return math.inf
        others = self.account.others
        calls = self._calls.length + others.calls
        waits = self._pending.waits + others.waits
        now_left = _per(free - self._call_reserve - calls, waits + calls)
        coming = MINUTE * self._arrivals.per_second(now)
        limit = (self.account.limit or 0) - self._call_reserve
        return min(now_left, _per(limit - coming, waits + coming))

    def free(self, now: float) -> float:
        """Return how many slots of the minute are free, inf without a limit."""
        return self.account.free(now)

    def add(self, ticket: Ticket, now: float) -> None:
        """Put a request at the end of the line."""
        if ticket.is_poll:
            self._polls.append(ticket)
        else:
            self._arrivals.note(now)
            self._calls.append(ticket)
            self._mutations += ticket.is_mutation
        self._report()

    def withdraw(self, ticket: Ticket) -> None:
        """Remove a request that is not sent any more."""
        (self._polls if ticket.is_poll else self._calls).withdraw(ticket)
        self._mutations -= ticket.is_mutation
        self._report()

    def next(self, now: float) -> Ticket | float:
        """Return the request to send now, removed from the line, or when to ask again.

        The result is inf if a request has to end or to be added first.
        """
        if not self._free_connections or not self._pause.is_over(now):
            return self._pause.until if self._free_connections else math.inf
        call, call_at = self._first(self._calls.first_of_routes(), now)
        poll, poll_at = self._first(self._polls.first_of_routes(), now)
        if poll is not None and (call is None or self._calls_since_poll >= CALLS_PER_POLL):
            self._polls.remove_first(poll)
            self._take(poll, now)
            return poll
        if call is not None:
            self._calls.remove_first(call)
            self._mutations -= call.is_mutation
            self._take(call, now)
            return call
        return min(call_at, poll_at)

    def take_now(self, ticket: Ticket, now: float) -> bool:
        """Send a call without waiting, if nothing waits and its slot is free."""
        if (
            self.has_waiting
            or not self._free_connections
            or not self._pause.is_over(now)
            or self._sendable_at(ticket, now) > now
        ):
            return False
        if not ticket.is_poll:
            self._arrivals.note(now)
        self._take(ticket, now)
        return True

    def release(self, ticket: Ticket, now: float) -> None:
        """Record the end of a request."""
        self._free_connections += 1
        self._pause.note_ended(ticket)
        self.account.release(ticket.route, now)

    def cancel(self, ticket: Ticket, now: float) -> None:
        """Record that a request was not sent although it could be."""
        self._free_connections += 1
        self._pause.note_ended(ticket)
        self.account.cancel(ticket.route, now)

    def hold_back(self, retry_after: float | None, now: float) -> None:
        """Send nothing for some time, after a 429. Neon counts all requests of the account."""
        self._pause.start(retry_after, now)

    @property
    def _call_reserve(self) -> int:
        return math.ceil(CALL_RESERVE * (self.account.limit or 0))

    def _first(self, tickets: Iterable[Ticket], now: float) -> tuple[Ticket | None, float]:
        """Return the oldest ticket whose request may be sent now, or when one may be sent."""
        first: Ticket | None = None
        sendable_at = math.inf
        for ticket in tickets:
            at = self._sendable_at(ticket, now)
            sendable_at = min(sendable_at, at)
            if at <= now and (first is None or ticket.number < first.number):
                first = ticket
        return first, sendable_at

    def _sendable_at(self, ticket: Ticket, now: float) -> float:
        at = self.account.free_at(ticket.route, now, is_poll=ticket.is_poll)
        if ticket.is_poll:
            return max(at, self._pace_at(now))
        if ticket.is_mutation and self._pending.calls:
            return max(at, self.account.refill_at(now, 1 + self._poll_reserve))
        return at

    def _pace_at(self, now: float) -> float:
        """Return when the next poll may be sent so that the last slots of the minute suffice."""
        free = self.account.free(now)
        if free > self._call_reserve or self._calls_since_poll >= CALLS_PER_POLL:
            return -math.inf
        refill_at = self.account.refill_at(now, self._call_reserve + 1)
        if refill_at == math.inf:  # requests in flight have to end first
            return self._last_poll_at + 1.0
        return self._last_poll_at + (refill_at - self._last_poll_at) / max(free + 1, 1)

    @property
    def _poll_reserve(self) -> int:
        """The slots that are kept for polls: one for each project with pending waits."""
        largest = int(MAX_POLL_RESERVE * (self.account.limit or 0))
        return min(self._pending.calls, largest)

    def _take(self, ticket: Ticket, now: float) -> None:
        self._free_connections -= 1
        self._pause.note_sent(ticket, now)
        if ticket.is_poll:
            self._calls_since_poll = 0
            self._last_poll_at = now
        else:
            self._calls_since_poll = self._calls_since_poll + 1 if self._polls.length else 0
        self.account.take(ticket.route, now, is_poll=ticket.is_poll)
        self._report()

    def _report(self) -> None:
        self.account.report(Demand(self._calls.length, self._pending.waits))


class _Pause:
    """The pause after a 429. One request is sent alone after it, as a trial."""

    def __init__(self) -> None:
        self.until = -math.inf
        """The time until which nothing is sent."""
        self._seconds = FIRST_PAUSE
        self._started_at = -math.inf
        self._needs_trial = False
        self._trial: Ticket | None = None
        self._has_passed = False

    def start(self, retry_after: float | None, now: float) -> None:
        is_running = now < self.until and self._trial is None and not self._has_passed
        if not is_running:
            is_new = now - self._started_at > MAX_PAUSE
            self._seconds = FIRST_PAUSE if is_new else min(2 * self._seconds, MAX_PAUSE)
            self._started_at = now
        seconds = self._seconds if retry_after is None else min(retry_after, MAX_PAUSE)
        until = max(self._started_at, now if retry_after is not None else -math.inf) + seconds
        self.until = max(self.until, until) if is_running else until
        self._needs_trial, self._trial, self._has_passed = True, None, False

    def is_over(self, now: float) -> bool:
        if self._has_passed:
            self.until, self._has_passed = -math.inf, False
        return now >= self.until

    def note_sent(self, ticket: Ticket, now: float) -> None:
        if self._needs_trial:
            self._needs_trial, self._trial, self.until = False, ticket, now + TRIAL_SECONDS

    def note_ended(self, ticket: Ticket) -> None:
        if ticket is self._trial:  # its own 429 starts the next pause afterwards
            self._trial, self._has_passed = None, True
