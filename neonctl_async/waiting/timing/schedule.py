"""The times at which a wait probably ends, without I/O. Times are in seconds."""

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from neonctl_async.config import PollPolicy
from neonctl_async.waiting.timing.prediction import Prediction

POLLS = 3
"""The marks of a wait, each of which gets a poll if the rate budget is plentiful."""
GRID = 16
"""The number of equally probable ends of a wait that its marks are chosen from."""
MARGIN = 0.02
"""The time from a predicted end to its mark: a share of the duration, and as many seconds."""
SLOW_AFTER = 8.0
"""The delay, as a multiple of the first one, from which delays grow more slowly."""
SLOW_GROWTH = 0.44
"""The growth of such delays, as a share of that of the first ones."""
ROUNDING = 1e-6
"""The difference of two times, in seconds, that may come from their computation."""


class Marks(NamedTuple):
    """The times at which a wait probably ends, in seconds from the start of its operations."""

    seconds: tuple[float, ...] = ()
    """The times, in order; empty without history."""
    observed: int = 0
    """The number of marks that rest on observed durations. The later ones are estimates."""


NO_MARKS = Marks()


class Group(NamedTuple):
    """Pending operations of one action that a wait needs."""

    prediction: Prediction
    operations: int
    starts_after: float
    """The start of the youngest one, in seconds after the start that marks are relative to."""


def marks_of(groups: Sequence[Group], polls: int = POLLS) -> Marks:
    """Return the marks of a wait that ends with the last one of these operations.

    At these times, ``polls`` polls find the ends of such waits with the least mean lateness. The
    last mark comes after nearly all ends.
    """
    if not all(group.prediction.shares for group in groups):
        return NO_MARKS
    operations = sum(group.operations for group in groups)
    ends: list[float] = []
    observed = 0
    for number in range(GRID):
        each = ((number + 0.5) / GRID) ** (1 / operations)
        ends.append(max(one.starts_after + one.prediction.seconds_of(each) for one in groups))
        observed += all(one.prediction.has_observed(each) for one in groups)
    chosen = _least_late(ends, polls)
    # Slightly later, so that a poll finds the operations that finish at this time.
    seconds = (
        ends[place] + MARGIN + min(MARGIN * abs(ends[place]), 5 * MARGIN) for place in chosen
    )
    return Marks(tuple(seconds), sum(place < observed for place in chosen))


def _least_late(ends: Sequence[float], polls: int) -> list[int]:
    """Return the places of the ends at which polls make the mean lateness least.

    The last place is always one of them.
    """
    sums = [0.0, *itertools.accumulate(ends)]

    def lateness(first: int, last: int) -> float:
        return ends[last] * (last - first + 1) - (sums[last + 1] - sums[first])

    # The least lateness of the ends up to each place with a poll there, and the polls before it.
    best = [(lateness(0, last), [last]) for last in range(len(ends))]
    for _ in range(polls - 1):
        best = [
            min(
                [
                    best[last],
                    *(
                        (best[before][0] + lateness(before + 1, last), [*best[before][1], last])
                        for before in range(last)
                    ),
                ]
            )
            for last in range(len(ends))
        ]
    return best[-1][1]


def next_delay(
    policy: PollPolicy,
    waited: float,
    draw: float,
    marks: Marks = NO_MARKS,
    *,
    is_short: bool = False,
) -> float:
    """Return the time to the next mark of a wait of ``waited`` seconds so far.

    Without marks, delays grow with the time ``waited``; after the last mark, they grow again from
    there. Unless the rate budget ``is_short``, no delay is longer than the maximum of the policy.
    An estimated mark then makes it no longer than without marks, and at most three times shorter.
    ``draw`` is a random number from 0 to 1 for the jitter.
    """
    longest = math.inf if is_short else policy.maximum
    return min(_delay_to_mark(policy, waited, draw, marks, is_short=is_short), longest)


def _delay_to_mark(
    policy: PollPolicy, waited: float, draw: float, marks: Marks, *, is_short: bool
) -> float:
    times = marks.seconds
    index = bisect_right(times, waited + ROUNDING)
    if index == len(times):
        after = max(waited - times[-1], 0.0) if times else waited
        return growing_delay(policy, after, draw)
    to_mark = times[index] - waited
    if index >= marks.observed and not is_short:
        growing = growing_delay(policy, waited, draw)
        return min(max(to_mark, growing / 3), growing)
    if index == len(times) - 1 and index and waited >= times[index - 1] - ROUNDING:
        # A few very long operations must not delay the others.
        passed = times[index - 1]
        return min(
            to_mark, max(growing_delay(policy, waited - passed, draw), passed - times[index - 2])
        )
    return to_mark


def growing_delay(policy: PollPolicy, waited: float, draw: float) -> float:
    """Return the next delay of a geometric series that has taken ``waited`` seconds so far.

    The delays ``initial``, ``initial * growth``, ``initial * growth**2``, … add up to
    ``initial * (growth**n - 1) / (growth - 1)``. Each delay is therefore ``initial`` plus
    ``growth - 1`` times the time waited, and does not depend on the number of polls. From
    ``SLOW_AFTER`` times ``initial`` on, delays grow by ``SLOW_GROWTH`` of that only: each further
    poll is then worth its request. ``draw`` spreads the delay by ``jitter`` in both directions, up
    to ``maximum``.
    """
    growth = policy.growth - 1
    slow = max(SLOW_AFTER * policy.initial, SLOW_GROWTH * growth * waited)
    seconds = min(policy.initial + growth * waited, slow, policy.maximum)
    return min(seconds * (1 + policy.jitter * (2 * draw - 1)), policy.maximum)
