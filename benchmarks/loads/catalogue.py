"""All loads: named ones, one for each size and shape, drawn ones, and edge cases."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from random import Random

import msgspec

from benchmarks.loads.load import Branch, Load, Stages, branch_name, in_order, words_of
from benchmarks.loads.shapes import (
    SHAPES,
    STRUCTURES,
    Shape,
    Structure,
    constant,
    parallel,
    uniform,
)
from benchmarks.servers.control_plane import Settings

PER_MINUTE = 700
PER_ROUTE_PER_SECOND = 40
FAR = 0.05
DISTANCES = (0.02, 0.1, 0.25)
"""Round trips in seconds, as they are from other countries and continents."""
DRAWN = 20
SIZES = ((1, 1), (60, 60), (100, 10), (300, 150), (300, 15), (600, 300))
SHORT = SHAPES["1-3 s"]


def catalogue(seed: int, per_minute: int = PER_MINUTE) -> Iterator[Load]:
    """Yield all loads of a seed. Named rates keep their own limit."""
    make = _Maker(seed, per_minute)
    yield from _named(make)
    yield from _sizes_and_shapes(make)
    yield from _edge_cases(make)
    yield from _locked(make)
    yield from drawn(seed, per_minute=per_minute)


def drawn(seed: int, count: int = DRAWN, per_minute: int = PER_MINUTE) -> Iterator[Load]:
    """Yield loads whose properties are all drawn from the seed."""
    make = _Maker(seed, per_minute)
    for number in range(count):
        rng = Random(f"{seed} drawn {number}")
        projects = rng.choice((1, 5, 15, 40, 100, 150))
        branches = min(projects * rng.randint(1, 10), 300)
        shape = rng.choice(list(SHAPES))
        structure = rng.choice(list(STRUCTURES))
        over = rng.choice((0.0, 60.0))
        is_interleaved = rng.random() < 0.5
        round_trip = rng.choice((0.0, FAR))
        is_real = rng.random() < 0.5
        past = [STRUCTURES[structure](rng, SHAPES[shape]) for _ in range(rng.choice((0, 0, 50)))]
        words = (
            f"drawn {number}: {branches} in {projects}, {structure}, {shape}",
            "over 60 s" if over else "",
            "" if is_interleaved else "back to back",
            "50 ms" if round_trip else "",
            "whole seconds" if is_real else "",
            "history" if past else "",
        )
        yield make(
            ", ".join(filter(None, words)),
            branches,
            projects,
            SHAPES[shape],
            STRUCTURES[structure],
            over=over,
            is_interleaved=is_interleaved,
            round_trip=round_trip,
            has_whole_seconds=is_real,
            has_total_duration=not is_real,
            history=tuple(map(words_of, past)),
        )


class _Maker:
    """Makes loads whose durations are drawn from a seed and the name of the load."""

    def __init__(self, seed: int, per_minute: int) -> None:
        self._seed = seed
        self._per_minute = per_minute

    def __call__(
        self,
        name: str,
        branches: int,
        projects: int,
        shape: Shape = SHORT,
        structure: Structure = parallel,
        *,
        over: float = 0.0,
        is_interleaved: bool = True,
        **settings: object,
    ) -> Load:
        """Return a load of branches that arrive at random times within ``over`` seconds."""
        rng = Random(f"{self._seed} {name}")
        arrivals = sorted(rng.uniform(0.0, over) for _ in range(branches))
        stages = [structure(rng, shape) for _ in range(branches)]
        order = in_order(branches, projects, is_interleaved=is_interleaved)
        return self.of(name, zip(order, arrivals, stages, strict=True), **settings)

    def of(
        self, name: str, branches: Iterable[tuple[str, float, Stages]], **settings: object
    ) -> Load:
        """Return a load of these projects, arrivals and operations."""
        limits: dict[str, object] = {
            "per_minute": self._per_minute,
            "per_route_per_second": PER_ROUTE_PER_SECOND,
        }
        return Load(
            name=name,
            branches=tuple(
                Branch(branch_name(number, stages), project_id, arrives, stages)
                for number, (project_id, arrives, stages) in enumerate(branches)
            ),
            settings=msgspec.convert({**limits, **settings}, Settings),
        )


def _named(make: _Maker) -> Iterator[Load]:
    """Yield the loads that showed the cliff of an earlier version."""
    yield make("300 in 150", 300, 150)
    yield make("300 in 150, chained", 300, 150, structure=STRUCTURES["chained"])
    yield make("300 in 150, 50 ms", 300, 150, round_trip=FAR)
    yield make("300 in 150, 0.5-6 s", 300, 150, uniform(0.5, 6.0))
    yield make("600 in 300", 600, 300)
    for seconds in DISTANCES:
        name = f"60 in 30, {1000 * seconds:g} ms with jitter"
        yield make(name, 60, 30, round_trip=seconds, jitter=0.5)
    yield make("60 in 60", 60, 60)
    yield make("30 in 15, 70 a minute", 30, 15, per_minute=70)
    yield make("5 in 3, 10 a minute", 5, 3, per_minute=10)


def _sizes_and_shapes(make: _Maker) -> Iterator[Load]:
    for branches, projects in SIZES:
        size = f"{branches} in {projects}"
        single = STRUCTURES["single"]
        yield make(f"{size}, single", branches, projects, structure=single)
        yield make(f"{size}, over 60 s", branches, projects, over=60.0)
        if 1 < projects < branches:
            yield make(f"{size}, back to back", branches, projects, is_interleaved=False)
    for name, shape in SHAPES.items():
        yield make(f"200 in 100, {name}", 200, 100, shape)
        yield make(f"200 in 20, {name}, mixed", 200, 20, shape, STRUCTURES["mixed"])
        yield make(f"200 in 100, {name}, over 60 s", 200, 100, shape, over=60.0)
    yield _thousand()


def _thousand() -> Load:
    """Return one wait for a thousand operations of a project, which finish over 10 s."""
    rng = Random(1000)
    durations = [1.0 + 9.0 * number / 999 for number in range(1000)]
    rng.shuffle(durations)
    branches = tuple(
        Branch(f"b{number}", "p0", 0.0, ((seconds,),)) for number, seconds in enumerate(durations)
    )
    settings = Settings(per_minute=PER_MINUTE, per_route_per_second=PER_ROUTE_PER_SECOND)
    return Load(
        name="1,000 operations in 1 project, 1-10 s",
        branches=branches,
        settings=settings,
        is_one_wait=True,
        max_delay=0.3,
        max_requests=20,
    )


def _edge_cases(make: _Maker) -> Iterator[Load]:
    yield make.of("first 1 s, then 10 s", _halves(1.0, 10.0, later=20.0))
    yield make.of("first 10 s, then 1 s", _halves(10.0, 1.0, later=20.0))
    yield make.of("half 1 s, half 10 s, at once", _halves(1.0, 10.0, later=0.0))
    yield make.of("half 10 s, half 1 s, at once", _halves(10.0, 1.0, later=0.0))
    yield make.of("2 s, then 6 s, over 60 s", _changing((2.0, 6.0), 60.0))
    half = PER_MINUTE / 60.0 / 2.0
    yield make("another client, half", 300, 150, others_per_second=half)
    yield make("another client, half, over 60 s", 200, 100, over=60.0, others_per_second=half)
    yield make("clock an hour ahead", 200, 100, clock_offsets=((0.0, 3600.0),))
    yield make("clock an hour behind", 200, 100, clock_offsets=((0.0, -3600.0),))
    steps = ((3.0, 30.0), (6.0, -30.0))
    yield make("clock steps", 200, 100, SHAPES["0.5-6 s"], over=10.0, clock_offsets=steps)
    yield make("whole seconds", 200, 100, has_whole_seconds=True, has_total_duration=False)
    history = ("3",) * 50
    single = STRUCTURES["single"]
    yield make("with history", 200, 100, SHAPES["3 s"], single, history=history)
    yield make("with wrong history", 200, 100, SHAPES["3 s"], single, history=("0.3",) * 50)


def _locked(make: _Maker) -> Iterator[Load]:
    """Yield loads on a server that locks a project while its operations run, as Neon does."""
    locked = partial(make, locks_projects=True, round_trip=FAR)
    single, chained = STRUCTURES["single"], STRUCTURES["chained"]
    lognormal = SHAPES["lognormal"]
    yield locked("20 in 1, locked", 20, 1, structure=single)
    yield locked("40 in 1, 1 s, locked", 40, 1, constant(1.0), single)
    yield locked("10 in 1, lognormal, chained, locked", 10, 1, lognormal, chained)
    yield locked("60 in 20, locked", 60, 20)
    yield locked("100 in 10, lognormal, locked", 100, 10, lognormal, single)
    yield locked("300 in 150, locked", 300, 150)
    yield locked("60 in 6, over 60 s, locked", 60, 6, over=60.0)


def _halves(
    first: float, second: float, *, later: float, branches: int = 200, projects: int = 100
) -> Sequence[tuple[str, float, Stages]]:
    """Return branches whose second half arrives ``later``, and takes another time."""
    half = branches // 2
    order = in_order(branches, projects, is_interleaved=True)
    return [
        (id, 0.0, ((first,),)) if number < half else (id, later, ((second,),))
        for number, id in enumerate(order)
    ]


def _changing(
    durations: tuple[float, float], over: float, branches: int = 200, projects: int = 50
) -> Sequence[tuple[str, float, Stages]]:
    """Return branches that arrive evenly. The duration changes in the middle."""
    order = in_order(branches, projects, is_interleaved=True)
    return [
        (id, over * number / branches, ((durations[2 * number >= branches],),))
        for number, id in enumerate(order)
    ]
