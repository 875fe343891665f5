"""When to look again, without I/O. Times are in seconds."""

from bisect import bisect_right

from neonctl_async.config import PollPolicy
from neonctl_async.waiting.forecast import UNKNOWN, Prediction


def delay(
    policy: PollPolicy,
    waited: float,
    chance: float,
    prediction: Prediction = UNKNOWN,
    least: float = 0.0,
) -> float:
    """How long to let pass until the next look, after having waited for ``waited`` seconds.

    It comes at the next mark of ``outlook`` that is ``least`` away. Without any, or past the last,
    looks grow rarer from there on. While not all ends are known, the delay is not shorter than a
    third of what it would be if none were, and before the end that is but expected not longer.
    """
    quantiles, is_complete = prediction
    delay = _growing(policy, waited, chance)
    if quantiles and not is_complete:
        least = max(least, delay / 3)
    place = bisect_right(quantiles, waited + least)
    if place < len(quantiles):
        to_mark = quantiles[place] - waited
        is_expected = place == len(quantiles) - 1 and not is_complete
        delay = min(delay, to_mark) if is_expected else to_mark
    elif quantiles and waited < quantiles[-1]:
        delay = least
    elif quantiles and is_complete:
        delay = _growing(policy, waited - quantiles[-1], chance)
    return min(max(delay, least), policy.maximum)


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
