"""The delays between polls, without I/O. Times are in seconds."""

from bisect import bisect_right

from neonctl_async.config import PollPolicy
from neonctl_async.waiting.forecast import UNKNOWN, Prediction


def delay(
    policy: PollPolicy,
    waited: float,
    draw: float,
    prediction: Prediction = UNKNOWN,
    minimum: float = 0.0,
) -> float:
    """Return the delay before the next poll of an operation that was waited for so far.

    The next poll comes at the next quantile of ``prediction`` that is at least ``minimum`` away.
    Without quantiles, delays grow with the time ``waited``; after the last quantile, they grow
    again from there. With an incomplete prediction, a delay is at least a third of the delay
    without history, and an estimated last quantile never makes it longer. ``draw`` is a random
    number from 0 to 1 for the jitter.
    """
    quantiles, is_complete = prediction
    seconds = _growing_delay(policy, waited, draw)
    if quantiles and not is_complete:
        minimum = max(minimum, seconds / 3)
    index = bisect_right(quantiles, waited + minimum)
    if index < len(quantiles):
        to_quantile = quantiles[index] - waited
        is_estimated = index == len(quantiles) - 1 and not is_complete
        seconds = min(seconds, to_quantile) if is_estimated else to_quantile
    elif quantiles and waited < quantiles[-1]:
        seconds = minimum
    elif quantiles and is_complete:
        seconds = _growing_delay(policy, waited - quantiles[-1], draw)
    return min(max(seconds, minimum), policy.maximum)


def _growing_delay(policy: PollPolicy, waited: float, draw: float) -> float:
    """Return the next delay of a geometric series that has taken ``waited`` seconds so far.

    The delays ``initial``, ``initial * growth``, ``initial * growth**2``, … add up to
    ``initial * (growth**n - 1) / (growth - 1)``. Each delay is therefore ``initial`` plus
    ``growth - 1`` times the time waited, and does not depend on the number of polls. Without
    jitter, a result is late by at most ``initial`` plus ``growth - 1`` times the wait. ``draw``
    spreads the delay by ``jitter`` in both directions, up to ``maximum``.
    """
    seconds = min(policy.initial + (policy.growth - 1) * waited, policy.maximum)
    return min(seconds * (1 + policy.jitter * (2 * draw - 1)), policy.maximum)
