"""Requests that a scheduler gives out, with a check of every law after each step."""

import copy
import math
from collections import deque

from neonctl_async import RateBudget
from neonctl_async.transport.account import LocalAccount
from neonctl_async.transport.scheduler import Scheduler, Ticket, Urgency

UNLIMITED = RateBudget.unlimited()


def limited(per_minute: int) -> RateBudget:
    return RateBudget(per_minute=per_minute, per_route_per_second=None)


class Requests:
    """The requests of one client at a time ``now``: those that wait, and those in flight."""

    def __init__(self, limits: RateBudget, connections: int, *, check_times: bool = True) -> None:
        self.now = 0.0
        self.waiting: list[Ticket] = []
        self.in_flight: list[Ticket] = []
        self.sent: list[tuple[float, Ticket]] = []
        self.scheduler = Scheduler[Ticket](LocalAccount(limits), connections)
        self._limits = limits
        self._connections = connections
        self._check_times = check_times
        self._ended: deque[tuple[float, str]] = deque()
        self._paused_until = -math.inf

    def add(self, route: str, *, is_poll: bool = False, urgent_at: float = math.inf) -> Ticket:
        ticket = Ticket(route, is_poll=is_poll, urgency=Urgency(urgent_at))
        self.waiting.append(ticket)
        if self.scheduler.admit(ticket, self.now):
            self._send(ticket)
        return ticket

    def give_out(self) -> float:
        """Send all requests that may be sent now, and return when to do it again."""
        while isinstance(step := self.scheduler.next(self.now), Ticket):
            self._send(step)
        assert step > self.now
        assert self.scheduler.has_waiting == bool(self.waiting)
        assert step < math.inf or self.in_flight or not self.waiting
        if self._check_times:
            self._check_that_nothing_can_be_sent_before(step)
        return step

    def give_out_until(self, end: float) -> None:
        """Give out slots whenever the scheduler wants to, until a time."""
        while (step := self.give_out()) <= end:
            self.now = step
        self.now = end

    def withdraw(self, ticket: Ticket) -> None:
        assert self.scheduler.withdraw(ticket)
        self.waiting.remove(ticket)
        assert not self.scheduler.withdraw(ticket)

    def release(self, ticket: Ticket) -> None:
        assert not self.scheduler.withdraw(ticket)
        self.in_flight.remove(ticket)
        self.scheduler.release(ticket, self.now)
        self._ended.append((self.now, ticket.route))

    def release_all(self) -> None:
        for ticket in list(self.in_flight):
            self.release(ticket)

    def cancel(self, ticket: Ticket) -> None:
        self.in_flight.remove(ticket)
        self.scheduler.cancel(ticket, self.now)

    def hold_back(self, retry_after: float | None) -> None:
        self.scheduler.hold_back(retry_after, self.now)
        if retry_after:
            self._paused_until = max(self._paused_until, self.now + min(retry_after, 60.0))

    def _send(self, ticket: Ticket) -> None:
        self.waiting.remove(ticket)  # fails for a ticket that was given out before
        self.in_flight.append(ticket)
        self.sent.append((self.now, ticket))
        while self._ended and self._ended[0][0] + 60.0 <= self.now:
            self._ended.popleft()
        assert len(self.in_flight) <= self._connections
        assert self.now >= self._paused_until
        routes = [ticket.route for ticket in self.in_flight]
        minute = sum(end + 60.0 > self.now for end, _ in self._ended) + len(routes)
        assert minute <= (self._limits.per_minute or math.inf)
        second = sum(end + 1.0 > self.now and name == ticket.route for end, name in self._ended)
        limit = self._limits.limit_of(ticket.route)
        assert second + routes.count(ticket.route) <= (math.inf if limit is None else limit)

    def _check_that_nothing_can_be_sent_before(self, wake_at: float) -> None:
        ends = (end + period for end, _ in self._ended for period in (1.0, 60.0))
        between = [time for time in ends if self.now < time < wake_at]
        middle = (self.now + min(wake_at, self.now + 100.0)) / 2
        last = math.nextafter(min(wake_at, self.now + 1000.0), -math.inf)
        # Between two neighbouring floats, the middle is one of them.
        for time in {*between[:3], *between[-3:], middle, last} - {wake_at}:
            assert not isinstance(copy.deepcopy(self.scheduler).next(time), Ticket)


def use_up(requests: Requests, slots: int, route: str = "GET /used") -> None:
    """Send requests whose responses arrive at once."""
    for _ in range(slots):
        requests.release(requests.add(route))
