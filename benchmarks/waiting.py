"""Waiting at scale: what it costs and how late it answers, beside the polling that others do.

``python benchmarks/waiting.py`` prints a table: each figure of ours, the same of "a GET an
operation every second, one after another" measured in the same run, their ratio, and the target.
The scenario server, a process of its own, counts the requests and knows when operations end.
``--quick`` repeats less often, ``--only ad`` runs those scenarios, ``--json FILE`` writes the
figures down. It fails where a target is missed.
"""

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
import msgspec
import scale
from scenario import CREATE, GET, LIST, Report, Settings
from scenario_server import ScenarioServer, has_ended, last_end

from neonctl_async import NeonClient, Operation, RateBudget
from neonctl_async.models.operations import OperationResponse, Started

KEY = "napi_benchmark"
LONGEST = 150.0
"""Seconds after which a scenario is given up."""


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


class Others:
    """The polling that others do: a GET an operation every second, and no second try."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(raise_for_status=True)
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._http is not None
        await self._http.close()

    async def create(self, project_id: str, seconds: float) -> Operation:
        """A branch; the operation that it started. Raises aiohttp.ClientError."""
        assert self._http is not None
        url = f"{self._base_url}/projects/{project_id}/branches"
        body = {"annotation_value": {"seconds": str(seconds)}}
        async with self._http.post(url, json=body) as response:
            return msgspec.json.decode(await response.read(), type=Started).operations[0]

    async def wait(self, operation: Operation) -> None:
        """Look at an operation once a second until it has ended. Raises aiohttp.ClientError."""
        assert self._http is not None
        url = f"{self._base_url}/projects/{operation.project_id}/operations/{operation.id}"
        while True:
            async with self._http.get(url) as response:
                seen = msgspec.json.decode(await response.read(), type=OperationResponse)
            if has_ended(seen.operation):
                return
            await asyncio.sleep(1.0)

    async def wait_for_all(self, operations: Iterable[Operation]) -> None:
        """One operation after another."""
        for operation in operations:
            await self.wait(operation)


def client_of(server: ScenarioServer, *, budget: bool = False) -> NeonClient:
    """A client with the default settings; without ``budget`` it has no limit."""
    limits = RateBudget() if budget else RateBudget.unlimited()
    return NeonClient(KEY, base_url=server.base_url, budget=limits)


def told(looks: Sequence[Sequence[float]]) -> str:
    """When the first look came, the second and so on: the median, and how many got so far."""
    at: list[str] = []
    for n in range(max(map(len, looks))):
        reached = [of_run[n] for of_run in looks if len(of_run) > n]
        share = len(reached) / len(looks)
        at.append(f"{statistics.median(reached):.2f}" + (f" ({share:.0%})" if share < 1 else ""))
    return f"looks at {', '.join(at)} s"


def between(shortest: float, longest: float, count: int) -> list[float]:
    """Durations, evenly spread, in an order that is random and always the same."""
    step = (longest - shortest) / max(count - 1, 1)
    durations = [shortest + step * n for n in range(count)]
    random.Random(count).shuffle(durations)
    return durations


# (a) One big project


async def evenly_ending(effort: Effort) -> Result:
    """1,000 operations of one project that end evenly over 10 s."""
    seconds = [10.0 * (n + 1) / 1000 for n in range(1000)]

    notes: list[str] = []

    async def ours() -> tuple[float, int]:
        async with ScenarioServer(Settings()) as server, client_of(server) as neon:
            began = time.monotonic()
            operations = await server.start("p", seconds)
            await neon.operations.wait(operations)
            returned = time.monotonic()
            report = await server.report()
            [looks] = report.looks().values()
            notes.append(
                f"a: {report.count(LIST)} lists, {report.count(GET)} gets; "
                + told([[at - began for at in looks]])
            )
            return returned - last_end(report, operations), report.count()

    async def others() -> tuple[float, int]:
        async with ScenarioServer(Settings()) as server, Others(server.base_url) as polling:
            operations = await server.start("p", seconds)
            await polling.wait_for_all(operations)
            returned = time.monotonic()
            report = await server.report()
            return returned - last_end(report, operations), report.count()

    ran = [await ours() for _ in range(effort.long_runs)]
    other = await others()
    name = "a: 1,000 in one project"
    late, requests = zip(*ran, strict=True)
    return Result(
        figures=[
            figure(name, "requests, most", requests, [other[1]], of=max, target=25),
            figure(name, "late, s", late, [other[0]]),
        ],
        notes=notes,
    )


# (b) Many projects


async def many_projects(effort: Effort) -> Result:
    """200 operations in 100 projects, two in each, of 1 to 3 s, 50 ms away."""
    settings = Settings(round_trip=0.05)
    seconds = between(1.0, 3.0, 200)

    async def started(server: ScenarioServer) -> list[Operation]:
        pairs = await asyncio.gather(
            *(server.start(f"p{n}", seconds[2 * n : 2 * n + 2]) for n in range(100))
        )
        return [operation for pair in pairs for operation in pair]

    notes: list[str] = []

    async def ours() -> tuple[float, list[int]]:
        async with ScenarioServer(settings) as server, client_of(server) as neon:
            operations = await started(server)
            began = time.monotonic()
            await neon.operations.wait(operations)
            returned = time.monotonic()
            report = await server.report()
            requests = [report.count(project_id=f"p{n}") for n in range(100)]
            looks = [[at - began for at in of_project] for of_project in report.looks().values()]
            notes.append(f"b: {report.count(LIST)} lists, {report.count(GET)} gets; {told(looks)}")
            return returned - last_end(report, operations), requests

    async def others() -> tuple[float, list[int]]:
        async with ScenarioServer(settings) as server, Others(server.base_url) as polling:
            operations = await started(server)
            await polling.wait_for_all(operations)
            returned = time.monotonic()
            report = await server.report()
            requests = [report.count(project_id=f"p{n}") for n in range(100)]
            return returned - last_end(report, operations), requests

    other = asyncio.create_task(others())
    ran = [await ours() for _ in range(effort.short_runs)]
    other_late, other_requests = await other
    name = "b: 200 in 100 projects"
    late, by_run = zip(*ran, strict=True)
    requests = [each for of_run in by_run for each in of_run]
    return Result(
        figures=[
            figure(name, "late, s", late, [other_late], target=0.5),
            figure(name, "requests a project, most", requests, other_requests, of=max, target=5),
            figure(name, "requests a project, mean", requests, other_requests, of=statistics.mean),
        ],
        notes=[f"b: requests a project {shares(requests)}", *notes[:2]],
    )


def shares(values: Sequence[int]) -> str:
    """How often each value occurs."""
    return ", ".join(
        f"{value}: {values.count(value) / len(values):.0%}" for value in sorted(set(values))
    )


# (c) Lone operations


class Lone(msgspec.Struct, frozen=True):
    """How runs with one lone operation each went; ``looks`` are seconds from the start."""

    late: list[float]
    looks: list[list[float]]

    @property
    def requests(self) -> list[int]:
        """The looks a run took."""
        return [len(of_run) for of_run in self.looks]

    def describe(self, name: str) -> str:
        """When the looks came, and how the lateness spread."""
        late = statistics.quantiles(self.late, n=10)
        return (
            f"{name}: {told(self.looks)}; late 10 % {late[0]:.2f}, "
            f"90 % {late[-1]:.2f}, most {max(self.late):.2f} s"
        )


Wait = Callable[[Operation], Awaitable[object]]


async def lone_runs(
    server: ScenarioServer, name: str, durations: Sequence[float], wait: Wait, over: float
) -> Lone:
    """Wait for each in a project of its own, the begins spread ``over`` so many seconds."""

    async def run(n: int) -> tuple[str, Operation, float, float]:
        await asyncio.sleep(over * n / len(durations))
        began = time.monotonic()
        [operation] = await server.start(f"{name}-{n}", [durations[n]])
        await wait(operation)
        return f"{name}-{n}", operation, began, time.monotonic()

    ran = await asyncio.gather(*(run(n) for n in range(len(durations))))
    report = await server.report()
    looks = report.looks()
    return Lone(
        [returned - report.ends[operation.id] for _, operation, _, returned in ran],
        [[at - began for at in looks.get(project_id, [])] for project_id, _, began, _ in ran],
    )


async def lone_operations(effort: Effort, about: float) -> tuple[Lone, Lone, Lone]:
    """Operations that take ``about`` so long: ours, ours having learned, and others."""
    over = effort.lone_spread
    runs = effort.lone_runs
    durations = between(0.7 * about, 1.3 * about, runs)
    practice = between(0.7 * about, 1.3 * about, 30)
    async with ScenarioServer(Settings()) as server, Others(server.base_url) as polling:

        async def afresh(operation: Operation) -> None:
            async with client_of(server) as neon:
                await neon.operations.wait(operation)

        async def having_learned() -> Lone:
            async with client_of(server) as neon:
                await lone_runs(server, "practice", practice, neon.operations.wait, over / 2)
                return await lone_runs(server, "learned", durations, neon.operations.wait, over)

        return await asyncio.gather(
            lone_runs(server, "fresh", durations, afresh, over),
            having_learned(),
            lone_runs(server, "others", durations, polling.wait, over),
        )


async def lone(effort: Effort) -> Result:
    """Operations of about 1 s and about 10 s, each the only one of its project."""
    figures: list[Figure] = []
    notes: list[str] = []
    kinds = ((1.0, 0.35, 5), (10.0, 2.5, 12))
    both = await asyncio.gather(*(lone_operations(effort, about) for about, _, _ in kinds))
    for (about, late, requests), (fresh, learned, others) in zip(kinds, both, strict=True):
        name = f"c: lone, {about:g} s"
        mean = statistics.mean
        slower = statistics.median(fresh.late)
        dearer = mean(fresh.requests)
        figures += [
            figure(name, "late, s", fresh.late, others.late, target=late),
            figure(
                name, "requests, most", fresh.requests, others.requests, of=max, target=requests
            ),
            figure(name, "requests, mean", fresh.requests, others.requests, of=mean),
            figure(f"{name}, learned", "late, s", learned.late, others.late, target=late / 2),
            figure(
                f"{name}, learned",
                "requests, mean",
                learned.requests,
                others.requests,
                of=mean,
                target=requests / 2,
            ),
            figure(
                f"{name}, learned",
                "late, by the unlearned",
                [statistics.median(learned.late) / slower],
                target=0.5,
            ),
            figure(
                f"{name}, learned",
                "requests, by the unlearned",
                [mean(learned.requests) / dearer],
                target=0.5,
            ),
        ]
        notes += [fresh.describe(name), learned.describe(f"{name}, learned")]
    return Result(figures=figures, notes=notes)


# (d) Limits


class Limited(msgspec.Struct, frozen=True):
    """How a run went under the platform's limits."""

    seconds: float
    not_ready: int
    report: Report

    @property
    def refused(self) -> int:
        """The answers of 429."""
        return self.report.count(status=429)

    @property
    def polls(self) -> int:
        """The looks at operations."""
        return self.report.count(GET, LIST)

    def describe(self) -> str:
        """How the requests went, and how near to the limits they came."""
        gaps = ", ".join(
            f"{route} {gap:.3f} s" for route in (CREATE, LIST, GET) if (gap := self._gap(route, 41))
        )
        return (
            f"d: {self.report.count(CREATE)} creates, {self.report.count(LIST)} lists, "
            f"{self.report.count(GET)} gets, {self.refused} 429s in {self.seconds:.2f} s; "
            f"closest 41 of a route: {gaps}"
        )

    def _gap(self, route: str, count: int) -> float | None:
        times = [one.at for one in self.report.requests if one.route == route]
        gaps = (last - first for first, last in zip(times, times[count - 1 :], strict=False))
        return min(gaps, default=None)


