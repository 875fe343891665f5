"""When to look again, without I/O. Times are in seconds."""

from bisect import bisect_right
from collections.abc import Sequence

from neonctl_async.config import PollPolicy


def delay(policy: PollPolicy, waited: float, chance: float, marks: Sequence[float] = ()) -> float:
    """How long to let pass until the next look, after having waited for ``waited`` seconds.

    ``marks`` are the times at which operations of the kind have been seen to end: the next look
    comes at the next of them. Without any, or past the last, looks grow rarer from there on.
    """
    place = bisect_right(marks, waited)
    if place < len(marks):
        return min(marks[place] - waited, policy.maximum)
    return _growing(policy, waited - marks[-1] if marks else waited, chance)


def _growing(policy: PollPolicy, waited: float, chance: float) -> float:
    """The next delay of a geometric series that has lasted for ``waited`` seconds.

    Delays of ``initial``, ``initial * growth``, ``initial * growth**2``, … add up to
    ``initial * (growth**n - 1) / (growth - 1)``; put in terms of that sum, each is ``initial``
    plus ``growth - 1`` times the time waited. So the pace depends on no count of looks, and an
    answer comes late by ``initial`` and a share of the wait at the most, jitter aside. ``chance``
    is uniform between 0 and 1 and spreads the delay by ``jitter`` in both directions, up to
    ``maximum``.
    """
    growing = min(policy.initial + (policy.growth - 1) * waited, policy.maximum)
    return min(growing * (1 + policy.jitter * (2 * chance - 1)), policy.maximum)
