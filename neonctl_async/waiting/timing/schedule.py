"""The delays between polls, without I/O. Times are in seconds."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from neonctl_async.config import PollPolicy
from neonctl_async.waiting.timing.prediction import Prediction

QUARTERS = 4
"""The number of polls of a wait, if the rate budget is plentiful and durations vary."""
SLOW_AFTER = 8.0
"""The delay, as a multiple of the first one, from which delays grow more slowly."""
SLOW_GROWTH = 0.44
"""The growth of such delays, as a share of that of the first ones."""
MARGIN_SHARE = 0.02
MAX_MARGIN_SECONDS = 0.1
MIN_MARGIN_SECONDS = 0.02
"""The time from a predicted end to its poll: a share of the duration, within limits."""
LATE_SHARE = 0.55
"""The longest delay for an operation that takes longer than the others, as a share of the usual."""
LAST_SHARE = 0.97
"""The share of waits that finish before their last mark. The others are exceptions."""


class Marks(NamedTuple):
    """The times at which a wait probably ends, in seconds from the start of its operations."""

    seconds: tuple[float, ...] = ()
    """The times, in order; empty without history."""
    observed: int = 0
    """The number of marks that rest on observed durations. The later ones are estimates."""

    @property
    def are_complete(self) -> bool:
        """True if all marks rest on observed durations."""
        return self.observed == len(self.seconds)


NO_MARKS = Marks()


class Group(NamedTuple):
    """Pending operations of one action that a wait needs."""

    prediction: Prediction
    operations: int
    starts_after: float
    """The start of the youngest one, in seconds after the start that marks are relative to."""

    def with_operation(self, starts_after: float) -> "Group":
        """Return the group with another operation."""
        later = max(self.starts_after, starts_after)
        return Group(self.prediction, self.operations + 1, later)


def marks_of(groups: Sequence[Group], stretch: float = 1.0) -> Marks:
    """Return the marks of a wait that ends with the last one of these operations.

    The marks divide such waits into equal shares by their ends. There are four, or fewer if the
    rate budget is short.
    """
    if not all(group.prediction.shares for group in groups):
        return NO_MARKS
    operations = sum(group.operations for group in groups)
    number = max(1, round(QUARTERS / stretch))
    marks: list[float] = []
    estimated: list[float] = []
    for share in (*(n / number for n in range(1, number)), LAST_SHARE):
        each = share ** (1 / operations)
        end = max(one.starts_after + one.prediction.seconds_of(each) for one in groups)
        # Slightly later, so that a poll finds the operations that finish at this time.
        mark = end + MIN_MARGIN_SECONDS + min(MARGIN_SHARE * end, MAX_MARGIN_SECONDS)
        known = marks if all(one.prediction.has_observed(each) for one in groups) else estimated
        if known and mark - known[-1] <= 0.1 * abs(mark):
            known.pop()  # one poll serves both
        known.append(mark)
    return Marks((*marks, *estimated), len(marks))


def delay(
    policy: PollPolicy,
    waited: float,
    draw: float,
    marks: Marks = NO_MARKS,
    minimum: float = 0.0,
    *,
    stretch: float = 1.0,
) -> float:
    """Return the delay before the next poll of a wait of ``waited`` seconds so far.

    The next poll comes at the next mark that is at least ``minimum`` away. Without marks, delays
    grow with the time ``waited``; after the last mark, they grow again from there. With estimated
    marks, a delay is at least a third of the delay without marks, and an estimate never makes it
    longer. ``draw`` is a random number from 0 to 1 for the jitter. ``stretch`` makes growing delays
    longer.
    """
    times = marks.seconds
    growing = _growing_delay(policy, waited, draw) * stretch
    if not marks.are_complete and stretch <= 1:
        minimum = max(minimum, growing / 3)
    index = bisect_right(times, waited + minimum)
    if index < len(times):
        seconds = _delay_to_mark(policy, waited, draw, marks, index, stretch=stretch)
    elif times and waited < times[-1]:
        seconds = minimum
    elif times and marks.are_complete:
        growing = _growing_delay(policy, waited - times[-1], draw)
        seconds = min(growing, LATE_SHARE * policy.maximum) * stretch
    else:
        seconds = growing
    longest = policy.maximum * max(stretch, 1.0)
    return max(min(seconds, longest), min(minimum, longest))


def _delay_to_mark(
    policy: PollPolicy, waited: float, draw: float, marks: Marks, index: int, *, stretch: float
) -> float:
    """Return the delay to a mark.

    A few very long operations must not delay the others. Once only the last mark is left, the delay
    is therefore limited. The limit is that of the growing series from the mark before it, or the
    time between the two marks before it.
    """
    times = marks.seconds
    to_mark = times[index] - waited
    if index >= marks.observed:
        is_trusted = stretch > 1
        return to_mark if is_trusted else min(_growing_delay(policy, waited, draw), to_mark)
    if index == len(times) - 1 and index and waited >= times[index - 1]:
        passed = times[index - 1]
        bound = _growing_delay(policy, waited - passed, draw) * stretch
        gap = passed - times[index - 2] if index > 1 else 0.0
        return min(to_mark, max(bound, gap))
    return to_mark


def _growing_delay(policy: PollPolicy, waited: float, draw: float) -> float:
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