async def limited(effort: Effort) -> Result:
    """300 branches in 150 projects, created and ready, under the platform's limits."""
    settings = Settings(per_minute=700, per_second_of_route=40)
    durations = between(1.0, 3.0, 300)
    floor = (300 + 150) / 40 + max(durations)

    async def measured(server: ScenarioServer, works: Sequence[Awaitable[object]]) -> Limited:
        began = time.monotonic()
        tasks = [asyncio.ensure_future(work) for work in works]
        _, late = await asyncio.wait(tasks, timeout=effort.longest_limited)
        seconds = time.monotonic() - began
        report = await server.report()
        for task in late:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        return Limited(seconds, sum(isinstance(one, BaseException) for one in outcomes), report)

    async def ours() -> Limited:
        async with ScenarioServer(settings) as server, client_of(server, budget=True) as neon:
            creations = [
                neon.branches.create(
                    f"p{n // 2}",
                    name=f"b{n}",
                    annotation_value={"seconds": str(durations[n])},
                    wait=True,
                )
                for n in range(300)
            ]
            return await measured(server, creations)

    async def others() -> Limited:
        async with ScenarioServer(settings) as server, Others(server.base_url) as polling:
            in_turn = asyncio.Lock()

            async def create(n: int) -> None:
                operation = await polling.create(f"p{n // 2}", durations[n])
                async with in_turn:
                    await polling.wait(operation)

            return await measured(server, [create(n) for n in range(300)])

    other = await others()
    ran = [await ours() for _ in range(effort.long_runs)]
    name = "d: 300 branches, limits"
    not_ready = [one.not_ready for one in ran]
    slowness = [one.seconds / floor for one in ran]
    return Result(
        figures=[
            figure(name, "429s", [r.refused for r in ran], [other.refused], of=max, target=0),
            figure(name, "branches not ready", not_ready, [other.not_ready], of=max, target=0),
            figure(name, f"time by the floor, {floor:.2f} s", slowness, target=1.15),
            figure(name, "polls", [one.polls for one in ran], [other.polls]),
        ],
        notes=[one.describe() for one in ran],
    )


