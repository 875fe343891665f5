"""The CPU time and memory of waiting per pending operation, without a network."""

import asyncio
import gc
import time
import tracemalloc
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import msgspec
from msgspec import UNSET, UnsetType

from benchmarks.harness import results
from benchmarks.harness.results import NEON_SDK, OURS, Row, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.neon_sdk import NeonSdk
from neonctl_async import (
    Operation,
    OperationRef,
    OperationStatus,
    PollPolicy,
    RateBudget,
)
from neonctl_async.clock import utc_now
from neonctl_async.models.operations import OperationsPage
from neonctl_async.transport.budget import Budget, Slot
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.types import OperationAction
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.targets import Target
from neonctl_async.waiting.waiter import Waiter

PER_PROJECT = 100
POLLS = 100_000
ALWAYS_DUE = PollPolicy.constant(0.0001)
"""A delay so short that a poll is always due, so that CPU time limits the pollers."""
POLL_ONCE = PollPolicy.constant(3600.0)
"""A delay so long that only the first poll happens: operations without a record get it at once."""


class InProcess(OperationSource):
    """Operations in projects of 100 whose status never changes.

    With ``decode``, each poll decodes its page from JSON, as a client does, so the waits hold their
    own records. Without, all polls return the same records.
    """

    def __init__(self, count: int, *, decode: bool) -> None:
        self._pages: dict[str, OperationsPage] = {}
        self._encoded: dict[str, bytes] = {}
        for first in range(0, count, PER_PROJECT):
            operations = [_operation(number) for number in range(first, first + PER_PROJECT)]
            page = OperationsPage(operations=operations)
            if decode:
                self._encoded[operations[0].project_id] = msgspec.json.encode(page)
            else:
                self._pages[operations[0].project_id] = page
        self._budget = Budget(RateBudget.unlimited(), connections=100)
        self._polls = 0
        self._until = 0
        self._reached = asyncio.Event()

    def server_now(self) -> datetime:
        """Return the time of this machine."""
        return utc_now()

    def targets(self) -> list[Sequence[Target]]:
        """Return the operations by project; as references if each poll decodes its page."""
        if self._pages:
            return [page.operations for page in self._pages.values()]
        pages = (self._decode(page) for page in self._encoded.values())
        return [[operation.ref for operation in page.operations] for page in pages]

    def encoded_pages(self) -> list[bytes]:
        """Return the pages as JSON."""
        return list(self._encoded.values())

    async def wait_for_polls(self, polls: int) -> int:
        """Wait for this many further polls; return how many there were."""
        before = self._polls
        self._until = before + polls
        self._reached.clear()
        await self._reached.wait()
        return self._polls - before

    @property
    def budget(self) -> Budget:
        """A rate budget without limits."""
        return self._budget

    @property
    def holds_reads(self) -> bool:
        """False, as on Neon."""
        return False

    async def get(self, ref: OperationRef, slot: Slot | None = None) -> Operation:
        """Raise: no operation is missing from its page."""
        raise NotImplementedError(ref, slot)

    async def newest(
        self,
        project_id: str,
        limit: int,
        cursor: str | UnsetType = UNSET,
        slot: Slot | None = None,
    ) -> OperationsPage:
        """Return all operations of the project."""
        del limit, cursor
        await asyncio.sleep(0)
        if slot is not None:
            slot.release()
        self._polls += 1
        if self._polls == self._until:
            self._reached.set()
        if self._pages:
            return self._pages[project_id]
        return self._decode(self._encoded[project_id])

    @staticmethod
    def _decode(page: bytes) -> OperationsPage:
        return msgspec.json.decode(page, type=OperationsPage)


def _operation(number: int) -> Operation:
    now = datetime.now(UTC)
    return Operation(
        id=f"{number:08x}-0000-4000-8000-000000000000",
        project_id=f"late-frost-{number // PER_PROJECT:08}",
        branch_id=f"br-quiet-sun-{number:08}",
        action=OperationAction.CREATE_BRANCH,
        status=OperationStatus.RUNNING,
        created_at=now,
        updated_at=now,
    )


@asynccontextmanager
async def _waits(
    source: InProcess, policy: PollPolicy, targets: Sequence[Sequence[Target]]
) -> AsyncGenerator[None]:
    """Run one wait per project, each of which has polled at least once."""
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
        await source.wait_for_polls(len(targets))
        yield
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        await waiter.aclose()


async def poll_microseconds(count: int) -> float:
    """Return the CPU time per operation and poll, with at least two polls of each operation."""
    source = InProcess(count, decode=False)
    gc.collect()
    async with _waits(source, ALWAYS_DUE, source.targets()):
        started = time.process_time()
        polls = await source.wait_for_polls(max(POLLS, 2 * count) // PER_PROJECT)
        return (time.process_time() - started) / (polls * PER_PROJECT) * 1e6


async def pending_bytes(count: int) -> float:
    """Return the memory per pending operation, with its newest record, without the reference."""
    source = InProcess(count, decode=True)
    targets = source.targets()
    gc.collect()
    tracemalloc.start()
    try:
        async with _waits(source, POLL_ONCE, targets):
            await asyncio.sleep(0.05)
            gc.collect()
            return tracemalloc.get_traced_memory()[0] / count
    finally:
        tracemalloc.stop()


async def run(size: RunSize) -> list[Row]:
    """Measure few pending operations and many, in projects of 100."""
    count = size.pick(full=100_000, quick=10_000)
    return [await cpu_row(count, size.pick(full=3, quick=1)), await memory_row(count)]


async def cpu_row(count: int, rounds: int) -> Row:
    """Measure the CPU time of a poll, which should not depend on the number of operations."""
    few, many = _name(PER_PROJECT), _name(count)
    values: dict[str, list[float]] = {OURS: [], few: []}
    for _ in range(rounds):
        values[few].append(await poll_microseconds(PER_PROJECT))
        values[OURS].append(await poll_microseconds(count))
    targets = [results.Target(1.2, relative_to=few)]
    return make_row(many, "CPU time per operation and poll", "µs", values, targets=targets)


async def memory_row(count: int) -> Row:
    """Measure the memory per pending operation, with its record."""
    async with NeonSdk() as sdk:
        pages = InProcess(count, decode=True).encoded_pages()
        size_of_sdk = await sdk.bytes_per_operation("http://127.0.0.1:9", pages)
    return make_row(
        _name(count),
        "memory per operation",
        "bytes",
        {OURS: [await pending_bytes(count)], NEON_SDK: [size_of_sdk]},
        targets=[results.Target(1.5 * 1024)],
        note="the SDK polls one operation after another, so it holds only the records",
    )


def _name(count: int) -> str:
    return f"{count:,} operations pending"
