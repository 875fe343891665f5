"""An account that many processes share through a store."""

import asyncio
import itertools
import logging
import math
import os
from collections import defaultdict, deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypeAlias

import anyio

from neonctl_async.clock import loop_time
from neonctl_async.config import RateBudget
from neonctl_async.transport.account import MINUTE, LocalAccount
from neonctl_async.transport.calls import LATE_SECONDS
from neonctl_async.transport.shared.messages import (
    EXCHANGE_SECONDS,
    Reply,
    Request,
    Slot,
    Store,
    Want,
)
from neonctl_async.transport.shared.table import AHEAD, CLOSING, VALID

HANDFUL = 8
"""The largest number of slots of a route that a client takes at once, all for waiting requests.
With a store that is 20 ms away, a client can then send 400 requests a second: ten times what a
route allows."""
REPORT_SECONDS = 0.05
"""The longest time until the end of a request is reported to the store. The next exchange may
report it sooner."""
ASK_AGAIN_SECONDS = 1.0
"""A client that is waiting for a slot asks the store again after at most this time. Other clients
may have returned slots by then."""
CLOSED_SECONDS = 2 * ASK_AGAIN_SECONDS
"""The time for which an account is closed after its data was lost, so that all waiting clients can
report what they have sent."""
RETRY_SECONDS = 1.0
"""The time until a lost store is tried again. It doubles with each failure."""
MAX_RETRY_SECONDS = 10.0
"""The longest time until a lost store is tried again: by default, a call backs off no longer."""

OnChange: TypeAlias = Callable[[], None]

_logger = logging.getLogger(__name__)


class _Held(NamedTuple):
    """A slot that may be used for a limited time. Times are on the event loop's clock."""

    number: int
    usable_at: float
    valid_until: float


class _Sent(NamedTuple):
    """A request that was sent within the last minute."""

    route: str
    ended_at: float
    """The time of the response; inf until it arrives."""


