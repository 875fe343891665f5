"""The rest of the rate budget, which the polls of all projects share. Pure: no I/O."""

import logging
import math
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from neonctl_async.waiting.timing.schedule import POLLS

_logger = logging.getLogger(__name__)

MAX_STRETCH = 15.0
"""The largest factor by which polls come further apart."""
COMING = 0.25
"""The least number of waits that share the budget, as a share of the limit: others will come."""
SCOUTS = 8
"""The number of projects that are polled to measure how long an action takes."""


class RateBudget(Protocol):
    """The rate budget that all requests of a client share, as :class:`Budget` keeps it."""

    @property
    def per_minute(self) -> float:
        """The limit of requests per minute, inf without one."""
        ...

    @property
    def polls_per_second(self) -> float:
        """The limit of polls of one kind, inf without one."""
        ...

    @property
    def polls_left(self) -> float:
        """The slots of the minute that the waiting calls leave to polls, inf without a limit."""
        ...

    @property
    def waits(self) -> int:
        """The pending waits of all clients."""
        ...


class LastPoll(NamedTuple):
    """The time of the last poll before a deadline, and its place among the others."""

    at: float
    place: int


class Pace:
    """The pace of all polls of a client, which depends on the rest of the rate budget."""

    def __init__(self, budget: RateBudget) -> None:
        self._budget = budget
        self._is_short = False
        self._scouts: dict[str, set[object]] = {}
        self._last_polls: set[int] = set()

    def marks(self) -> int:
        """Return the number of marks of a wait that the budget allows, from 1 to POLLS.

        A wait with n marks takes about (n + 1) / 2 polls, because it may end before each of them.
        """
        waits = max(self._budget.waits, COMING * self._budget.per_minute)
        polls = self._budget.polls_left / waits if self._budget.per_minute < math.inf else math.inf
        return max(round(min(2 * polls - 1, POLLS)), 1)

    def stretch(self) -> float:
        """Return the factor by which delays get longer, 1 if each wait can have POLLS polls."""
        share = self._share(self._budget.waits)
        self._report(share)
        return _stretch(POLLS, share)

    def stretch_of_scouts(self) -> float:
        """Return the factor for the scouts of an action, as if nobody else were polled."""
        return _stretch(POLLS, self._share(min(self._budget.waits, SCOUTS)))

    def is_short_for(self, polls: int) -> bool:
        """Return whether the budget does not allow this number of polls for each wait."""
        return round(_stretch(polls, self._share(self._budget.waits))) > 1

    def _share(self, waits: int) -> float:
        """Return how many polls the budget allows for each of these waits."""
        left = max(self._budget.polls_left, 0.0)
        return left / waits if waits else math.inf

    def _report(self, share: float) -> None:
        """Log that the budget is short, once until it is plentiful."""
        is_short = share < (2 if self._is_short else 1) * POLLS
        if is_short and not self._is_short:
            _logger.info(
                "the rate budget is short: with the calls that wait for a slot, it allows %.2g "
                "polls for each wait. Polls come later than usual, and calls that start operations "
                "may wait longer",
                share,
            )
        self._is_short = is_short

    def is_scout(self, project: object, actions: Iterable[str]) -> bool:
        """Return whether a project is polled as usual to measure how long ``actions`` take.

        The first projects with such operations are. The others profit from what these find.
        """
        is_scout = False
        for action in actions:
            scouts = self._scouts.setdefault(action, set())
            if project not in scouts and len(scouts) < SCOUTS:
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
        if self._budget.polls_per_second < math.inf:
            place = latest_place = math.floor(latest * self._budget.polls_per_second)
            while place in self._last_polls:
                place -= 1
            self._last_polls.add(place)
            if place < latest_place:
                latest = place / self._budget.polls_per_second
        return LastPoll(latest, place)

    def cancel_last_poll(self, poll: LastPoll) -> None:
        """Give the time of a poll back."""
        self._last_polls.discard(poll.place)


def _stretch(polls: int, share: float) -> float:
    """Return ``polls`` as a multiple of the share of each wait, from 1 to MAX_STRETCH."""
    return min(max(polls / share, 1.0), MAX_STRETCH) if share else MAX_STRETCH