# (e) Failures


async def failing(effort: Effort) -> Result:
    """100 branches created and waited for; every 20th answer, whatever the request, is a 503."""
    durations = between(1.0, 3.0, 100)
    settings = Settings(fail_every=20)

    async def ours() -> tuple[int, int]:
        async with ScenarioServer(settings) as server, client_of(server) as neon:
            creations = (
                neon.branches.create(
                    f"p{n}", annotation_value={"seconds": str(durations[n])}, wait=True
                )
                for n in range(100)
            )
            outcomes = await asyncio.gather(*creations, return_exceptions=True)
            failures = sum(isinstance(one, BaseException) for one in outcomes)
            return failures, (await server.report()).count(status=503)

    async def others() -> tuple[int, int]:
        async with ScenarioServer(settings) as server, Others(server.base_url) as polling:

            async def create(n: int) -> None:
                await polling.wait(await polling.create(f"p{n}", durations[n]))

            outcomes = await asyncio.gather(
                *(create(n) for n in range(100)), return_exceptions=True
            )
            failures = sum(isinstance(one, BaseException) for one in outcomes)
            return failures, (await server.report()).count(status=503)

    other = await others()
    ran = [await ours() for _ in range(effort.long_runs)]
    failures, unavailable = zip(*ran, strict=True)
    name = "e: every 20th a 503"
    return Result(
        figures=[
            figure(name, "waits in error of 100", failures, [other[0]], of=max, target=0),
            figure(name, "503s", unavailable, [other[1]]),
        ]
    )


