"""Leases of the slots of a shared account. Pure: times are passed in, in whole milliseconds.

A lease may start in the future: when a slot that is occupied now has slid out. Clients that wait
are served in their order, calls before polls.
"""

from neonctl_async.transport.account import CALLS_PER_POLL
from neonctl_async.transport.shared.messages import Denial, Grant, Refill, Reply, Request, Want
from neonctl_async.transport.shared.state import (
    MINUTE,
    MINUTE_STEP,
    SECOND,
    SECOND_STEP,
    Ends,
    Holder,
    Lack,
    Lease,
    State,
    advance,
    check_generation,
    settle,
    used_slots,
)

VALID = SECOND
"""The time for which a slot may be used: the period of the limits of the routes."""
VALID_ALONE = 5 * VALID
"""The same, while no other client is active: with one request a second, three of four need no
exchange."""
AHEAD = MINUTE_STEP
"""The longest time before the start of a lease: how exactly the ends of requests are known."""
AHEAD_ALONE = VALID
"""The same, while no other client is active, and could lose a slot to this one."""
ACTIVE = 3_000
"""The time for which a client counts as active after an exchange: three reports."""
PATIENCE = VALID
"""The delay of a waiting client after which it loses its place in the queue."""
RETRY_UNKNOWN = MINUTE_STEP
"""The delay before the next attempt while only a response can free a slot."""
RETRY_MIN = 2 * SECOND_STEP
"""The shortest delay before the next attempt."""
RETRY_MAX = ACTIVE - SECOND
"""The longest delay before the next attempt: one that waits stays active."""
MAX_REFILLS = 20
"""The largest number of refills in a reply."""
UNLIMITED = 1_000_000
"""The number of slots of a window without a limit."""


def exchange(state: State, request: Request, now: int) -> Reply:
    """Apply the report of a client to ``state``, and lease slots to it."""
    advance(state, now)
    check_generation(state, request, now)
    settle(state, request, now)
    holder = state.holders.setdefault(request.holder, Holder(now, 0, 0))
    holder.seen_at, holder.calls, holder.polls_wanted = now, request.calls, request.polls_wanted
    holder.projects = request.projects
    others = [one for name, one in state.holders.items() if name != request.holder]
    lender = _Lender(state, request)
    for want in request.wants:
        lender.lease(want)
    return Reply(
        generation=state.generation,
        used=lender.used,
        valid=lender.valid,
        holders=lender.active,
        calls=lender.calls,
        polls_wanted=sum(one.polls_wanted for one in others),
        grants=lender.grants,
        denials=lender.denials,
        refills=_refills(state.minute, now),
        projects=sum(one.projects for one in others),
    )


