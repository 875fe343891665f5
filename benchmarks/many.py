"""The scenarios with many operations: (a), (b), (d), (e) and (f)."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Sequence

import msgspec
import scale
from figures import Effort, Result, figure
from others import Others, between, client_of, told
from scenario import CREATE, GET, LIST, Report, Settings
from scenario_server import ScenarioServer, last_end

from neonctl_async import Operation


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


async def at_scale(effort: Effort) -> Result:
    """From 100 to 100,000 pending operations, in projects of 100, without sockets."""
    costs: dict[int, float] = {}
    for count in scale.COUNTS:
        measured = [
            await scale.microseconds_of_each(count, effort.looks) for _ in range(effort.scale_runs)
        ]
        costs[count] = statistics.median(measured)
    streamed = {
        method: [
            await scale.microseconds_of_streamed(count, only_settled=method == "as_completed")
            for count in scale.STREAMED
        ]
        for method in ("as_completed", "watch")
    }
    sizes = {count: await scale.bytes_of_each(count) for count in scale.COUNTS}
    fewest, largest = min(scale.COUNTS), max(scale.COUNTS)
    name = f"f: {fewest} to {largest:,} pending"
    return Result(
        figures=[
            figure(
                name, f"CPU, {largest:,} by {fewest}", [costs[largest] / costs[fewest]], target=1.2
            ),
            figure(name, f"CPU, {largest:,} by cheapest", [costs[largest] / min(costs.values())]),
            figure(name, "CPU an operation a look, us", list(costs.values()), of=max),
            *(
                figure(
                    f"f: {method} of 10,000", "CPU, by 1,000", [ten_thousand / thousand], target=1.2
                )
                for method, (thousand, ten_thousand) in streamed.items()
            ),
            figure(name, "bytes an operation", list(sizes.values())[1:], of=max, target=1.5 * 1024),
        ],
        notes=[
            f"f: {count:,} pending: {costs[count]:.2f} us an operation a look,"
            f" {sizes[count]:.0f} bytes"
            for count in scale.COUNTS
        ],
    )
