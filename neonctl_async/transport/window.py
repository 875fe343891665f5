"""A sliding window: counts requests against a limit. Pure: times are passed in."""

import math
from collections import deque


class SlidingWindow:
    """A limit of requests within any ``period`` seconds; None is no limit.

    Neon counts a request when it arrives, at some time between sending and the response. Its slot
    is therefore occupied from sending until one period after the response. A leaky bucket would
    allow nearly twice the limit.
    """

    __slots__ = ("_ended_at", "_in_flight", "_period", "limit")

    def __init__(self, limit: int | None, period: float) -> None:
        self.limit: int | None = limit
        self._period = period
        self._in_flight = 0
        self._ended_at: deque[float] = deque()

    def used(self, now: float) -> int:
        """Return the number of occupied slots."""
        while self._ended_at and self._ended_at[0] + self._period <= now:
            self._ended_at.popleft()
        return self._in_flight + len(self._ended_at)

    def free(self, now: float) -> float:
        """Return the number of free slots, inf without a limit."""
        return math.inf if self.limit is None else self.limit - self.used(now)

    def free_at(self, now: float, slots: int = 1) -> float:
        """Return when this many slots are free: -inf if they are free now.

        The result is inf if requests in flight have to end first.
        """
        ended_at = self._ended_at
        if self.limit is None or self._in_flight + len(ended_at) + slots <= self.limit:
            return -math.inf
        lacking = self.used(now) + slots - self.limit
        if lacking <= 0:
            return -math.inf
        if lacking > len(ended_at):
            return math.inf
        return ended_at[lacking - 1] + self._period

    def take(self) -> None:
        """Occupy a slot for a request that is sent now."""
        self._in_flight += 1

    def release(self, now: float) -> None:
        """Record the end of a request. Its slot becomes free one period later."""
        self._in_flight -= 1
        self._ended_at.append(now)
        if self.limit is None:
            self.used(now)  # deletes old entries, which free_at() does in a window with a limit

    def cancel(self) -> None:
        """Give a slot back whose request was not sent."""
        self._in_flight -= 1
