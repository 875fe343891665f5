"""What is left of the rate budget, which the polls of all projects share. Pure: no I/O."""

import logging
import math
from collections.abc import Iterable
from typing import NamedTuple, Protocol

_logger = logging.getLogger(__name__)

UNKNOWN_POLLS = 6.0
"""The polls that a project needs while the end of its operations cannot be predicted."""
MAX_STRETCH = 7.0
"""The largest factor by which polls are delayed."""
RESERVE = 0.1
"""The share of the limit that is left unplanned for other calls and waits to come."""
SCOUTS = 4
"""The number of projects that are polled to measure how long an action takes."""
CROWD = UNKNOWN_POLLS
"""The least factor by which delays get longer for the projects that are no scouts."""


class PollBudget(Protocol):
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
    def polls_wanted(self) -> float:
        """The polls that the pending waits of all clients will probably need."""
        ...


class LastPoll(NamedTuple):
    """The time of the last poll before a deadline, and its place among the others."""

    at: float
    place: int


class Pace:
    """The pace of all polls of a client, which depends on what is left of the rate budget."""

    def __init__(self, budget: PollBudget) -> None:
        self._budget = budget
        self._is_short = False
        self._scouts: dict[str, set[object]] = {}
        self.released_scouts: int = 0
        """The number of releases so far. After one, another project becomes a scout."""
        self._last_polls: set[int] = set()

    def stretch(self) -> float:
        """Return the factor by which delays get longer; 1 if the budget suffices for all polls.

        It is rounded, so that small changes of the budget do not change any plan.
        """
        wanted, left = self._budget.polls_wanted, self._left
        self._report(left / wanted if wanted else math.inf)
        return _stretch(wanted, left)

    def stretch_of_scouts(self) -> float:
        """Return the factor for scouts, which are polled as if there were no others."""
        return min(self.stretch(), _stretch(SCOUTS * UNKNOWN_POLLS, self._left))

    @property
    def _left(self) -> float:
        """The slots of the minute that may be planned for."""
        if self._budget.per_minute == math.inf:
            return math.inf
        return max(self._budget.polls_left - RESERVE * self._budget.per_minute, 0.0)

    def _report(self, share: float) -> None:
        """Log that the budget is short, once until it is plentiful."""
        is_short = share < (2 if self._is_short else 1)
        if is_short and not self._is_short:
            _logger.info(
                "the rate budget is short: with the calls that wait for a slot, it allows %.2g "
                "of the polls that the waits need. Polls come later than usual, and calls that "
                "start operations may wait longer",
                share,
            )
        self._is_short = is_short

    def is_scout(self, project: object, actions: Iterable[str]) -> bool:
        """Return whether a project is polled as usual to measure how long ``actions`` take.

        The first SCOUTS projects with one of them are, until they are released.
        """
        is_scout = False
        for action in actions:
            scouts = self._scouts.setdefault(action, set())
            if project not in scouts and len(scouts) < SCOUTS:
                scouts.add(project)
            is_scout |= project in scouts
        return is_scout

    def release_scout(self, project: object) -> None:
        """Record that a project no longer measures durations."""
        for scouts in self._scouts.values():
            if project in scouts:
                scouts.discard(project)
                self.released_scouts += 1

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
        """Release the booked time of a poll."""
        self._last_polls.discard(poll.place)


def _stretch(wanted: float, left: float) -> float:
    """Return the polls that are wanted as a multiple of those left, from 1 to MAX_STRETCH."""
    if wanted <= left:
        return 1.0
    return min(round(4 * wanted / left) / 4, MAX_STRETCH) if left else MAX_STRETCH
