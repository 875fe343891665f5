"""Single waits in projects of their own, without a rate limit, with and without history.

All waits of a case run at the same time, but each has its own project, and a new client its own
history. They start at random times, because timestamps of whole seconds depend on the fraction.
"""

import asyncio
import statistics
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from random import Random

import msgspec

from benchmarks.harness import virtual_time
from benchmarks.loads.measure import API_KEY, percentile
from benchmarks.servers.control_plane import ControlPlane, Settings
from neonctl_async import NeonClient, Operation, RateBudget

WAITS = 200
HISTORY = 50
VARIATION = 0.2


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """Waits for operations of these durations, one after another or at the same time."""

    name: str
    durations: tuple[float, ...]
    settings: Settings = Settings()
    earlier: tuple[float, ...] = ()
    """The durations that the client has waited for before; empty for a new client per wait."""
    max_lateness: float | None = None
    """The limit of the median lateness."""
    max_polls: float | None = None
    """The limit of the mean number of polls."""

    @property
    def has_limits(self) -> bool:
        """True if the case has a limit."""
        return self.max_lateness is not None or self.max_polls is not None


class Result(msgspec.Struct, frozen=True):
    """The lateness and the polls of each wait, both in order of size."""

    lateness: list[float]
    polls: list[int]

    def line(self, case: Case) -> str:
        """Return the line of a case."""
        numbers = (
            percentile(self.lateness, 50),
            percentile(self.lateness, 90),
            self.lateness[-1],
            statistics.mean(self.polls),
        )
        texts = [*(f"{number:.2f}".rjust(8) for number in numbers), str(self.polls[-1]).rjust(8)]
        return " ".join([case.name.ljust(NAME_WIDTH), *texts, "", self._verdict(case)])

    def missed(self, case: Case) -> list[str]:
        """Return the limits that are missed."""
        missed: list[str] = []
        if case.max_lateness is not None and percentile(self.lateness, 50) > case.max_lateness:
            missed.append(f"lateness {case.max_lateness:g} s")
        if case.max_polls is not None and statistics.mean(self.polls) > case.max_polls:
            missed.append(f"polls {case.max_polls:g}")
        return missed

    def _verdict(self, case: Case) -> str:
        if not case.has_limits:
            return ""
        missed = self.missed(case)
        return f" MISSED: {', '.join(missed)}" if missed else " met"


NAME_WIDTH = 58
TITLES = ("median", "p90", "worst", "polls", "most")
HEAD = " ".join(["wait".ljust(NAME_WIDTH), *(title.rjust(8) for title in TITLES)])


def cases(seed: int, waits: int = WAITS) -> Iterator[Case]:
    """Yield all cases of a seed, with this number of waits."""
    rng = Random(f"{seed} lone")
    # A GET of each of two operations, one after the other, every second is about half a second
    # late, and takes 2.7, 5.5 and 17 requests.
    limits = {1.0: (0.55, 3), 3.0: (0.5, 6), 10.0: (0.5, 17), 30.0: (None, None)}
    for seconds, (lateness, polls) in limits.items():
        yield Case(
            name=f"{seconds:g} s, without history",
            durations=_varied(rng, seconds, waits),
            max_lateness=lateness,
            max_polls=polls,
        )
    for seconds in (3.0, 10.0):
        yield from _with_history(rng, seconds, waits)
    few = _with_outliers(rng, 60)
    many = _with_outliers(rng, 240)
    yield Case(name="0.8 s, 3 % of 10 s, without history", durations=many)
    yield Case(
        name="0.8 s, 3 % of 10 s, a client with 60 earlier waits", durations=many, earlier=few
    )
    yield Case(
        name="0.8 s, 3 % of 10 s, in a project with such history",
        durations=many,
        settings=Settings(history=tuple(map(repr, few[:HISTORY]))),
    )


def _with_history(rng: Random, seconds: float, waits: int) -> Iterator[Case]:
    """Yield waits in projects with finished operations, by the fields of their records."""
    records = {
        "": Settings(),
        ", no total_duration_ms": Settings(has_total_duration=False),
        ", whole seconds": Settings(has_whole_seconds=True),
        ", whole seconds, no total_duration_ms": Settings(
            has_whole_seconds=True, has_total_duration=False
        ),
    }
    lateness, polls = {3.0: (0.35, 3), 10.0: (None, 4)}[seconds]
    for described, settings in records.items():
        equal = msgspec.structs.replace(settings, history=(repr(seconds),) * HISTORY)
        yield Case(
            name=f"{seconds:g} s, history{described}",
            durations=(seconds,) * waits,
            settings=equal,
            max_lateness=lateness if settings.has_total_duration else None,
            max_polls=polls if settings.has_total_duration else None,
        )
        past = tuple(map(repr, _varied(rng, seconds, HISTORY)))
        yield Case(
            name=f"{seconds:g} s +-20 %, history{described}",
            durations=_varied(rng, seconds, waits),
            settings=msgspec.structs.replace(settings, history=past),
        )


def _varied(
    rng: Random, seconds: float, count: int, *, variation: float = VARIATION
) -> tuple[float, ...]:
    return tuple(seconds * rng.uniform(1.0 - variation, 1.0 + variation) for _ in range(count))


def _with_outliers(rng: Random, count: int) -> tuple[float, ...]:
    """Return durations of about 0.8 s, 3 % of which are replaced by 10 s."""
    outliers = round(0.03 * count)
    usual = _varied(rng, 0.8, count - outliers, variation=0.3)
    durations = [*usual, *(10.0 for _ in range(outliers))]
    rng.shuffle(durations)
    return tuple(durations)


def run(case: Case, seed: int = 0) -> Result:
    """Run all waits of a case."""
    starts = Random(f"{seed} {case.name}")

    async def main(plane: ControlPlane) -> Result:
        async with AsyncExitStack() as clients:

            async def new_client() -> NeonClient:
                return await clients.enter_async_context(
                    NeonClient(
                        API_KEY, base_url=virtual_time.BASE_URL, budget=RateBudget.unlimited()
                    )
                )

            if not case.earlier:
                neons = [await new_client() for _ in case.durations]
                return await _wait(plane, neons, case.durations, "new", starts)
            neon = await new_client()
            await _wait(plane, [neon] * len(case.earlier), case.earlier, "earlier", starts)
            return await _wait(plane, [neon] * len(case.durations), case.durations, "new", starts)

    return virtual_time.run(main, case.settings, seed)


async def _wait(
    plane: ControlPlane,
    clients: Sequence[NeonClient],
    durations: Sequence[float],
    prefix: str,
    starts: Random,
) -> Result:
    """Wait for each operation in its own project, with its own client."""

    async def wait(neon: NeonClient, number: int, start: float) -> tuple[str, str, float]:
        await asyncio.sleep(start)
        project_id = f"{prefix}{number}"
        started = plane.start({project_id: [durations[number]]})
        [operation] = msgspec.json.decode(started, type=list[Operation])
        await neon.operations.wait(operation)
        return project_id, operation.id, asyncio.get_running_loop().time()

    over = 60.0
    ended = await asyncio.gather(
        *(wait(neon, number, starts.uniform(0.0, over)) for number, neon in enumerate(clients))
    )
    report = plane.report()
    polls = report.polls()
    return Result(
        sorted(returned - report.finishes[id] for _, id, returned in ended),
        sorted(len(polls.get(project_id, [])) for project_id, _, _ in ended),
    )
