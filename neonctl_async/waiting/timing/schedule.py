"""When to poll, for waits with and without a predictable end. Pure. Times are in seconds."""

import itertools
import math
import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from neonctl_async.config import PollPolicy
from neonctl_async.waiting.timing.forecast import Prediction

GRID = 16
"""The number of equally probable end times that represent a wait."""
CHOICES = 32
"""The maximum number of candidates for the time of a project's next poll."""
MARGIN = 0.02
"""The time from a predicted end to its poll: this many seconds, plus this share of the duration up
to 5 s."""


class Group(NamedTuple):
    """Pending operations of one action that a wait needs."""

    prediction: Prediction
    operations: int
    started_at: float
    """The start of the youngest operation."""
    pending_at: float
    """The last time at which an operation of the group was seen pending."""


def ends_of(groups: Sequence[Group]) -> list[float]:
    """Return GRID equally probable end times for a wait on these operations, in order."""
    operations = sum(group.operations for group in groups)
    ends: list[float] = []
    for number in range(GRID):
        each = ((number + 0.5) / GRID) ** (1 / operations)
        ends.append(max(_end(group, each) for group in groups))
    return ends


def _end(group: Group, share: float) -> float:
    """Return the time by which this share of the pending operations finishes, plus a margin.

    The margin lets a poll find the operations that finish at this time.
    """
    finished = group.prediction.finished_within(group.pending_at - group.started_at)
    seconds = group.prediction.seconds_of(finished + (1 - finished) * share)
    return group.started_at + seconds + MARGIN + min(MARGIN * seconds, 5 * MARGIN)


class NextPoll(NamedTuple):
    """The next poll of a project."""

    at: float
    polls: float
    """The expected total number of polls."""


def cheapest_poll(ends: Iterable[float], price: float, now: float) -> NextPoll:
    """Return the first poll of the cheapest schedule for the waits of a project.

    ``ends`` has GRID equally probable ends for each of these waits. A poll costs
    ``price``, and each second from the end of a wait to the next poll costs 1.
    """
    times = sorted(max(end, now) for end in ends)
    sums = [0.0, *itertools.accumulate(times)]
    step = math.ceil(len(times) / CHOICES)
    places = [*range(len(times), 0, -step)]
    places.reverse()
    starts = [0, *places[:-1]]
    count = len(places)
    # The least cost from each choice on, the expected polls, and the place of the first of them.
    costs, polls, choice = [0.0] * (count + 1), [0.0] * (count + 1), [0] * count
    for first in range(count - 1, -1, -1):
        start = starts[first]
        chance = min((len(times) - start) / GRID, 1.0)
        best = math.inf
        for last in range(first, count):
            end = places[last]
            late = (times[end - 1] * (end - start) - (sums[end] - sums[start])) / GRID
            if late >= best:
                break
            cost = late + chance * price + costs[last + 1]
            if cost < best:
                best = cost
                choice[first] = last
        costs[first] = best
        polls[first] = chance + polls[choice[first] + 1]
    return NextPoll(times[places[choice[0]] - 1], polls[0])


def random_draw() -> float:
    """Return a random number from 0 to 1."""
    return random.random()  # noqa: S311 - spreads the load, protects no secret


def is_constant(policy: PollPolicy) -> bool:
    """Return whether polls have constant delays, whatever the durations and the budget."""
    return policy.growth == 1


def growing_delay(policy: PollPolicy, waited: float, draw: float, stretch: float = 1.0) -> float:
    """Return the next delay of a geometric series that has taken ``waited`` seconds so far.

    The delays ``initial``, ``initial * growth``, ``initial * growth**2``, … add up to
    ``initial * (growth**n - 1) / (growth - 1)``. Each delay is therefore ``initial`` plus
    ``growth - 1`` times the time waited, up to ``maximum``, and does not depend on the number of
    polls. ``draw`` spreads the delay by ``jitter`` in both directions. ``stretch`` is the factor
    for delays while the rate budget runs low. Below 1, it is only the factor for the maximum.
    """
    growing = policy.initial + (policy.growth - 1) * waited
    maximum = stretch * policy.maximum
    seconds = min(max(stretch, 1.0) * growing, maximum)
    return min(seconds * (1 + policy.jitter * (2 * draw - 1)), maximum)
