"""The figures of a benchmark: what was measured, how it spread, what it may be; as a table."""

import statistics
from collections.abc import Callable, Iterable, Sequence

import msgspec


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """How often what is repeated."""

    long_runs: int
    short_runs: int
    lone_runs: int
    lone_spread: float
    """Seconds over which the lone runs begin: a client that is busy is late by itself."""
    scale_runs: int
    looks: int
    together: dict[str, float]
    """Scenarios that run at the same time, by when they begin: not all at once."""
    longest_limited: float
    """Seconds after which what is not ready in (d) counts as never."""


THOROUGH = Effort(
    long_runs=2,
    short_runs=9,
    lone_runs=100,
    lone_spread=5.0,
    scale_runs=3,
    looks=300_000,
    together={},
    longest_limited=40.0,
)


QUICK = Effort(
    long_runs=1,
    short_runs=3,
    lone_runs=40,
    lone_spread=2.0,
    scale_runs=1,
    looks=100_000,
    together={"c": 0.0, "a": 5.0, "d": 6.0, "b": 18.0, "e": 24.0},
    longest_limited=22.0,
)


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A number, how it spread, and what it may be at the most."""

    scenario: str
    name: str
    ours: float
    least: float
    most: float
    others: float | None = None
    ratio: float | None = None
    target: float | None = None
    ok: bool | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario found out."""

    figures: list[Figure]
    notes: list[str] = []


Measure = Callable[[Sequence[float]], float]


def figure(
    scenario: str,
    name: str,
    ours: Sequence[float],
    others: Sequence[float] = (),
    *,
    of: Measure = statistics.median,
    target: float | None = None,
) -> Figure:
    """A figure: ``of`` all that was measured."""
    value = of(ours)
    other = of(others) if others else None
    return Figure(
        scenario=scenario,
        name=name,
        ours=value,
        least=min(ours),
        most=max(ours),
        others=other,
        ratio=value / other if other else None,
        target=target,
        ok=None if target is None else value <= target,
    )


def show(results: Iterable[Result]) -> None:
    """Print the table, and the notes below it."""
    print(
        f"{'scenario':24} {'figure':30} {'ours':>8} {'least':>8} {'most':>8}"
        f" {'others':>8} {'ratio':>7} {'target':>7}"
    )
    for one in (each for result in results for each in result.figures):
        print(
            f"{one.scenario:24} {one.name:30} {number(one.ours):>8} {number(one.least):>8}"
            f" {number(one.most):>8} {number(one.others):>8} {number(one.ratio):>7}"
            f" {number(one.target):>7} {'' if one.ok is None else 'ok' if one.ok else 'MISSED'}"
        )
    for note in (each for result in results for each in result.notes):
        print(note)


def number(value: float | None) -> str:
    """Short, and empty for None."""
    if value is None:
        return ""
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
