"""What a pending operation costs the waiting itself, in memory and time, without sockets."""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, UnsetType

from benchmarks import figures
from benchmarks.effort import Effort
from benchmarks.figures import NEON_SDK, OURS, Row, row
from benchmarks.peers.neon_sdk import NeonSdk
from neonctl_async import Operation, OperationRef, OperationStatus, PollPolicy
from neonctl_async.models.operations import OperationsPage
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.types import OperationAction
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.targets import Target
from neonctl_async.waiting.waiter import Waiter

COUNTS = (100, 1_000, 10_000, 100_000)
STREAMED = (1_000, 10_000)
PER_PROJECT = 100
LOOKS = 100_000
AT_ONCE = PollPolicy.constant(0.0001)
"""So often that pollers are always due: what passes is time of the processor."""
ONCE = PollPolicy.constant(3600.0)
"""After the first look, which an operation without a record gets at once, no other."""


class InProcess(OperationSource):
    """Operations of one status, the same for ever, in projects of 100.

    Pages are at hand, unless ``decodes``: then each look reads its page from JSON, as a client
    has to, so that the records are no longer the source's own.
    """

    def __init__(
        self, count: int, *, decodes: bool, status: OperationStatus = OperationStatus.RUNNING
    ) -> None:
        self._pages: dict[str, OperationsPage] = {}
        self._encoded: dict[str, bytes] = {}
        for first in range(0, count, PER_PROJECT):
            operations = [
                _operation(number, status) for number in range(first, first + PER_PROJECT)
            ]
            page = OperationsPage(operations=operations)
            if decodes:
                self._encoded[operations[0].project_id] = msgspec.json.encode(page)
            else:
                self._pages[operations[0].project_id] = page
        self._looks = 0
        self._until = 0
        self._reached = asyncio.Event()

    def targets(self) -> list[Sequence[Target]]:
        """The operations by project; references where the pages have yet to be read."""
        if self._pages:
            return [page.operations for page in self._pages.values()]
        pages = (self._read(page) for page in self._encoded.values())
        return [[operation.ref for operation in page.operations] for page in pages]

    def answers(self) -> list[bytes]:
        """The pages as they come over the wire."""
        return list(self._encoded.values())

    async def further(self, looks: int) -> int:
        """Wait until so many more pages have been asked for; how many there were."""
        before = self._looks
        self._until = before + looks
        self._reached.clear()
        await self._reached.wait()
        return self._looks - before

    async def acquire_poll_slot(self) -> None:
        """No budget here."""

    async def get(self, ref: OperationRef) -> Operation:
        """Nothing here has to be looked for by id."""
        raise NotImplementedError(ref)

    async def newest(
        self, project_id: str, limit: int, cursor: str | UnsetType = UNSET
    ) -> OperationsPage:
        """The whole project."""
        del limit, cursor
        await asyncio.sleep(0)
        self._looks += 1
        if self._looks == self._until:
            self._reached.set()
        if self._pages:
            return self._pages[project_id]
        return self._read(self._encoded[project_id])

    @staticmethod
    def _read(page: bytes) -> OperationsPage:
        return msgspec.json.decode(page, type=OperationsPage)


def _operation(number: int, status: OperationStatus) -> Operation:
    now = datetime.now(UTC)
    return Operation(
        id=f"{number:08x}-0000-4000-8000-000000000000",
        project_id=f"late-frost-{number // PER_PROJECT:08}",
        branch_id=f"br-quiet-sun-{number:08}",
        action=OperationAction.CREATE_BRANCH,
        status=status,
        created_at=now,
        updated_at=now,
    )


@asynccontextmanager
async def _waits(
    source: InProcess, policy: PollPolicy, targets: Sequence[Sequence[Target]]
) -> AsyncGenerator[None]:
    """A wait a project, each with at least one look behind it."""
    waiter = Waiter(source, policy, HookDispatcher(()))
    waits = [
        asyncio.ensure_future(
            waiter.wait(
                of_project, timeout=None, fail_fast=False, on_update=None, raise_on_failure=True
            )
        )
        for of_project in targets
    ]
    try:
        await source.further(len(targets))
        yield
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        await waiter.aclose()


