"""The slots that one client holds. Pure: times are passed in, in seconds.

Times are on the clock of the client's event loop. The store receives ages and sends delays, so no
clock is compared with another one.
"""

import math
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from neonctl_async.config import RateBudget
from neonctl_async.transport.account import MINUTE, Demand
from neonctl_async.transport.shared.messages import (
    Adopted,
    Ended,
    Reply,
    Request,
    Returned,
    Want,
)
from neonctl_async.transport.shared.rules import RETRY_UNKNOWN, VALID, VALID_ALONE

SPARE_SLOTS = 15
"""The number of slots that a client would lease for requests that will probably follow: a burst of
calls then contacts the store about once in ten."""
LOW_SLOTS = SPARE_SLOTS // 5
"""The number of unused slots at which a client leases more in the background."""
REPORT_SECONDS = VALID / 1000
"""The longest time until the end of a request is reported, and until an idle client
returns its slots: they would expire then."""
REPORT_ALONE_SECONDS = VALID_ALONE / 1000
"""The same, while no other client is active."""
REPORT_SOON_SECONDS = 0.1
"""The longest time until the end of a request is reported while another client
waits for its slot: less than :data:`ASK_AGAIN_SECONDS`, after which that client asks again."""
ASK_AGAIN_SECONDS = RETRY_UNKNOWN / 1000
"""The delay until the next exchange while the client needs to know when slots become free."""
NO_LEASE = 0
"""The lease of a request that was sent without one, while the store was lost."""
ALL_SLOTS = 1_000_000
"""The number of returned slots that stands for all slots of a lease."""


class Knowledge(NamedTuple):
    """The state of the account after the last exchange."""

    at: float
    generation: str
    used: int
    holders: int
    others: Demand
    refills: tuple[tuple[float, int], ...]
    """The times at which slots of the minute slide out, and their numbers."""


NOTHING_KNOWN = Knowledge(-math.inf, "", 0, 1, Demand(), ())


@dataclass(slots=True)
class _UnusedSlots:
    """Unused slots of a lease, for the time from ``usable_at`` to ``valid_until``."""

    lease: int
    count: int
    usable_at: float
    valid_until: float


@dataclass(slots=True)
class _Route:
    """The leases of a route."""

    unused: deque[_UnusedSlots] = field(default_factory=deque[_UnusedSlots])
    in_flight: deque[int] = field(default_factory=deque[int])
    """The lease of each request in flight, the oldest first."""
    retry_at: float = -math.inf
    """The time before which the store has no slot."""
    used_at: float = -math.inf
    """The time of the last start or response of a request."""
    has_spare: bool = False
    """True if the last exchange leased slots for further requests."""

    @property
    def unused_slots(self) -> int:
        """The number of unused slots."""
        return sum(slots.count for slots in self.unused)


