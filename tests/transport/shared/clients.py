"""Clients that share an account on a fake clock, and the limits that Neon would enforce."""

import asyncio
import sqlite3
import weakref
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from neonctl_async.config import RateBudget
from neonctl_async.transport.budget import Budget
from neonctl_async.transport.shared.account import SharedAccount
from neonctl_async.transport.shared.messages import Reply, Request, Store
from neonctl_async.transport.shared.table import CREATE, exchange
from tests.support.clock import now

LIMITS = RateBudget()

T = TypeVar("T")


class Table:
    """The table of an account, in memory. ``now`` is in milliseconds."""

    def __init__(self) -> None:
        self._now = 0
        # The garbage of one test is collected in any thread of a later one.
        self.db = _in_memory(
            lambda: sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        )
        _in_memory(lambda: self.db.executescript(CREATE))
        # A method __del__ could run after the finalizer of the connection, which warns.
        weakref.finalize(self, _in_memory, self.db.close)

    def exchange(self, request: Request, now: int) -> Reply:
        self._now = now
        return _in_memory(lambda: exchange(self.db, "account", request, now))

    def clear(self) -> None:
        """Lose all data."""
        _in_memory(lambda: self.db.execute("DELETE FROM slots"))

    @property
    def slots(self) -> int:
        """The number of slots."""
        return self._count("SELECT count(*) FROM slots")

    @property
    def in_flight(self) -> int:
        """The number of slots without a response, as far as the table knows."""
        return self._count(f"SELECT count(*) FROM slots WHERE ended_at > {self._now}")

    @property
    def closings(self) -> int:
        """The number of clients that have noticed a loss of data in the last minute."""
        return self._count("SELECT count(*) FROM slots WHERE route = ''")

    def _count(self, query: str) -> int:
        count: int = _in_memory(lambda: self.db.execute(query).fetchone()[0])
        return count


def _in_memory(use: Callable[[], T]) -> T:
    """Use a database in memory, which the event loop need not wait for."""
    return use()


class MemoryStore:
    """A store in memory, with a clock and a round trip. It can fail, hang and lose its data."""

    def __init__(self, round_trip: float = 0.002) -> None:
        self.name = "memory"
        self.table = Table()
        self.exchanges = 0
        self.failures = 0
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
            self.failures += 1
            raise self.error
        self.exchanges += 1
        reply = self.table.exchange(request, int((now() + self.clock_offset) * 1000))
        await asyncio.sleep(self.round_trip / 2)
        return reply

    async def aclose(self) -> None:
        self.closed += 1
        if self.hangs:
            await asyncio.Event().wait()


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


class Link:
    """The connection of one client to the store, which can be cut."""

    def __init__(self, store: Store) -> None:
        self.name = store.name
        self.is_cut = False
        self._store = store

    async def exchange(self, request: Request) -> Reply:
        if self.is_cut:
            await asyncio.Event().wait()
        return await self._store.exchange(request)

    async def aclose(self) -> None:
        await self._store.aclose()


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
        self.link = Link(self.store)
        self.account = SharedAccount(
            self.limits,
            self.link,
            client=f"{next(_NUMBERS):08x}",
            longest_request=30.0,
            fallback_parts=self.fallback_parts,
        )
        self.budget = Budget(self.limits, 100, self.account)

    async def request(
        self, route: str = "GET /projects", seconds: float = 0.02, *, is_poll: bool = False
    ) -> None:
        slot = await self.budget.acquire(route, is_poll=is_poll)
        try:
            if not self.link.is_cut:
                self.sent.append(now())
                await self.neon.request(route, seconds)
        finally:
            slot.release()

    async def run(self, routes: Sequence[str], *, seconds: float = 0.02, until: float) -> None:
        """Send requests one after another, until a time or until the client is killed."""
        number = 0
        while now() < until and not self.link.is_cut:
            await self.request(routes[number % len(routes)], seconds)
            number += 1

    def kill(self) -> None:
        """Send nothing any more, neither to Neon nor to the store."""
        self.link.is_cut = True

    async def aclose(self) -> None:
        await self.budget.aclose()


@asynccontextmanager
async def sharing(
    number: int, store: Store, neon: Neon, **settings: Any
) -> AsyncGenerator[list[SharingClient]]:
    """Provide clients that share an account."""
    clients = [SharingClient(store, neon, **settings) for _ in range(number)]
    try:
        yield clients
    finally:
        for client in clients:
            await client.aclose()
