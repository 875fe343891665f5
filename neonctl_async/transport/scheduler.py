"""The order of the requests of a client under its rate limits. Pure: times are passed in."""

import math
from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

from neonctl_async.transport.account import CALLS_PER_POLL, MINUTE, Account
from neonctl_async.transport.pause import Pause
from neonctl_async.transport.protocol import is_read

MAX_POLL_RESERVE = 0.5
"""The largest part of the requests per minute that is reserved for polls. Without this maximum,
many projects could reserve every slot, and no more projects could be created."""
HELD_CALL_PART = 0.05
"""The part of the requests per minute that calls may use despite the slots kept for polls: with
Neon's 700, one every 1.7 s, so that programs make progress."""


class Urgency:
    """The urgency of the requests of one poll."""

    __slots__ = ("at",)

    def __init__(self, at: float = math.inf) -> None:
        self.at: float = at
        """The time from which the poll's requests go before all others, because of a deadline."""


NOT_URGENT = Urgency()


class Ticket:
    """A request that waits for its slot."""

    __slots__ = ("is_poll", "number", "route", "urgency")

    def __init__(self, route: str, *, is_poll: bool = False, urgency: Urgency = NOT_URGENT) -> None:
        self.route: str = route
        self.is_poll: bool = is_poll
        self.number: int = 0
        self.urgency: Urgency = urgency

    @property
    def is_mutation(self) -> bool:
        """True if the request may start operations, which need polls."""
        return not is_read(self.route)


T = TypeVar("T", bound=Ticket)


class _Line(Generic[T]):
    """The queue of tickets of one kind, by route, so that a busy route does not block others."""

    def __init__(self) -> None:
        self._routes: dict[str, OrderedDict[T, None]] = {}
        self._number = 0
        self.length = 0

    def add(self, ticket: T) -> None:
        self._number += 1
        ticket.number = self._number
        self.length += 1
        self._routes.setdefault(ticket.route, OrderedDict())[ticket] = None

    def remove(self, ticket: T) -> bool:
        """Remove a ticket. Return False if it is not in the line."""
        tickets = self._routes.get(ticket.route)
        if tickets is None or ticket not in tickets:
            return False
        del tickets[ticket]
        if not tickets:
            del self._routes[ticket.route]
        self.length -= 1
        return True

    def waiting(self, route: str) -> int:
        return len(self._routes.get(route, ()))

    def first_of_routes(self) -> Iterator[T]:
        return (next(iter(tickets)) for tickets in self._routes.values())

    def __iter__(self) -> Iterator[T]:
        return (ticket for tickets in self._routes.values() for ticket in tickets)


