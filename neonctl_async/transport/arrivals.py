"""The rate at which calls come. Pure: times are passed in."""

from statistics import median

SECONDS = 10
"""The number of whole seconds over which the rate is measured."""


class Arrivals:
    """The calls of the last seconds.

    Their rate is the median of the whole seconds, so that a burst does not count: it is over
    before its calls could be expected to continue.
    """

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def note(self, now: float) -> None:
        """Record a call."""
        second = int(now)
        if second not in self._counts:
            oldest = second - SECONDS
            self._counts = {at: count for at, count in self._counts.items() if at >= oldest}
            self._counts[second] = 0
        self._counts[second] += 1

    def per_second(self, now: float) -> float:
        """Return the rate of calls."""
        last = int(now)
        return median(self._counts.get(second, 0) for second in range(last - SECONDS, last))
