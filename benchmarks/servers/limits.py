"""The rate limits of the simulator, and another client of the same account."""

from collections import deque


class SlidingWindow:
    """A limit of requests that arrive in any ``period`` seconds. Refused requests do not count."""

    def __init__(self, limit: int | None, period: float) -> None:
        self._limit = limit
        self._period = period
        self._newest: deque[float] = deque(maxlen=limit or 0)

    def delay(self, now: float) -> float:
        """Return the seconds from ``now`` until the limit allows a request."""
        if self._limit is None or len(self._newest) < self._limit:
            return 0.0
        # The client adds as well. A subtraction would round differently.
        free_at = self._newest[0] + self._period
        return 0.0 if free_at <= now else free_at - now

    def take(self, now: float) -> None:
        """Count a request."""
        self._newest.append(now)


class SteadyClient:
    """A client that sends at a constant rate. It repeats no refused request."""

    def __init__(self, per_second: float, since: float) -> None:
        self._per_second = per_second
        self._since = since
        self._sent = 0

    def send_until(self, now: float, account: SlidingWindow) -> None:
        """Send the requests that are due until ``now``."""
        while self._per_second and (at := self._since + self._sent / self._per_second) <= now:
            self._sent += 1
            if not account.delay(at):
                account.take(at)