class _Lender:
    """Leases slots to one client."""

    def __init__(self, state: State, request: Request) -> None:
        self._state = state
        self._request = request
        self._limit = request.limit or UNLIMITED
        others = [one for name, one in state.holders.items() if name != request.holder]
        self._waiting = sum(bool(one.lacks) for one in others)
        active = [one for one in others if one.seen_at + ACTIVE > state.now]
        self.active = 1 + len(active)
        """The number of active clients."""
        self.calls = sum(one.calls for one in active)
        """The calls of other clients that wait for a slot."""
        self.valid = VALID_ALONE if self.active == 1 else VALID
        self.used = used_slots(state)
        self.grants: list[Grant] = []
        self.denials: list[Denial] = []

    def lease(self, want: Want) -> None:
        """Lease slots of a route, and note how many the client still lacks."""
        state = self._state
        if state.now < state.closed_until:
            self.denials.append(Denial(want.route, state.closed_until - state.now))
            return
        lacks = state.holders[self._request.holder].lacks
        lack = lacks.pop(want.route, None)
        since = lack.since if lack else state.now
        ahead = AHEAD_ALONE if self._alone else AHEAD
        lease = _NewLease(state, want, self._limit, self.used, ahead)
        # At most a quarter of the minute at once: clients that start later need slots, too.
        fair = max(min(lease.limit, self._limit // 4) // (self._waiting + 1), 1)
        most = fair if self._waiting else UNLIMITED
        calls = lease.take(min(want.calls, most), *self._before_call(want.route, since))
        polls = self._take_polls(lease, want, since, most)
        self._count(calls, polls, is_poll_waiting=want.polls > polls)
        if calls < want.calls or polls < want.polls:
            lacks[want.route] = Lack(
                state.now if calls or polls else since,
                min(want.calls - calls, fair),
                min(want.polls - polls, fair),
                state.now + lease.retry_after + PATIENCE,
            )
            self.denials.append(Denial(want.route, lease.retry_after))
        elif not self._waiting:
            self._take_spare(lease, want)
        self._add(lease, want)

    @property
    def _alone(self) -> bool:
        return self.active == 1

    def _take_polls(self, lease: "_NewLease", want: Want, since: int, most: int) -> int:
        """Lease slots for polls, after the calls of all clients. Each tenth slot is for a poll."""
        minute, route, earlier = self.calls, 0, 0
        for other_route, lack, is_earlier in self._lacks(since):
            polls = lack.polls if is_earlier else 0
            minute += polls
            route += lack.calls + polls if other_route == want.route else 0
            earlier += polls
        count = min(want.polls, most)
        if self._state.calls_since_poll >= CALLS_PER_POLL and not earlier:
            return lease.take(min(count, 1), 0, 0)
        return lease.take(count, minute, route)

    def _before_call(self, want_route: str, since: int) -> tuple[int, int]:
        """Return the slots of the minute and of the route that others get first."""
        minute, route = 0, 0
        for other_route, lack, is_earlier in self._lacks(since):
            is_poll_due = self._state.calls_since_poll >= CALLS_PER_POLL and lack.polls > 0
            before = (lack.calls if is_earlier else 0) + is_poll_due
            minute += before
            route += before if other_route == want_route else 0
        return minute, route

    def _lacks(self, since: int) -> list[tuple[str, Lack, bool]]:
        """Return what others lack, by route, and whether they wait for longer than ``since``."""
        mine = (since, self._request.holder)
        return [
            (route, lack, (lack.since, name) < mine)
            for name, holder in self._state.holders.items()
            if name != self._request.holder
            for route, lack in holder.lacks.items()
        ]

    def _count(self, calls: int, polls: int, *, is_poll_waiting: bool) -> None:
        """Count the calls that have gone before a waiting poll."""
        is_poll_waiting |= any(lack.polls for _, lack, _ in self._lacks(0))
        if polls or not is_poll_waiting:
            self._state.calls_since_poll = 0
        else:
            self._state.calls_since_poll += calls

    def _take_spare(self, lease: "_NewLease", want: Want) -> None:
        """Lease slots for requests that will probably follow, while there are enough for all."""
        if self._alone:
            # The next client to start waits until these slots are used or expire.
            lease.take(min(want.spare, max(lease.limit // 2, 1), max(self._limit // 8, 1)), 0, 0)
            return
        # The last quarter of the minute is only for requests that exist. Of the slots before it,
        # each client leaves three quarters to later ones.
        free = self._limit * 3 // 4 - lease.used
        count = min(want.spare, lease.limit // 2 // self.active, free // 4 // self.active)
        lease.take(count, 0, 0, ahead=0)

    def _add(self, lease: "_NewLease", want: Want) -> None:
        """Store the lease and add it to the reply."""
        self.used = lease.used
        if not lease.delays:
            return
        expires_at = self._state.now + lease.delays[-1] + self.valid + self._request.longest
        name = f"{self._request.holder}/{want.lease}"
        self._state.leases[name] = Lease(want.route, len(lease.delays), expires_at)
        for delay in dict.fromkeys(lease.delays):
            self.grants.append(Grant(want.lease, delay, lease.delays.count(delay)))


class _NewLease:
    """The slots of one route that are leased to a client now."""

    def __init__(self, state: State, want: Want, minute_limit: int, used: int, ahead: int) -> None:
        self.limit = want.limit or UNLIMITED
        """The limit of the route."""
        self.used = used
        """The occupied slots of the minute."""
        self.delays: list[int] = []
        """The delay after which each leased slot may be used, in order."""
        self.retry_after = RETRY_MIN
        """The delay after which the client may try again."""
        self._minute_limit = minute_limit
        self._ahead = ahead
        self._now = state.now
        self._minute = state.minute
        self._route = state.routes.get(want.route, [])
        self._route_used = sum(count for _, count in self._route) + sum(
            lease.count for lease in state.leases.values() if lease.route == want.route
        )

    def take(self, count: int, minute: int, route: int, *, ahead: int | None = None) -> int:
        """Lease up to ``count`` slots, and return how many.

        ``minute`` and ``route`` are the slots that others get first.
        """
        ahead = self._ahead if ahead is None else ahead
        taken = 0
        while taken < count:
            minute_delay = self._delay(
                self._minute, MINUTE, self.used + minute + 1 - self._minute_limit
            )
            route_delay = self._delay(
                self._route, SECOND, self._route_used + route + 1 - self.limit
            )
            delay = max(minute_delay, route_delay, self.delays[-1] if self.delays else 0)
            if delay > ahead:
                self._set_retry(delay)
                break
            self.delays.append(delay)
            self.used += 1
            self._route_used += 1
            taken += 1
        return taken

    def _delay(self, ends: Ends, period: int, lacking: int) -> int:
        """Return the delay until the window has a free slot, UNLIMITED if it is unknown."""
        if lacking <= 0:
            return 0
        for time, count in ends:
            lacking -= count
            if lacking <= 0:
                return max(time + period - self._now, 0)
        return UNLIMITED

    def _set_retry(self, delay: int) -> None:
        if delay == UNLIMITED:
            self.retry_after = RETRY_UNKNOWN
        else:
            self.retry_after = min(max(delay - self._ahead, RETRY_MIN), RETRY_MAX)


def _refills(minute: Ends, now: int) -> list[Refill]:
    """Return when how many slots slide out, in groups that are reported at their last end."""
    size = -(-sum(count for _, count in minute) // MAX_REFILLS)
    refills: list[Refill] = []
    group = 0
    for index, (time, count) in enumerate(minute):
        group += count
        if group >= size or index == len(minute) - 1:
            refills.append(Refill(time + MINUTE - now, group))
            group = 0
    return refills
