"""The rate at which calls come. Pure: times are passed in."""

from collections import deque

SECONDS = 10
"""The number of whole seconds over which the rate is measured."""


class Arrivals:
    """The calls of the last seconds.

    Their rate is the median of the whole seconds. A burst therefore does not count: its calls are
    not expected to continue.
    """

    __slots__ = ("_count", "_counts", "_rate", "_second")

    def __init__(self) -> None:
        self._second = 0
        self._count = 0
        self._counts = deque([0] * SECONDS, maxlen=SECONDS)
        self._rate = 0.0

    def note(self, now: float) -> None:
        """Record a call."""
        if int(now) != self._second:
            self._start_second(int(now))
        self._count += 1

    def per_second(self, now: float) -> float:
        """Return the rate of calls."""
        if int(now) != self._second:
            self._start_second(int(now))
        return self._rate

    def _start_second(self, second: int) -> None:
        self._counts.append(self._count)
        self._counts.extend([0] * min(second - self._second - 1, SECONDS))
        self._second, self._count = second, 0
        # The median of an even number of counts. The import of statistics would take 2 ms.
        self._rate = sum(sorted(self._counts)[SECONDS // 2 - 1 : SECONDS // 2 + 1]) / 2
