"""The shapes of random durations, and the ways in which the operations of a branch follow."""

from collections.abc import Callable, Mapping
from random import Random

from benchmarks.loads.load import Stages

Shape = Callable[[Random], float]
"""Draws a duration in seconds."""
Structure = Callable[[Random, Shape], Stages]
"""Draws the operations of a branch."""


def uniform(shortest: float, longest: float) -> Shape:
    """Return a shape that is evenly spread."""
    return lambda rng: rng.uniform(shortest, longest)


def constant(seconds: float) -> Shape:
    """Return a shape of equal durations."""
    return lambda _: seconds


def lognormal(rng: Random) -> float:
    """Return a duration with a median of 2 s and a long tail."""
    return 2.0 * rng.lognormvariate(0.0, 0.6)


def two_humps(rng: Random) -> float:
    """Return a duration of about 1 s or about 8 s."""
    return rng.choice((1.0, 8.0)) * rng.uniform(0.85, 1.15)


def straggler(rng: Random) -> float:
    """Return a duration of 1 to 3 s, or, once in a hundred, of 30 s."""
    return 30.0 if rng.random() < 0.01 else rng.uniform(1.0, 3.0)


def heavy(rng: Random) -> float:
    """Return a duration of 5 to 60 s, most of them short."""
    return min(5.0 * rng.paretovariate(1.2), 60.0)


SHAPES: Mapping[str, Shape] = {
    "1-3 s": uniform(1.0, 3.0),
    "0.5-6 s": uniform(0.5, 6.0),
    "lognormal": lognormal,
    "two humps": two_humps,
    "straggler": straggler,
    "3 s": constant(3.0),
    "heavy": heavy,
}


def single(rng: Random, shape: Shape) -> Stages:
    """Return one operation."""
    return ((shape(rng),),)


def chained(rng: Random, shape: Shape) -> Stages:
    """Return two operations, one after another."""
    return ((shape(rng),), (shape(rng),))


def parallel(rng: Random, shape: Shape) -> Stages:
    """Return two operations at the same time."""
    return ((shape(rng), shape(rng)),)


def mixed(rng: Random, shape: Shape) -> Stages:
    """Return one to five operations: up to three at the same time, and then up to two."""
    first = tuple(shape(rng) for _ in range(rng.randint(1, 3)))
    second = tuple(shape(rng) for _ in range(rng.randint(0, 2)))
    return (first, second) if second else (first,)


STRUCTURES: Mapping[str, Structure] = {
    "single": single,
    "chained": chained,
    "parallel": parallel,
    "mixed": mixed,
}
