"""Clients that share an account on a fake clock, and the limits that Neon would enforce."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from neonctl_async.config import RateBudget
from neonctl_async.transport.budget import Budget
from neonctl_async.transport.shared.account import SharedAccount
from neonctl_async.transport.shared.leasing import exchange
from neonctl_async.transport.shared.ledger import State, new_state
from neonctl_async.transport.shared.messages import Reply, Request, Store
from tests.support.clock import now

LIMITS = RateBudget()


class MemoryStore:
    """A store in memory, with a clock and a round trip. It can fail, hang and lose its data."""

    def __init__(self, round_trip: float = 0.002) -> None:
        self.name = "memory"
        self.state: State | None = None
        self.exchanges = 0
        self.round_trip = round_trip
        self.clock_offset = 1_700_000_000.0
        self.error: Exception | None = None
        self.hangs = False
        self.closed = 0

    async def exchange(self, request: Request) -> Reply:
        await asyncio.sleep(self.round_trip / 2)
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error
        self.exchanges += 1
        time = int((now() + self.clock_offset) * 1000)
        self.state = self.state or new_state(request, time)
        reply = exchange(self.state, request, time)
        await asyncio.sleep(self.round_trip / 2)
        return reply

    async def aclose(self) -> None:
        self.closed += 1


class Neon:
    """Counts requests in sliding windows, as Neon does, when they arrive."""

    def __init__(self, limits: RateBudget = LIMITS, arrives_after: float = 0.5) -> None:
        self.arrivals: list[tuple[float, str]] = []
        self.rejected = 0
        self._limits = limits
        self._minute: list[float] = []
        self._routes: dict[str, list[float]] = defaultdict(list)
        self._arrives_after = arrives_after

    async def request(self, route: str, seconds: float) -> None:
        await asyncio.sleep(self._arrives_after * seconds)
        self._arrive(route, now())
        await asyncio.sleep((1 - self._arrives_after) * seconds)

    def _arrive(self, route: str, time: float) -> None:
        self._minute = [at for at in self._minute if at > time - 60]
        self._routes[route] = [at for at in self._routes[route] if at > time - 1]
        limit = self._limits.limit_of(route)
        if (
            self._limits.per_minute is not None and len(self._minute) >= self._limits.per_minute
        ) or (limit is not None and len(self._routes[route]) >= limit):
            self.rejected += 1
        self.arrivals.append((time, route))
        self._minute.append(time)
        self._routes[route].append(time)

    def between(self, start: float, end: float) -> int:
        return sum(start <= time < end for time, _ in self.arrivals)


_NUMBERS: Iterator[int] = count()


@dataclass
class SharingClient:
    """A client with its rate budget."""

    store: Store
    neon: Neon
    limits: RateBudget = LIMITS
    fallback_parts: int = 4
    sent: list[float] = field(default_factory=list[float])

    def __post_init__(self) -> None:
        self.account = SharedAccount(
            self.limits,
            self.store,
            holder=f"client-{next(_NUMBERS)}",
            longest_request=30.0,
            fallback_parts=self.fallback_parts,
        )
        self.budget = Budget(self.limits, 100, self.account)

    async def request(
        self, route: str = "GET /projects", seconds: float = 0.02, *, is_poll: bool = False
    ) -> None:
        slot = await self.budget.acquire(route, is_poll=is_poll)
        self.sent.append(now())
        try:
            await self.neon.request(route, seconds)
        finally:
            slot.release()

    async def run(self, routes: list[str], seconds: float, *, until: float) -> None:
        """Send requests one after another."""
        number = 0
        while now() < until:
            await self.request(routes[number % len(routes)], seconds)
            number += 1

    async def aclose(self) -> None:
        await self.budget.aclose()
