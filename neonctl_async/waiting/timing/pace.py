"""The pace of polls, which depends on the rest of the rate budget. Pure: no I/O."""

import logging
import math
from collections.abc import Callable
from typing import TypeAlias

_logger = logging.getLogger(__name__)

PLENTY = 4.5
"""The polls left for each pending wait from which polls need not be saved."""
MINUTE = 60.0
"""The period of the rate limit, in seconds."""
AMPLE = 20.0
"""The polls left for each pending wait from which a crowded project gets more of them."""
MAX_STRETCH = 15.0
"""The largest factor by which delays are stretched."""
SCOUT_SHARE = 0.01
"""The share of free slots that is spent at a time to measure how long operations take."""
EXPLORERS = 0.01
"""The share of projects that are polled at a time to see whether durations have changed."""
POLLS_OF_PROJECT = 4
"""The largest number of waits in a project that count: one poll serves many of them."""
WHOLE_PROJECT_STRETCH = 4.0
"""The stretch from which one poll serves all waits of a project."""

RECHECK_SECONDS = 1.0
"""The shortest time after which a plan is made again while the rate budget is short, in seconds."""
RECHECKS = 200
"""The largest number of plans that are made again in a second."""

Kind: TypeAlias = tuple[str, ...]
"""The actions of the operations of a wait."""


class Pace:
    """The pace of all polls of a client.

    ``share`` returns how many polls the budget allows for each pending wait. From PLENTY on, each
    project is polled at its own pace. Below it, delays are stretched, and only a few projects are
    polled to measure how long operations take.
    """

    def __init__(
        self,
        share: Callable[[], float],
        free: Callable[[], float],
        round_seconds: Callable[[], float],
        note_pending: Callable[[int, int], None],
    ) -> None:
        self._share = share
        self._free = free
        self._round_seconds = round_seconds
        self._note_pending = note_pending
        self._waits = 0
        self._is_short = False
        self._scouted_at = -math.inf
        self._scouted_ages: dict[Kind, float] = {}
        self.projects: int = 0
        """The number of projects with pending operations."""

    def note_waits(self, before: int, now: int) -> None:
        """Record that the number of pending waits of a project has changed."""
        self._waits += min(now, POLLS_OF_PROJECT) - min(before, POLLS_OF_PROJECT)
        self.projects += bool(now) - bool(before)
        if not self.projects:
            self._scouted_ages.clear()  # else one very long wait would delay all later scouts
        self._note_pending(self._waits, self.projects)

    def stretch(self) -> float:
        """Return the factor by which delays are stretched: 1 if the budget is plentiful."""
        share = self._share()
        if share >= PLENTY:
            self._is_short = self._is_short and share < AMPLE
            return 1.0
        if self._waits and not self._is_short:
            self._is_short = True
            _logger.info(
                "the rate budget is short: with the calls that wait for a slot, it allows %.2g "
                "polls for each wait. Polls come later than usual, and calls that start operations "
                "may wait longer",
                max(share, 0.0),
            )
        return min(PLENTY / share, MAX_STRETCH) if share > 0 else MAX_STRETCH

    def longest_delay(self, maximum: float, stretch: float, waited: float) -> float:
        """Return the longest delay between two polls, in seconds, if it is usually ``maximum``.

        After a minute, the slots of the first polls are free again. The delay then need not be
        longer than the time in which the budget allows a poll for each wait.
        """
        longest = maximum * stretch
        return longest if waited < MINUTE else min(longest, max(maximum, self._round_seconds()))

    def recheck_seconds(self) -> float:
        """Return the time after which a project's plan is made again while the budget is short.

        All projects together make RECHECKS plans a second at most: each costs computing time.
        """
        return max(RECHECK_SECONDS, self.projects / RECHECKS)

    def is_ample(self) -> bool:
        """Return whether a crowded project may get more polls than usual."""
        return self._share() >= AMPLE

    def scouted_age(self, kind: Kind) -> float:
        """Return the largest age, in seconds, at which waits of a kind were seen pending."""
        return self._scouted_ages.get(kind, 0.0)

    def note_pending(self, kind: Kind, age: float) -> None:
        """Record that a wait of a kind was still pending at this age."""
        self._scouted_ages[kind] = max(age, self._scouted_ages.get(kind, 0.0))

    def scout_at(self, delay: float, stretch: float) -> float:
        """Return when the next scout may be polled.

        ``delay`` is the delay of a project that is polled alone.
        """
        scouts = max(SCOUT_SHARE * self._free(), self.projects / stretch**2)
        return self._scouted_at + delay / scouts

    def explore_at(self, delay: float) -> float:
        """Return when the next scout is polled to check whether durations have changed."""
        return self._scouted_at + delay / (EXPLORERS * self.projects)

    def note_scout(self, now: float) -> None:
        """Record that a scout is polled now."""
        self._scouted_at = now
