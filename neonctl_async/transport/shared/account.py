"""An account that many processes share through a store."""

import asyncio
import logging
import math
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from neonctl_async.clock import loop_time
from neonctl_async.config import RateBudget
from neonctl_async.transport.account import NO_DEMAND, Demand, LocalAccount
from neonctl_async.transport.calls import LATE_SECONDS
from neonctl_async.transport.shared.held_slots import HeldSlots
from neonctl_async.transport.shared.messages import EXCHANGE_SECONDS, Reply, Request, Store
from neonctl_async.transport.shared.state import FORGET

RETRY_SECONDS = 1.0
"""The time until a lost store is tried again. It doubles with each failure, like any backoff."""
MAX_RETRY_SECONDS = 10.0
"""The longest time until a lost store is tried again, like the longest backoff of a call."""

OnChange: TypeAlias = Callable[[], None]

_logger = logging.getLogger(__name__)


class SharedAccount:
    """An account whose slots many clients lease from a store.

    While the store cannot be used, the client keeps to an equal part of the limits. A timer starts
    each exchange with the store; there is no task in between, and none while the client is idle.
    """

    def __init__(
        self,
        limits: RateBudget,
        store: Store,
        *,
        longest_request: float,
        fallback_parts: int,
        holder: str = "",
    ) -> None:
        self.on_change: OnChange = _ignore
        self._limits = limits
        self._store = store
        self._slots = HeldSlots(limits, longest_request, holder)
        self._fallback_parts = fallback_parts
        self._local = LocalAccount(limits)
        """The requests of this client, with its part of the limits for a lost store."""
        self._retry_at = -math.inf
        self._retry_seconds = 0.0
        """The time between attempts to reach a lost store, or 0."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = math.inf
        self._exchange: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def limit(self) -> int | None:
        """The limit per minute, None without one."""
        return self._local.limit if self._is_lost else self._limits.per_minute

    @property
    def others(self) -> Demand:
        """The demand of the other clients, as last known."""
        known = self._slots.known
        return known.others if loop_time() < known.at + FORGET / 1000 else NO_DEMAND

    def report(self, demand: Demand) -> None:
        """Report the demand of this client to the others, with the next exchange."""
        self._slots.demand = demand

    def used(self, now: float) -> int:
        """Return how many slots of the minute this client occupies."""
        return self._local.used(now)

    def free(self, now: float) -> float:
        """Return how many slots of the minute are free, as last known."""
        return (self._local if self._is_lost else self._slots).free(now)

    def refill_at(self, now: float, slots: int) -> float:
        """Return when this many slots of the minute are free: -inf if they are free now."""
        if self._is_lost:
            return self._local.refill_at(now, slots)
        refill_at = self._slots.refill_at(now, slots)
        if refill_at == math.inf:
            self._slots.ask_again(now)
            self._arm(self._slots.due_at(now))
        return refill_at

    def free_at(self, route: str, now: float, *, is_poll: bool) -> float:
        """Return when a request to ``route`` may be sent: -inf if it may be sent now.

        Without a lease, the client requests one from the store in the background.
        """
        if self._is_lost:
            self._arm(self._retry_at)
            return self._local.free_at(route, now, is_poll=is_poll)
        free_at = self._slots.free_at(route, now, is_poll=is_poll)
        if free_at == math.inf:
            self._arm(now)
        return free_at

    def take(self, route: str, now: float, *, is_poll: bool) -> None:
        """Occupy a slot for a request that is sent now."""
        self._local.take(route, now, is_poll=is_poll)
        if self._slots.take(route, now):
            self._arm(now)

    def release(self, route: str, now: float) -> None:
        """Record the end of a request."""
        self._local.release(route, now)
        self._arm(self._slots.release(route, now))

    def cancel(self, route: str, now: float) -> None:
        """Give a slot back whose request was not sent."""
        self._local.cancel(route, now)
        self._slots.cancel(route)
        self._arm(now)

    async def aclose(self) -> None:
        """Return all leases, and close the connection to the store."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._exchange is not None:
            await self._exchange
        self._slots.return_all()
        if self._slots.has_report and not self._is_lost:
            with suppress(Exception):  # the leases expire
                await self._ask(self._request(loop_time()))
        closing = asyncio.get_running_loop().create_task(self._store.aclose())
        await asyncio.wait({closing}, timeout=EXCHANGE_SECONDS)
        closing.cancel()
        await asyncio.wait({closing})
        if not closing.cancelled():
            closing.exception()  # nothing depends on it

    @property
    def _is_lost(self) -> bool:
        return self._retry_seconds > 0

    def _arm(self, at: float) -> None:
        """Start an exchange at a time, unless an earlier one is planned."""
        if self._is_closed or self._exchange is not None or at == math.inf:
            return
        at = max(at, self._retry_at)
        # Not the when() of the timer: uvloop returns a handle without it for a time that has come.
        if self._timer is None or at < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_at = at
            self._timer = asyncio.get_running_loop().call_at(at, self._start)

    def _start(self) -> None:
        self._timer = None
        now = loop_time()
        if (due_at := self._slots.due_at(now)) > now and not self._is_lost:
            self._arm(due_at)
        else:
            self._exchange = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        """Exchange reports and leases with the store once."""
        sent_at = loop_time()
        request = self._request(sent_at)
        try:
            reply = await self._ask(request)
        except Exception as error:  # noqa: BLE001 - whatever fails in a store, calls go on without it
            self._slots.fail(request, sent_at)
            self._lose(error)
        else:
            self._slots.apply(request, reply, sent_at, loop_time())
            self._recover()
        finally:
            self._exchange = None
        if not self._is_lost or self._local.used(loop_time()):  # an idle client tries no longer
            self._arm(self._slots.due_at(loop_time()))
        self.on_change()

    def _request(self, now: float) -> Request:
        # Not drawn before: processes that fork with a client would have the same name.
        self._slots.holder = self._slots.holder or os.urandom(8).hex()
        return self._slots.request(now)

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

    def _lose(self, error: Exception) -> None:
        """Use a part of the limits until the store is back."""
        parts = max(self._fallback_parts, self._slots.known.holders)
        if not self._is_lost:
            _logger.warning(
                "the shared rate budget %s cannot be used: %s: %s. Until it can, this client "
                "uses 1/%d of the limits",
                self._store.name,
                type(error).__name__,
                error,
                parts,
            )
            self._local.set_limits(self._limits.split(parts))
        self._retry_seconds = min(max(2 * self._retry_seconds, RETRY_SECONDS), MAX_RETRY_SECONDS)
        self._retry_at = loop_time() + self._retry_seconds

    def _recover(self) -> None:
        if self._is_lost:
            _logger.info("the shared rate budget %s can be used again", self._store.name)
        self._retry_seconds = 0.0
        self._retry_at = -math.inf


def _ignore() -> None:
    pass