class SharedAccount:
    """An account whose clients take their slots from a store.

    When a request needs a slot, a task asks the store for it, and calls :attr:`on_change`. While
    the store is lost (cannot be used), the client keeps to its share of the limits.
    """

    def __init__(
        self,
        limits: RateBudget,
        store: Store,
        *,
        longest_request: float,
        fallback_parts: int,
        client: str = "",
    ) -> None:
        self.on_change: OnChange = _ignore
        self._limits = limits
        self._store = store
        self._longest = math.ceil(longest_request * 1000)
        self._client = client
        self._fallback_parts = fallback_parts
        self._local = LocalAccount(limits)
        """This client's requests, with the part of the limits that it uses while the store is
        lost."""
        self._numbers = itertools.count(1)
        self._wanted: dict[str, int] = {}
        """The number of slots to request in the next exchange, by route, in the scheduler's
        order."""
        self._held: defaultdict[str, deque[_Held]] = defaultdict(deque)
        self._in_flight: defaultdict[str, deque[int]] = defaultdict(deque)
        """The slots of the requests in flight, oldest first."""
        self._sent: dict[int, _Sent] = {}
        """The requests of the last minute, by the numbers of their slots."""
        self._unreported: list[int] = []
        """The slots of finished requests whose end the store does not know yet."""
        self._last_reported = 0
        self._reports_all = False
        """True if the store may lack slots of this client."""
        self._has_lost_data = False
        self._returned: list[Slot] = []
        self._retry_at: dict[str, float] = {}
        """The times before which the store has no slot, by route."""
        self._known = Reply(0, 1, 0, [], [], [])
        self._known_at = -math.inf
        self._lost_until = -math.inf
        """The time at which a lost store is tried again."""
        self._lost_seconds = 0.0
        """The time between attempts to reach a lost store; 0 while the store can be used."""
        self._sent_alone = 0
        """The number of requests sent since the store was lost."""
        self._timer: asyncio.TimerHandle | None = None
        self._due_at = math.inf
        """The time of the next exchange."""
        self._exchange: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def limit(self) -> int | None:
        """The limit per minute; None means no limit."""
        return self._local.limit if self._is_lost else self._limits.per_minute

    def used(self, now: float) -> int:
        """Return how many per-minute slots this client occupies."""
        return self._local.used(now)

    def free(self, now: float) -> float:
        """Return how many per-minute slots are free, as last known."""
        return self._local.free(now) if self._is_lost else self._free(now)

    def refill_at(self, now: float, slots: int) -> float:
        """Return when this many per-minute slots will be free: -inf if they already are."""
        if self._is_lost:
            return self._local.refill_at(now, slots)
        lacking = slots - self._free(now)
        if lacking <= 0:
            return -math.inf
        for at, count in self._refills:
            lacking -= count if at > now else 0
            if lacking <= 0:
                return at
        self._arm(now + ASK_AGAIN_SECONDS)
        return math.inf

    def free_at(self, route: str, now: float, *, waiting: int) -> float:
        """Return when a request to ``route`` may be sent: -inf if it may be sent now.

        If the client has no slot for the route, it requests up to HANDFUL slots for the waiting
        requests in the background.
        """
        if self._is_lost:
            self._arm(self._lost_until)
            if now < self._known_at + MINUTE and self._sent_alone * self._parts >= self._free(now):
                return now + ASK_AGAIN_SECONDS  # others have used the minute
            return self._local.free_at(route, now, waiting=waiting)
        self._drop_expired(now)
        if held := self._held[route]:
            return held[0].usable_at
        if (retry_at := self._retry_at.get(route, -math.inf)) > now:
            return retry_at
        self._wanted[route] = min(waiting, HANDFUL)
        self._arm(now)
        return math.inf

    def take(self, route: str, now: float) -> None:
        """Occupy a slot for a request that is about to be sent."""
        self._local.take(route, now)
        held = self._held[route]
        number = held.popleft().number if held else next(self._numbers)
        self._sent_alone += 1
        self._sent[number] = _Sent(route, math.inf)
        self._in_flight[route].append(number)

    def release(self, route: str, now: float) -> None:
        """Record the end of a request, which counts as the oldest one of its route."""
        self._local.release(route, now)
        number = self._in_flight[route].popleft()
        self._sent[number] = _Sent(route, now)
        self._unreported.append(number)
        self._arm(now + REPORT_SECONDS)

    def cancel(self, route: str, now: float) -> None:
        """Cancel a slot whose request was not sent."""
        self._local.cancel(route, now)
        number = self._in_flight[route].pop()
        del self._sent[number]
        self._returned.append(Slot(number, route, 0))
        self._arm(now)

    async def aclose(self) -> None:
        """Report the ends of all requests, release unused slots, and disconnect from the store."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        with anyio.CancelScope(shield=True):  # each wait is bounded
            try:
                await self._report_all()
            finally:
                await self._disconnect()

    async def _report_all(self) -> None:
        if self._exchange is not None:
            await self._exchange
        self._drop_expired(math.inf)
        self._wanted.clear()
        if (self._unreported or self._returned) and not self._is_lost:
            with suppress(Exception):  # the slots expire
                await self._ask(self._request(loop_time()))

    async def _disconnect(self) -> None:
        """Close the store. If the caller is cancelled, a task continues."""
        closing = asyncio.get_running_loop().create_task(self._store.aclose())
        await asyncio.wait({closing}, timeout=EXCHANGE_SECONDS)
        closing.cancel()
        await asyncio.wait({closing})
        if not closing.cancelled():
            closing.exception()  # nothing depends on it

    @property
    def _is_lost(self) -> bool:
        return self._lost_seconds > 0

    @property
    def _parts(self) -> int:
        """The number of clients that share the limits without the store."""
        return max(self._fallback_parts, self._known.clients)

    def _free(self, now: float) -> float:
        """Return how many per-minute slots are free for all clients, as last known."""
        if self._limits.per_minute is None:
            return math.inf
        if now >= self._known_at + MINUTE:
            return self._limits.per_minute
        refilled = sum(count for at, count in self._refills if at <= now)
        held = sum(map(len, self._held.values()))
        return self._limits.per_minute - self._known.used + refilled + held

    @property
    def _refills(self) -> list[tuple[float, int]]:
        return [(self._known_at + delay / 1000, count) for delay, count in self._known.refills]

    def _arm(self, at: float) -> None:
        """Plan an exchange, unless an earlier one is planned."""
        at = max(at, self._lost_until)
        if at < self._due_at:
            self._due_at = at
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._exchange is None and self._due_at < math.inf and not self._is_closed:
            self._timer = asyncio.get_running_loop().call_at(self._due_at, self._start)

    def _start(self) -> None:
        self._due_at = math.inf
        self._exchange = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Report the ends of requests to the store, and take slots, once."""
        sent_at = loop_time()
        request = self._request(sent_at)
        try:
            reply = await self._ask(request)
        except Exception as error:  # noqa: BLE001 - whatever fails in a store, calls go on without it
            self._lose(error, request)
        else:
            self._apply(request, reply, sent_at)
        finally:
            self._exchange = None
        self._set_timer()
        self.on_change()

    def _request(self, now: float) -> Request:
        # Not drawn earlier, because processes that fork with a client would have the same name.
        self._client = self._client or os.urandom(8).hex()
        self._sent = {one: sent for one, sent in self._sent.items() if sent.ended_at > now - MINUTE}
        reported = list(self._sent) if self._reports_all else self._unreported
        slots = [self._slot(one, now) for one in reported if one in self._sent]
        last = self._sent.get(self._last_reported)
        if last is not None and last.ended_at > now - MINUTE + EXCHANGE_SECONDS:
            # The store knows it, unless its data was lost.
            slots.append(self._slot(self._last_reported, now))
        if self._has_lost_data:
            slots.append(Slot(0, CLOSING, -int(CLOSED_SECONDS * 1000)))
        self._drop_expired(now)
        request = Request(
            client=self._client,
            limit=self._limits.per_minute or 0,
            longest=self._longest,
            slots=slots,
            returned=self._returned,
            wants=[] if self._reports_all else self._wants(),
        )
        self._last_reported = max([self._last_reported, *self._unreported])
        self._returned = []
        self._unreported.clear()
        self._wanted.clear()
        return request

    def _slot(self, number: int, now: float) -> Slot:
        route, ended_at = self._sent[number]
        age = -self._longest if ended_at == math.inf else int((now - ended_at) * 1000)
        return Slot(number, route, age)

    def _wants(self) -> list[Want]:
        return [
            Want(
                route,
                self._limits.limit_of(route) or 0,
                [next(self._numbers) for _ in range(count)],
            )
            for route, count in self._wanted.items()
        ]

    async def _ask(self, request: Request) -> Reply:
        """Send a message to the store. Raise TimeoutError if there is no reply in time."""
        task = asyncio.get_running_loop().create_task(self._store.exchange(request))
        try:
            deadline = loop_time() + EXCHANGE_SECONDS
            await asyncio.wait({task}, timeout=EXCHANGE_SECONDS)
            if not task.done() and loop_time() > deadline + LATE_SECONDS:  # the loop was blocked
                await asyncio.wait({task}, timeout=LATE_SECONDS)
            if not task.done():
                raise TimeoutError(f"no reply within {EXCHANGE_SECONDS:g} s")
            return task.result()
        finally:
            task.cancel()
            await asyncio.wait({task})

    def _apply(self, request: Request, reply: Reply, sent_at: float) -> None:
        """Take the slots that a reply grants."""
        now = loop_time()
        self._known, self._known_at = reply, now
        self._has_lost_data = bool(reply.unknown) and not self._reports_all
        # During the exchange, a client with a lost store may have sent more without it.
        self._reports_all = self._has_lost_data or self._is_lost
        routes = {number: want.route for want in request.wants for number in want.numbers}
        for number, delay in reply.grants:
            usable_at = now + delay / 1000 if delay else -math.inf
            valid_until = sent_at + (delay + VALID) / 1000
            self._held[routes[number]].append(_Held(number, usable_at, valid_until))
            self._arm(valid_until)
        self._retry_at = {route: at for route, at in self._retry_at.items() if at > now}
        for route, delay in reply.denials:
            seconds = max(delay - AHEAD, 0) / 1000
            self._retry_at[route] = now + min(seconds, ASK_AGAIN_SECONDS)
        if self._reports_all:
            self._arm(now)
        if self._is_lost:
            _logger.info("the shared rate budget %s can be used again", self._store.name)
        self._lost_seconds, self._lost_until = 0.0, -math.inf

    def _lose(self, error: Exception, request: Request) -> None:
        """Use a part of the limits until the store can be used again."""
        self._drop_expired(math.inf)
        self._reports_all = True
        self._returned += request.returned
        self._returned += [
            Slot(number, want.route, 0) for want in request.wants for number in want.numbers
        ]
        if not self._is_lost:
            self._sent_alone = 0
            _logger.warning(
                "the shared rate budget %s cannot be used: %s: %s. Until it can, this client "
                "uses 1/%d of the limits",
                self._store.name,
                type(error).__name__,
                error,
                self._parts,
            )
            self._local.set_limits(self._limits.split(self._parts))
        self._lost_seconds = min(max(2 * self._lost_seconds, RETRY_SECONDS), MAX_RETRY_SECONDS)
        self._lost_until = loop_time() + self._lost_seconds
        self._due_at = math.inf
        if self._local.used(loop_time()):  # an idle client stops trying
            self._arm(self._lost_until)

    def _drop_expired(self, now: float) -> None:
        """Plan the return of the slots that have expired unused by ``now``."""
        for route, held in self._held.items():
            while held and held[0].valid_until <= now:
                self._returned.append(Slot(held.popleft().number, route, 0))


def _ignore() -> None:
    pass
