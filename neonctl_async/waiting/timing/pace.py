"""What the polls of all projects share: the rest of the rate budget. Pure: no I/O."""

import logging
import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from neonctl_async.waiting.timing.prediction import MIN_DURATIONS
from neonctl_async.waiting.timing.schedule import SHARES

_logger = logging.getLogger(__name__)

PLENTY = len(SHARES)
"""The polls left for each pending wait from which polls need not be saved."""


class LastPoll(NamedTuple):
    """The time of the last poll before a deadline, and its place among the others."""

    at: float
    place: int


class Pace:
    """The pace of all polls of a client.

    ``share`` returns how many polls the rest of the rate budget allows for each pending wait. Below
    PLENTY, the polls of a project come further apart.
    """

    def __init__(self, share: Callable[[], float], polls_per_second: float = math.inf) -> None:
        self._share = share
        self._polls_per_second = polls_per_second
        self._is_short = False
        self._scouts: dict[str, set[object]] = {}
        self._last_polls: set[int] = set()

    def stretch(self) -> float:
        """Return the factor by which polls come further apart: 1 if the budget is plentiful."""
        share = self._share()
        if share >= PLENTY:
            self._is_short = self._is_short and share < 2 * PLENTY
            return 1.0
        if not self._is_short:
            self._is_short = True
            _logger.info(
                "the rate budget is short: with the calls that wait for a slot, it allows %.2g "
                "polls for each wait. Polls come later than usual, and calls that start "
                "operations may wait longer",
                max(share, 0.0),
            )
        return PLENTY / share if share > 0 else math.inf

    def is_scout(self, project: object, actions: Iterable[str]) -> bool:
        """Return whether a project is polled as usual to measure how long ``actions`` take.

        The first projects with such operations are. The others profit from what these find.
        """
        is_scout = False
        for action in actions:
            scouts = self._scouts.setdefault(action, set())
            if project not in scouts and len(scouts) < MIN_DURATIONS:
                scouts.add(project)
            is_scout |= project in scouts
        return is_scout

    def release_scout(self, project: object) -> None:
        """Record that a project has no pending operations any more."""
        for scouts in self._scouts.values():
            scouts.discard(project)

    def book_last_poll(self, latest: float) -> LastPoll:
        """Return a time for a poll before a deadline: ``latest``, or earlier if it is taken.

        Many projects may have the same deadline, and the limit per second allows only some polls.
        """
        place = 0
        if self._polls_per_second < math.inf:
            place = latest_place = math.floor(latest * self._polls_per_second)
            while place in self._last_polls:
                place -= 1
            self._last_polls.add(place)
            if place < latest_place:
                latest = place / self._polls_per_second
        return LastPoll(latest, place)

    def cancel_last_poll(self, poll: LastPoll) -> None:
        """Give the time of a poll back."""
        self._last_polls.discard(poll.place)