async def microseconds_of_each(count: int) -> float:
    """Processor time of an operation and a look, of at least two looks at each."""
    source = InProcess(count, decodes=False)
    gc.collect()
    async with _waits(source, AT_ONCE, source.targets()):
        began = time.process_time()
        taken = await source.further(max(LOOKS, 2 * count) // PER_PROJECT)
        return (time.process_time() - began) / (taken * PER_PROJECT) * 1e6


async def bytes_of_each(count: int) -> float:
    """Memory of a pending operation, its newest record included, the caller's reference not."""
    source = InProcess(count, decodes=True)
    targets = source.targets()
    gc.collect()
    tracemalloc.start()
    try:
        async with _waits(source, ONCE, targets):
            await asyncio.sleep(0.05)
            gc.collect()
            return tracemalloc.get_traced_memory()[0] / count
    finally:
        tracemalloc.stop()


async def microseconds_of_streamed(count: int, *, only_settled: bool) -> float:
    """Processor time of an operation that ``as_completed`` or else ``watch`` yields."""
    source = InProcess(count, decodes=False, status=OperationStatus.FINISHED)
    refs = [
        one.ref
        for of_project in source.targets()
        for one in of_project
        if isinstance(one, Operation)
    ]
    waiter = Waiter(source, PollPolicy(), HookDispatcher(()))
    stream = waiter.as_completed if only_settled else waiter.watch
    gc.collect()
    began = time.process_time()
    async with aclosing(stream(refs, timeout=None)) as operations:
        seen = [one.id async for one in operations]
    assert len(seen) == count
    await waiter.aclose()
    return (time.process_time() - began) / count * 1e6


async def run(effort: Effort) -> list[Row]:
    """Take up to 100,000 pending operations, in projects of 100."""
    counts = COUNTS[: effort.of(thorough=4, quick=3)]
    return [
        *await cpu_rows(counts, effort),
        *await streamed_rows(effort),
        await memory_row(counts),
    ]


async def cpu_rows(counts: Sequence[int], effort: Effort) -> list[Row]:
    """What a look costs by how many are pending: no more, the more there are."""
    costs: dict[str, list[float]] = {named(count): [] for count in counts}
    for _ in range(effort.of(thorough=3, quick=1)):
        for count in counts:
            costs[named(count)].append(await microseconds_of_each(count))
    fewest, *_, largest = costs
    values = {OURS: costs.pop(largest), **costs}
    targets = [figures.Target(1.2, by=fewest)]
    return [row(largest, "CPU of a look at one", "us", values, targets=targets)]


async def streamed_rows(effort: Effort) -> list[Row]:
    """What an operation costs that is yielded, by how many are."""
    found: list[Row] = []
    for method in ("as_completed", "watch"):
        costs: dict[str, list[float]] = {f"{count:,} by {method}": [] for count in STREAMED}
        for _ in range(effort.of(thorough=5, quick=1)):
            for count, of_count in zip(STREAMED, costs.values(), strict=True):
                settled = method == "as_completed"
                of_count.append(await microseconds_of_streamed(count, only_settled=settled))
        few, many = costs
        targets = [figures.Target(1.2, by=few)]
        values = {OURS: costs[many], few: costs[few]}
        found.append(row(many, "CPU of each", "us", values, targets=targets))
    return found


async def memory_row(counts: Sequence[int]) -> Row:
    """What an operation takes of memory while it is awaited, its record included."""
    sizes = [await bytes_of_each(count) for count in counts[1:]]
    async with NeonSdk() as sdk:
        answers = InProcess(counts[-1], decodes=True).answers()
        size_of_sdk = await sdk.bytes_of_each("http://127.0.0.1:9", answers)
    return row(
        named(counts[-1]),
        "memory of each at most",
        "bytes",
        {OURS: [max(sizes)], NEON_SDK: [size_of_sdk]},
        targets=[figures.Target(1.5 * 1024)],
        note="the SDK looks at one operation after another: what it holds are the records",
    )


def named(count: int) -> str:
    """So many, without a network."""
    return f"{count:,} operations pending"
