"""How long operations of each kind take, learned from those that have ended. Pure: no I/O."""

import math
from collections import deque
from collections.abc import Sequence

ENOUGH = 5
"""Durations of a kind to have seen before they are trusted."""
REMEMBERED = 32
"""Durations of a kind that are kept: the newest ones."""
LOOKS = 3
"""Looks into which the range of durations is divided."""


class Forecast:
    """A small sketch of how long each kind of operation took lately, in seconds."""

    def __init__(self) -> None:
        self._durations: dict[str, deque[float]] = {}
        self._marks: dict[str, tuple[float, ...]] = {}

    def note(self, action: str, duration: float) -> bool:
        """Learn from an operation that has ended; whether its kind is known from now on."""
        durations = self._durations.setdefault(action, deque(maxlen=REMEMBERED))
        durations.append(duration)
        if len(durations) < ENOUGH:
            return False
        is_news = action not in self._marks
        self._marks[action] = _marks(sorted(durations))
        return is_news

    @property
    def is_empty(self) -> bool:
        """Whether no kind is known yet."""
        return not self._marks

    def marks(self, action: str) -> tuple[float, ...]:
        """When to look at an operation, in seconds from its begin; empty for an unknown kind.

        By each mark the same share of the operations has ended: by the last, all that were seen.
        """
        return self._marks.get(action, ())


def _marks(durations: Sequence[float]) -> tuple[float, ...]:
    marks: list[float] = []
    for look in range(1, LOOKS + 1):
        reached = durations[math.ceil(len(durations) * look / LOOKS) - 1]
        # A little later, so that the look finds what ends there; looks closer than that are one.
        mark = reached * 1.02 + 0.02
        if marks and mark - marks[-1] < 0.1 * mark:
            marks.pop()
        marks.append(mark)
    return tuple(marks)