# (f) Scale


async def at_scale(effort: Effort) -> Result:
    """From 100 to 100,000 pending operations, in projects of 100, without sockets."""
    costs: dict[int, float] = {}
    for count in scale.COUNTS:
        measured = [
            await scale.microseconds_of_each(count, effort.looks) for _ in range(effort.scale_runs)
        ]
        costs[count] = statistics.median(measured)
    sizes = {count: await scale.bytes_of_each(count) for count in scale.COUNTS}
    fewest, most = min(scale.COUNTS), max(scale.COUNTS)
    name = f"f: {fewest} to {most:,} pending"
    return Result(
        figures=[
            figure(name, f"CPU, {most:,} by {fewest}", [costs[most] / costs[fewest]], target=1.2),
            figure(name, f"CPU, {most:,} by cheapest", [costs[most] / min(costs.values())]),
            figure(name, "CPU an operation a look, us", list(costs.values()), of=max),
            figure(name, "bytes an operation", list(sizes.values())[1:], of=max, target=1.5 * 1024),
        ],
        notes=[
            f"f: {count:,} pending: {costs[count]:.2f} us an operation a look,"
            f" {sizes[count]:.0f} bytes"
            for count in scale.COUNTS
        ],
    )


# The table

Scenario = Callable[[Effort], Awaitable[Result]]

SCENARIOS: dict[str, Scenario] = {
    "a": evenly_ending,
    "b": many_projects,
    "c": lone,
    "d": limited,
    "e": failing,
    "f": at_scale,
}


async def bounded(letter: str, scenario: Scenario, effort: Effort) -> Result:
    """What a scenario found out; one that fails or hangs is told of, and missed."""
    try:
        async with asyncio.timeout(LONGEST):
            return await scenario(effort)
    except Exception as error:  # noqa: BLE001 - the other scenarios are to go on
        title = (scenario.__doc__ or "").partition("\n")[0]
        failed = Figure(
            scenario=letter, name="runs to its end", ours=0, least=0, most=0, target=1, ok=False
        )
        return Result(figures=[failed], notes=[f"{letter}: {title} {error!r}"])


async def run(letters: str, effort: Effort) -> list[Result]:
    """Run the scenarios of these letters."""

    async def begin(letter: str, delay: float) -> None:
        await asyncio.sleep(delay)
        results[letter] = await bounded(letter, SCENARIOS[letter], effort)

    results: dict[str, Result] = {}
    together = [letter for letter in letters if letter in effort.together]
    await asyncio.gather(*(begin(letter, effort.together[letter]) for letter in together))
    for letter in letters:
        if letter not in together:
            await begin(letter, 0.0)
    return [results[letter] for letter in sorted(results)]


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


def main() -> int:
    """Run the benchmark; answers 1 where a target is missed."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument("--only", default="abcdef", metavar="LETTERS", help="scenarios to run")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the figures")
    arguments = parser.parse_args()
    began = time.monotonic()
    results = asyncio.run(run(arguments.only, QUICK if arguments.quick else THOROUGH))
    show(results)
    print(f"{time.monotonic() - began:.0f} s")
    if arguments.json is not None:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
    return 0 if all(one.ok is not False for result in results for one in result.figures) else 1


if __name__ == "__main__":
    sys.exit(main())
