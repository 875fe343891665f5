"""What the polls of all projects share: the rest of the rate budget. Pure: no I/O."""

import logging
import math
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from neonctl_async.waiting.timing.prediction import MIN_DURATIONS
from neonctl_async.waiting.timing.schedule import POLLS

_logger = logging.getLogger(__name__)

MAX_STRETCH = 15.0
"""The largest factor by which polls come further apart."""


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
    """The pace of all polls of a client.

    Polls come further apart if the rest of the minute does not allow POLLS for each wait. They do
    so before that if a large part of the minute is used, because other waits will come.
    """

    def __init__(self, budget: RateBudget) -> None:
        self._budget = budget
        self._is_short = False
        self._scouts: dict[str, set[object]] = {}
        self._last_polls: set[int] = set()

    def stretch(self, polls: int = POLLS) -> float:
        """Return the factor by which polls come further apart, 1 if the budget is plentiful.

        It is plentiful if it allows ``polls`` polls for each wait.
        """
        left = self._budget.polls_left
        waits = self._budget.waits
        stretch = _ratio(max(polls * waits, self._budget.per_minute / 4), left)
        self._report(left / waits if waits else math.inf)
        return stretch

    def stretch_of_scouts(self) -> float:
        """Return the factor for the scouts of an action, as if nobody else were polled."""
        waits = min(self._budget.waits, MIN_DURATIONS)
        return _ratio(POLLS * waits, self._budget.polls_left)

    def _report(self, share: float) -> None:
        """Log that the budget is short, once until it is plentiful."""
        is_short = share < (2 if self._is_short else 1) * POLLS
        if is_short and not self._is_short:
            _logger.info(
                "the rate budget is short: with the calls that wait for a slot, it allows %.2g "
                "polls for each wait. Polls come later than usual, and calls that start operations "
                "may wait longer",
                max(share, 0.0),
            )
        self._is_short = is_short

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


def _ratio(wanted: float, left: float) -> float:
    """Return ``wanted`` slots as a multiple of those that are left, from 1 to MAX_STRETCH."""
    if left == math.inf:
        return 1.0
    return min(max(wanted / left, 1.0), MAX_STRETCH) if left > 0 else MAX_STRETCH