class Scheduler(Generic[T]):
    """Decides which request is sent next, and when.

    Calls, which are all requests except polls, are sent in order and before polls. While both wait,
    every tenth request is a poll. A poll that a deadline requires goes first. Calls that start
    operations wait while the rest of the minute is needed to poll the operations that are already
    running.
    """

    def __init__(self, account: Account, connections: int) -> None:
        self._account = account
        self._free_connections = connections
        self._calls = _Line[T]()
        self._polls = _Line[T]()
        self._urgent_polls = _Line[T]()
        self._calls_since_poll = 0
        self._last_poll_at = -math.inf
        self._last_mutation_at = -math.inf
        self._polls_of: dict[str, float] = {}
        """The number of polls that each project with pending waits will probably need."""
        self._polls_wanted = 0.0
        self.refused_at: float = -math.inf
        """The time of the latest 429."""
        self._pause = Pause()

    @property
    def has_waiting(self) -> bool:
        """True if any request waits for a slot."""
        return bool(self._calls.length or self._polls.length or self._urgent_polls.length)

    @property
    def paused_until(self) -> float:
        """The end of the latest pause after a 429."""
        return self._pause.sendable_at

    def held_until(self, now: float) -> float:
        """Return the time before which the account's limits do not allow a request.

        The result is ``now`` or earlier if they allow a request now, and inf if the time is
        unknown.
        """
        return max(self._pause.sendable_at, self._account.refill_at(now, 1))

    def note_wanted(self, project_id: str, polls: float) -> None:
        """Set how many polls a project will probably need: 0 if it has no pending waits."""
        if polls == self._polls_of.get(project_id, 0.0):
            return
        self._polls_wanted += polls - self._polls_of.pop(project_id, 0.0)
        if polls:
            self._polls_of[project_id] = polls
        elif not self._polls_of:
            self._polls_wanted = 0.0  # rounded, the sum may be a little less

    @property
    def polls_wanted(self) -> float:
        """The number of polls that the waits of the client will probably need."""
        return self._polls_wanted

    def polls_left(self, now: float) -> float:
        """Return how many per-minute slots the waiting calls leave for polls.

        The result is inf if there is no limit, and negative if there are more calls than slots.
        """
        return self._account.free(now) - self._calls.length

    def admit(self, ticket: T, now: float) -> bool:
        """Return whether a request may be sent now. If not, put it at the end of its line."""
        if self.has_waiting or self._sendable_at > now or self._ticket_at(ticket, now) > now:
            (self._polls if ticket.is_poll else self._calls).add(ticket)
            return False
        self._take(ticket, now)
        return True

    def withdraw(self, ticket: T) -> bool:
        """Remove a request from its line. Return False if it has already left the line."""
        return any(line.remove(ticket) for line in self._lines)

    def next(self, now: float) -> T | float:
        """Remove and return the request to send now, or return when to call this again.

        The result is inf if something has to change first: a request finishes or is added, or the
        account changes.
        """
        if self._sendable_at > now:
            return self._sendable_at
        for ticket in [one for one in self._polls if one.urgency.at <= now]:
            self._polls.remove(ticket)
            self._urgent_polls.add(ticket)
        wake_at = math.inf
        for line in self._lines:
            first, sendable_at = self._first(line, now)
            if first is not None:
                line.remove(first)
                self._take(first, now)
                return first
            wake_at = min(wake_at, sendable_at)
        return min([wake_at, *(one.urgency.at for one in self._polls)])

    def release(self, ticket: T, now: float) -> None:
        """Record the end of a request."""
        self._free_connections += 1
        if self._pause.is_active:
            self._pause.note_ended(ticket, now)
        self._account.release(ticket.route, now)

    def cancel(self, ticket: T, now: float) -> None:
        """Record that a request was not sent, although it could have been."""
        self._free_connections += 1
        self._pause.note_cancelled(ticket)
        self._account.cancel(ticket.route, now)

    def hold_back(self, retry_after: float | None, now: float) -> None:
        """Pause all requests after a 429, because Neon counts all requests of the account."""
        self.refused_at = now
        self._pause.start(retry_after, now)

    def _take(self, ticket: T, now: float) -> None:
        self._free_connections -= 1
        if self._pause.is_active:
            self._pause.note_sent(ticket, now)
        if ticket.is_poll:
            self._calls_since_poll = 0
            self._last_poll_at = now
        else:
            self._calls_since_poll = self._calls_since_poll + 1 if self._polls.length else 0
        if ticket.is_mutation and self._polls_of:
            self._last_mutation_at = now
        self._account.take(ticket.route, now)

    @property
    def _lines(self) -> tuple[_Line[T], ...]:
        """The lines in the order in which they are served."""
        if self._calls_since_poll >= CALLS_PER_POLL:
            return self._urgent_polls, self._polls, self._calls
        return self._urgent_polls, self._calls, self._polls

    def _first(self, line: _Line[T], now: float) -> tuple[T | None, float]:
        """Return the oldest ticket that may be sent now, or None, and when any may be sent."""
        first: T | None = None
        sendable_at = math.inf
        for ticket in line.first_of_routes():
            at = self._ticket_at(ticket, now)
            sendable_at = min(sendable_at, at)
            if at <= now and (first is None or ticket.number < first.number):
                first = ticket
        return first, sendable_at

    @property
    def _sendable_at(self) -> float:
        """The time before which no request may be sent."""
        return self._pause.sendable_at if self._free_connections else math.inf

    def _ticket_at(self, ticket: T, now: float) -> float:
        """Return when a ticket's request may be sent, or an earlier time to check again."""
        if ticket.is_mutation and self._polls_of and (at := self._mutation_at(now)) > now:
            return at
        waiting = sum(line.waiting(ticket.route) for line in self._lines)
        return self._account.free_at(ticket.route, now, waiting=max(waiting, 1))

    def _mutation_at(self, now: float) -> float:
        """Return when a call that starts operations may be sent, so that slots remain for polls.

        One poll is reserved for each project with pending waits. A call may take one of these slots
        if the previous such call was long enough ago; a waiting poll then goes before the next one.
        """
        limit = self._account.limit or 0
        reserve = min(len(self._polls_of), int(MAX_POLL_RESERVE * limit))
        longest_hold = MINUTE / max(HELD_CALL_PART * limit, 1.0)
        refill_at = self._account.refill_at(now, 1 + reserve)
        if self._polls.length and self._last_poll_at < self._last_mutation_at:
            return refill_at
        return min(refill_at, self._last_mutation_at + longest_hold)
