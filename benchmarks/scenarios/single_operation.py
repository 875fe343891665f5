"""Lone operations: each the only one of its project, awaited blind and having learned.

A client that has seen operations of the kind end knows when to look. The SDK knows nothing of the
kind; it looks once a second.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from benchmarks.harness.durations import between
from benchmarks.harness.results import NEON_SDK, OURS, Row, Target, row
from benchmarks.harness.run_size import Effort
from benchmarks.peers.base import KEY
from benchmarks.peers.neon_sdk import NeonSdk
from benchmarks.servers.simulator import Settings
from benchmarks.servers.simulator_process import ScenarioServer
from neonctl_async import NeonClient, Operation

BLIND = "neonctl-async, blind"
PRACTICE = 30


class Kind(msgspec.Struct, frozen=True):
    """Operations of about so many seconds, and how late and dear a blind wait may be."""

    about: float
    late: float
    requests: int

    def durations(self, count: int) -> list[float]:
        """They vary by 30 % in both directions."""
        return between(0.7 * self.about, 1.3 * self.about, count)


KINDS = (Kind(1.0, 0.35, 5), Kind(10.0, 2.5, 12))


class Lone(msgspec.Struct, frozen=True):
    """How runs with one lone operation each went; ``looks`` are seconds from the start."""

    late: list[float]
    looks: list[list[float]]

    @property
    def requests(self) -> list[int]:
        """The looks a run took."""
        return [len(of_run) for of_run in self.looks]

    def described(self) -> str:
        """When the first look came, the second and so on, and how many runs got so far."""
        at: list[str] = []
        for n in range(max(self.requests)):
            reached = [of_run[n] for of_run in self.looks if len(of_run) > n]
            at.append(f"{statistics.median(reached):.2f} s ({len(reached) / len(self.looks):.0%})")
        return f"looks at {', '.join(at)}"


Wait = Callable[[Operation], Awaitable[float]]
"""Waits, and tells when it returned."""


async def lone_runs(
    server: ScenarioServer, name: str, durations: Sequence[float], wait: Wait, over: float
) -> Lone:
    """Wait for each in a project of its own, the begins spread ``over`` so many seconds."""

    async def run(n: int) -> tuple[str, Operation, float, float]:
        await asyncio.sleep(over * n / len(durations))
        began = time.monotonic()
        [operation] = await server.start({f"{name}-{n}": [durations[n]]})
        return f"{name}-{n}", operation, began, await wait(operation)

    ran = await asyncio.gather(*(run(n) for n in range(len(durations))))
    report = await server.report()
    looks = report.looks()
    return Lone(
        [returned - report.ends[operation.id] for _, operation, _, returned in ran],
        [[at - began for at in looks.get(project_id, [])] for project_id, _, began, _ in ran],
    )


async def measured(kind: Kind, runs: int, over: float) -> dict[str, Lone]:
    """Operations of a kind: ours blind and having learned, and the SDK."""
    durations = kind.durations(runs)
    async with ScenarioServer(Settings()) as server, NeonSdk() as sdk:

        async def afresh(operation: Operation) -> float:
            async with NeonClient(KEY, base_url=server.base_url) as neon:
                await neon.operations.wait(operation)
                return time.monotonic()

        async def having_learned() -> Lone:
            async with NeonClient(KEY, base_url=server.base_url) as neon:

                async def again(operation: Operation) -> float:
                    await neon.operations.wait(operation)
                    return time.monotonic()

                practice = kind.durations(PRACTICE)
                await lone_runs(server, "practice", practice, again, over / 2)
                return await lone_runs(server, "learned", durations, again, over)

        async def by_sdk(operation: Operation) -> float:
            return (await sdk.wait(server.base_url, [operation])).unfailing()

        blind, learned, other = await asyncio.gather(
            lone_runs(server, "blind", durations, afresh, over),
            having_learned(),
            lone_runs(server, "sdk", durations, by_sdk, over),
        )
    return {BLIND: blind, OURS: learned, NEON_SDK: other}


async def run(effort: Effort) -> list[Row]:
    """Measure both kinds at the same time; the quick look is at the short one."""
    runs = effort.of(thorough=100, quick=30)
    kinds = KINDS[: effort.of(thorough=2, quick=1)]
    of_kinds = await asyncio.gather(
        *(measured(kind, runs, over=effort.of(thorough=5, quick=1)) for kind in kinds)
    )
    return [
        each
        for kind, found in zip(kinds, of_kinds, strict=True)
        for each in [*blind_rows(kind, found), *learned_rows(kind, found)]
    ]


def blind_rows(kind: Kind, found: dict[str, Lone]) -> list[Row]:
    """What a client takes that knows nothing yet."""
    name = f"a lone operation of about {kind.about:g} s, blind"
    ours, sdk = found[BLIND], found[NEON_SDK]
    late = {OURS: ours.late, NEON_SDK: sdk.late}
    most = {OURS: [max(ours.requests)], NEON_SDK: [max(sdk.requests)]}
    mean = {OURS: [statistics.mean(ours.requests)], NEON_SDK: [statistics.mean(sdk.requests)]}
    return [
        row(name, "late", "s", late, targets=[Target(kind.late)], note=ours.described()),
        row(name, "cost at most", "requests", most, targets=[Target(kind.requests)]),
        row(name, "cost on average", "requests", mean),
    ]


def learned_rows(kind: Kind, found: dict[str, Lone]) -> list[Row]:
    """What it takes once it has seen operations of the kind end."""
    name = f"a lone operation of about {kind.about:g} s, learned"
    late = {contender: lone.late for contender, lone in found.items()}
    mean = {contender: [statistics.mean(lone.requests)] for contender, lone in found.items()}
    note = found[OURS].described()
    return [
        row(name, "late", "s", late, targets=[Target(kind.late / 2)], note=note),
        row(name, "cost on average", "requests", mean, targets=[Target(kind.requests / 2)]),
    ]
