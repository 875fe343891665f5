"""Long polls: a server that announces them responds when operations have finished. Pure: no I/O.

The server announces ``Accept-Prefer: wait=5``, in seconds. A long poll has the header
``Prefer: wait=0.25`` (RFC 7240, with a fraction).
"""

import re
from typing import Final

from neonctl_async.config import RateBudget, Timeout

ANNOUNCEMENT: Final = "Accept-Prefer"
"""The response header with which a server announces long polls."""
MAX_SECONDS: Final = 5.0
"""The longest time for which a response may be delayed. The timeout of a poll is twice as long."""
PART: Final = 4
"""Long polls use at most one of so many connections, and of so many requests to a route."""
_WAIT: Final = re.compile(r"wait=([0-9]{1,9}(?:\.[0-9]{1,9})?)")


class LongPolls:
    """The long polls of a client: whether the server offers them, and how many are in flight."""

    def __init__(self, timeout: Timeout, budget: RateBudget, connections: int) -> None:
        # A poll must end before its read timeout, also on a slow network.
        self._limit = min(MAX_SECONDS, timeout.read / 2, timeout.total / 2)
        route_limit = budget.per_route_per_second or connections
        self._most = min(connections, route_limit) // PART
        self._in_flight = 0
        self._announced = 0.0

    @property
    def longest(self) -> float:
        """The time for which the response to a poll may be delayed now; 0 if it may not."""
        return self._announced if self._in_flight < self._most else 0.0

    def note(self, announcement: str | None) -> None:
        """Record the announcement of the newest response. None and an invalid one withdraw it."""
        self._announced = 0.0
        if announcement is not None and (wait := _WAIT.fullmatch(announcement)):
            self._announced = min(float(wait[1]), self._limit)

    def start(self) -> None:
        """Record the start of a long poll."""
        self._in_flight += 1

    def end(self) -> None:
        """Record the end of a long poll."""
        self._in_flight -= 1


def preference(seconds: float) -> str:
    """Return the value of the header ``Prefer`` of a long poll."""
    return f"wait={seconds:.3f}"
