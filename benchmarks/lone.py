"""Scenario (c): lone operations, blind and having learned."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from figures import Effort, Figure, Result, figure
from others import Others, between, client_of, told
from scenario import Settings
from scenario_server import ScenarioServer

from neonctl_async import Operation


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
            ),
            figure(
                f"{name}, learned",
                "requests, by the unlearned",
                [mean(learned.requests) / dearer],
            ),
        ]
        notes += [fresh.describe(name), learned.describe(f"{name}, learned")]
    return Result(figures=figures, notes=notes)