class HeldSlots:
    """Decides which slots to lease and to return, and which requests to report."""

    def __init__(self, limits: RateBudget, longest_request: float, holder: str = "") -> None:
        self.known: Knowledge = NOTHING_KNOWN
        self.demand: Demand = Demand()
        self._limits = limits
        self.holder: str = holder
        """The random name of the client, empty before its first exchange."""
        self._longest = _milliseconds(longest_request)
        self._routes: dict[str, _Route] = {}
        self._asked: dict[str, bool] = {}
        """The routes that need a slot, and whether a call needs it, not a poll."""
        self._low: set[str] = set()
        """The routes on which more slots will soon be needed."""
        self._ended: deque[tuple[int, str, float]] = deque()
        """The lease, the route and the time of the end of requests that were not reported."""
        self._returned: Counter[int] = Counter()
        self._last_lease = NO_LEASE
        self._ask_at = math.inf
        """The time at which the state of the account is needed."""

    def free_at(self, route: str, now: float, *, is_poll: bool) -> float:
        """Return when a slot of ``route`` can be taken: -inf for now.

        inf means that the next exchange requests a slot from the store.
        """
        known = self._routes.get(route)
        if known is None:
            known = self._routes[route] = _Route()
        self._drop_expired(known, now)
        if known.unused:
            at = min(slots.usable_at for slots in known.unused)
            return at if at > now else -math.inf
        if known.retry_at > now:
            return known.retry_at
        self._asked[route] = self._asked.get(route, False) or not is_poll
        return math.inf

    def take(self, route: str, now: float) -> bool:
        """Use a slot, or send a request without one while the store is lost.

        Return whether more slots will soon be needed.
        """
        known = self._routes.setdefault(route, _Route())
        known.used_at = now
        for slots in known.unused:
            if slots.usable_at <= now < slots.valid_until:
                known.in_flight.append(slots.lease)
                slots.count -= 1
                if not slots.count:
                    known.unused.remove(slots)
                break
        else:
            known.in_flight.append(NO_LEASE)
        if known.has_spare and known.unused_slots <= LOW_SLOTS:
            self._low.add(route)
            return True
        return False

    def release(self, route: str, now: float) -> float:
        """Record the end of a request, which counts as the oldest one of its route.

        Return when the store must know at the latest.
        """
        known = self._routes[route]
        known.used_at = now
        self._ended.append((known.in_flight.popleft(), route, now))
        while self._ended[0][2] + MINUTE < now:  # the store was lost for long
            self._ended.popleft()
        return min(now + self._report_seconds, self._idle_at())

    def ask_again(self, now: float) -> None:
        """Plan an exchange, because the state of the account is needed soon."""
        self._ask_at = min(self._ask_at, now + ASK_AGAIN_SECONDS)

    def cancel(self, route: str) -> None:
        """Return the slot of a request that was not sent."""
        if (lease := self._routes[route].in_flight.pop()) != NO_LEASE:
            self._returned[lease] += 1

    def free(self, now: float) -> float:
        """Return how many slots of the minute are free, including unused leases."""
        if self._limits.per_minute is None:
            return math.inf
        if now >= self.known.at + MINUTE:
            return self._limits.per_minute
        refilled = sum(count for at, count in self.known.refills if at <= now)
        unused = sum(known.unused_slots for known in self._routes.values())
        return self._limits.per_minute - self.known.used + refilled + unused

    def refill_at(self, now: float, slots: int) -> float:
        """Return when this many slots of the minute are free: -inf for now, inf if unknown."""
        lacking = slots - self.free(now)
        if lacking <= 0:
            return -math.inf
        for at, count in self.known.refills:
            if at > now:
                lacking -= count
                if lacking <= 0:
                    return at
        return math.inf

    def due_at(self, now: float) -> float:
        """Return when the next exchange is due, inf if there is nothing to exchange."""
        if self._asked or self._low:
            return -math.inf
        is_unknown = any(NO_LEASE in known.in_flight for known in self._routes.values())
        due_at = now if self._returned or is_unknown else self._ask_at
        if self._ended:
            due_at = min(due_at, self._ended[0][2] + self._report_seconds)
        if self._ended or any(known.unused for known in self._routes.values()):
            due_at = min(due_at, self._idle_at())
        for known in self._routes.values():
            expires_at = (slots.valid_until + REPORT_SECONDS for slots in known.unused)
            due_at = min([due_at, *expires_at])
        return due_at

    def request(self, now: float) -> Request:
        """Return the next message to the store. It must be followed by `apply` or `fail`."""
        is_idle = now >= self._idle_at()
        for known in self._routes.values():
            self._drop_expired(known, math.inf if is_idle else now)
        if not is_idle:
            self._low.update(route for route, known in self._routes.items() if known.has_spare)
        request = Request(
            holder=self.holder,
            generation=self.known.generation if now < self.known.at + MINUTE else "",
            used=self.known.used,
            limit=self._limits.per_minute or 0,
            longest=self._longest,
            calls=self.demand.calls,
            polls_wanted=self.demand.polls_wanted,
            projects=self.demand.projects,
            ended=self._take_ended(now),
            returned=[Returned(lease, count) for lease, count in self._returned.items()],
            adopted=self._adopt(),
            wants=self._wants(),
        )
        self._returned.clear()
        self._asked.clear()
        self._low.clear()
        self._ask_at = math.inf
        return request

    def apply(self, request: Request, reply: Reply, sent_at: float, now: float) -> None:
        """Take over the leases of a reply."""
        if request.generation not in {"", reply.generation}:
            self._forget_leases(adopted={adopted.lease for adopted in request.adopted})
        self.known = Knowledge(
            now,
            reply.generation,
            reply.used,
            reply.holders,
            Demand(reply.calls, reply.polls_wanted, reply.projects),
            tuple((now + delay / 1000, count) for delay, count in reply.refills),
        )
        routes = {want.lease: want.route for want in request.wants}
        for want in request.wants:
            self._routes[want.route].has_spare = False
            self._asked.pop(want.route, None)  # callers that still wait will request it again
        for lease, delay, count in reply.grants:
            known = self._routes[routes[lease]]
            usable_at = now + delay / 1000 if delay else now
            valid_until = sent_at + (delay + reply.valid) / 1000
            known.unused.append(_UnusedSlots(lease, count, usable_at, valid_until))
            known.has_spare = known.unused_slots > LOW_SLOTS
        self._low = {one for one in self._low if self._routes[one].unused_slots <= LOW_SLOTS}
        for route, delay in reply.denials:
            self._routes[route].retry_at = now + delay / 1000
            self._routes[route].has_spare = False
        self._prune(now)

    def fail(self, request: Request, sent_at: float) -> None:
        """Take back a message that the store may not have received. Drop all leases."""
        for lease, route, age, count in request.ended:
            self._ended.extendleft([(lease, route, sent_at - age / 1000)] * count)
        self._returned.update(dict(request.returned))
        self._returned.update({want.lease: ALL_SLOTS for want in request.wants})
        self._returned.update({adopted.lease: ALL_SLOTS for adopted in request.adopted})
        lost = {adopted.lease for adopted in request.adopted}
        for known in self._routes.values():
            self._drop_expired(known, math.inf)
            known.in_flight = deque(
                NO_LEASE if lease in lost else lease for lease in known.in_flight
            )

    def return_all(self) -> None:
        """Return every unused slot with the next exchange, and lease no more."""
        for known in self._routes.values():
            self._drop_expired(known, math.inf)
            known.has_spare = False
        self._asked.clear()
        self._low.clear()

    @property
    def has_report(self) -> bool:
        """True if the store lacks a report."""
        return bool(self._ended or self._returned)

    @property
    def _report_seconds(self) -> float:
        if self.known.others.calls:
            return REPORT_SOON_SECONDS
        return REPORT_ALONE_SECONDS if self.known.holders == 1 else REPORT_SECONDS

    def _idle_at(self) -> float:
        """Return when the client counts as idle, inf while a request is in flight."""
        if any(known.in_flight for known in self._routes.values()):
            return math.inf
        used_at = (known.used_at for known in self._routes.values())
        return max([self.known.at, *used_at]) + max(self._report_seconds, REPORT_SECONDS)

    def _wants(self) -> list[Want]:
        calls = -(-self.demand.calls // max(sum(self._asked.values()), 1))
        return [
            Want(
                lease=self._new_lease(),
                route=route,
                limit=self._limits.limit_of(route) or 0,
                calls=max(calls, 1) if self._asked.get(route) else 0,
                polls=1 if self._asked.get(route) is False else 0,
                spare=self._spare(self._routes[route]),
            )
            for route in dict.fromkeys([*self._asked, *self._low])
        ]

    def _spare(self, route: _Route) -> int:
        unused = route.unused_slots
        return SPARE_SLOTS if unused <= LOW_SLOTS else max(SPARE_SLOTS - unused, 0)

    def _take_ended(self, now: float) -> list[Ended]:
        """Return the ended requests to report, in groups of the same lease and age."""
        counts = Counter((lease, route, int((now - at) * 1000)) for lease, route, at in self._ended)
        self._ended.clear()
        return [
            Ended(lease, route, max(age, 0), count) for (lease, route, age), count in counts.items()
        ]

    def _adopt(self) -> list[Adopted]:
        """Lease the slots of requests in flight that were sent without a lease."""
        adopted: list[Adopted] = []
        for route, known in self._routes.items():
            if count := known.in_flight.count(NO_LEASE):
                lease = self._new_lease()
                known.in_flight = deque(one or lease for one in known.in_flight)
                adopted.append(Adopted(lease, route, count))
        return adopted

    def _forget_leases(self, adopted: set[int]) -> None:
        """Forget the leases of a store that has lost its data."""
        for known in self._routes.values():
            known.unused.clear()
            known.in_flight = deque(
                lease if lease in adopted else NO_LEASE for lease in known.in_flight
            )

    def _drop_expired(self, known: _Route, now: float) -> None:
        for slots in [slots for slots in known.unused if slots.valid_until <= now]:
            known.unused.remove(slots)
            self._returned[slots.lease] += slots.count

    def _prune(self, now: float) -> None:
        """Delete routes that were not used for a minute."""
        for route, known in list(self._routes.items()):
            used_at = max(known.used_at, known.retry_at)
            if not (known.unused or known.in_flight) and used_at + MINUTE < now:
                del self._routes[route]

    def _new_lease(self) -> int:
        self._last_lease += 1
        return self._last_lease


def _milliseconds(seconds: float) -> int:
    return math.ceil(seconds * 1000)
