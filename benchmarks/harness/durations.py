"""How long operations take."""

import random


def between(shortest: float, longest: float, count: int) -> list[float]:
    """Durations, evenly spread, in an order that is random and always the same."""
    step = (longest - shortest) / max(count - 1, 1)
    durations = [shortest + step * n for n in range(count)]
    random.Random(count).shuffle(durations)
    return durations
