"""The durations of simulated operations."""

import random


def spread_evenly(shortest: float, longest: float, count: int) -> list[float]:
    """Return evenly spread durations in a shuffled order, which is the same in every run."""
    step = (longest - shortest) / max(count - 1, 1)
    durations = [shortest + step * n for n in range(count)]
    random.Random(count).shuffle(durations)
    return durations
