"""When to look again, without I/O. Times are in seconds."""

from neonctl_async.config import PollPolicy


def delay(policy: PollPolicy, waited: float, chance: float) -> float:
    """How long to let pass until the next look, after having waited for ``waited`` seconds.

    Delays of ``initial``, ``initial * growth``, ``initial * growth**2``, … add up to
    ``initial * (growth**n - 1) / (growth - 1)``; put in terms of that sum, each is ``initial``
    plus ``growth - 1`` times the time waited. So the pace depends on no count of looks, and an
    answer comes late by ``initial`` and a share of the wait at the most, jitter aside. ``chance``
    is uniform between 0 and 1 and spreads the delay by ``jitter`` in both directions, up to
    ``maximum``.
    """
    growing = min(policy.initial + (policy.growth - 1) * waited, policy.maximum)
    return min(growing * (1 + policy.jitter * (2 * chance - 1)), policy.maximum)
