"""Waits that start and end in any order: 2,000 random programs, each with its own seed.

They use no sockets, so that a program takes little time.
"""

import asyncio
import random
from contextlib import aclosing
from datetime import datetime, timedelta

import pytest
from msgspec import UNSET, UnsetType

from neonctl_async import (
    ConnectionLostError,
    NeonError,
    Operation,
    OperationRef,
    OperationStatus,
    PollPolicy,
    RateBudget,
    WaitTimeoutError,
)
from neonctl_async.clock import utc_now
from neonctl_async.models.base import Pagination
from neonctl_async.models.operations import OperationsPage
from neonctl_async.testing import FakeClockLoop
from neonctl_async.transport.budget import Budget, Slot
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.transport.scheduler import Urgency
from neonctl_async.types import OperationAction
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.targets import Target
from neonctl_async.waiting.waiter import Waiter
from tests.support.clock import now
from tests.support.records import EPOCH

PROGRAMS = 2000
CHUNKS = 20
SLOWEST_RESPONSE = 0.4
SLOW_CONSUMER = 0.3
ONE_MORE_POLL = 3 * SLOWEST_RESPONSE
"""The time of the poll after a deadline that a slow consumer has missed: a slot, a list, a read."""
MAX_DELAY = 5.0 + 2 * SLOWEST_RESPONSE
"""Longest time from the end of an operation to its report, in seconds."""


class UnreliableSource(OperationSource):
    """Operations with planned ends. Responses are late, out of order, outdated, or missing."""

    def __init__(self, generator: random.Random) -> None:
        self._random = generator
        self.is_healthy = True
        self.ends: dict[OperationRef, float] = {}
        self.polls = 0
        self._budget = Budget(RateBudget.unlimited(), connections=100)

    @property
    def budget(self) -> Budget:
        """A budget without limits."""
        return self._budget

    @property
    def holds_reads(self) -> bool:
        return False

    def server_now(self) -> datetime:
        return utc_now()

    def start(self, project_id: str, seconds: float) -> Operation:
        """Start an operation that takes this many seconds."""
        ref = OperationRef(project_id=project_id, id=f"op-{len(self.ends)}")
        self.ends[ref] = now() + seconds
        return self.record(ref)

    def record(self, ref: OperationRef) -> Operation:
        """Return an operation with its current status."""
        end = self.ends[ref]
        is_finished = now() >= end
        return Operation(
            id=ref.id,
            project_id=ref.project_id,
            action=OperationAction.CREATE_BRANCH,
            status=OperationStatus.FINISHED if is_finished else OperationStatus.RUNNING,
            created_at=EPOCH,
            updated_at=EPOCH + timedelta(seconds=end if is_finished else 0.0),
        )

    async def acquire_poll_slot(
        self, *, is_list: bool, urgency: Urgency, slot: Slot | None = None
    ) -> Slot:
        """Wait for a random time."""
        await asyncio.sleep(self._random.choice([0.0, 0.0, SLOWEST_RESPONSE / 2]))
        return await super().acquire_poll_slot(is_list=is_list, urgency=urgency, slot=slot)

    async def get(self, ref: OperationRef, slot: Slot | None = None) -> Operation:
        """Return the operation, or raise a transient failure."""
        await self._travel(slot)
        record = self.record(ref)
        await self._travel()
        return record

    async def newest(
        self,
        project_id: str,
        limit: int,
        cursor: str | UnsetType = UNSET,
        slot: Slot | None = None,
    ) -> OperationsPage:
        """Return a page that some operations may be missing from."""
        await self._travel(slot)
        start = 0 if cursor is UNSET else int(cursor)
        refs = [ref for ref in reversed(self.ends) if ref.project_id == project_id]
        page = [
            self.record(ref) for ref in refs[start : start + limit] if self._random.random() > 0.1
        ]
        await self._travel()
        following = Pagination(cursor=str(start + limit))
        return OperationsPage(operations=page, pagination=following)

    async def _travel(self, slot: Slot | None = None) -> None:
        if slot is not None:
            slot.release()
        self.polls += 1
        await asyncio.sleep(self._random.random() * SLOWEST_RESPONSE / 2)
        if self.is_healthy and self._random.random() < 0.03:
            raise ConnectionLostError(
                "the connection was closed",
                method="GET",
                path="/",
                request_id="r",
                maybe_delivered=True,
            )


class Program:
    """Random operations of random projects, with random waits at random times."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._source = UnreliableSource(self._random)
        self._waiter = Waiter(self._source, PollPolicy(), HookDispatcher(()))
        self.outcomes: list[str] = []

    async def run(self) -> None:
        """Run all waits. Raises AssertionError for a wrong result."""
        generator = self._random
        operations: list[Operation] = []
        for _ in range(generator.randint(1, 9)):
            seconds = generator.choice([0.0, 0.5, 2.0, 9.0]) * generator.random()
            operations.append(self._source.start(f"p{generator.randrange(3)}", seconds))
        waits: list[asyncio.Task[str]] = []
        for _ in range(generator.randint(1, 8)):
            targets = generator.sample(operations, generator.randint(1, len(operations)))
            waits.append(asyncio.create_task(self._wait(targets)))
        for wait in waits:
            if generator.random() < 0.25:
                asyncio.get_running_loop().call_later(generator.random() * 9, wait.cancel)
        results = await asyncio.gather(*waits, return_exceptions=True)
        self.outcomes = [
            outcome if isinstance(outcome, str) else type(outcome).__name__ for outcome in results
        ]
        for outcome in results:
            if not isinstance(outcome, str | asyncio.CancelledError):
                raise outcome
        await asyncio.sleep(0)
        remaining = asyncio.all_tasks() - {asyncio.current_task()}
        assert not remaining, remaining
        polls = self._source.polls
        await asyncio.sleep(60)
        assert self._source.polls == polls, "polls after the last wait"
        await self._waiter.aclose()

    async def _wait(self, operations: list[Operation]) -> str:
        generator = self._random
        await asyncio.sleep(generator.choice([0.0, 3.0 * generator.random()]))
        what = [record.ref if generator.random() < 0.3 else record for record in operations]
        timeout = generator.choice([None, None, 2.0 * generator.random(), 60.0])
        started = now()
        due = max(started, *(self._source.ends[record.ref] for record in operations))
        method = generator.choice([self._wait_for_all, self._as_completed, self._watch])
        try:
            seen = await method(what, timeout)
        except WaitTimeoutError as error:
            self._check_timed_out(error, operations)
            late = now() - started - (timeout or 0.0)
            is_slow = method == self._as_completed
            most = len(operations) * SLOW_CONSUMER + ONE_MORE_POLL if is_slow else 0.0
            assert 0 <= late <= most + 1e-6
            return "timed out"
        assert {record.id for record in seen} == {record.id for record in operations}
        assert all(record.status == "finished" for record in seen)
        assert all(self._source.ends[record.ref] <= now() for record in seen)
        # A failed poll, or a page without the operation, costs another delay.
        assert now() <= due + 5 * MAX_DELAY
        return "finished"

    def _check_timed_out(self, error: WaitTimeoutError, operations: list[Operation]) -> None:
        reported = {
            *(record.id for record in error.pending),
            *(record.id for record in error.settled),
        }
        assert reported == {record.id for record in operations}
        assert all(
            self._source.record(record.ref).status == record.status for record in error.settled
        )

    async def _wait_for_all(self, what: list[Target], timeout: float | None) -> list[Operation]:
        return await self._waiter.wait(
            what, timeout=timeout, fail_fast=False, on_update=None, raise_on_failure=True
        )

    async def _as_completed(self, what: list[Target], timeout: float | None) -> list[Operation]:
        seen: list[Operation] = []
        async with aclosing(self._waiter.as_completed(what, timeout=timeout)) as completed:
            async for record in completed:
                seen.append(record)
                await asyncio.sleep(self._random.choice([0.0, 0.0, SLOW_CONSUMER]))
        assert len(seen) == len(what)
        return seen

    async def _watch(self, what: list[Target], timeout: float | None) -> list[Operation]:
        newest: dict[str, Operation] = {}
        async with aclosing(self._waiter.watch(what, timeout=timeout)) as changes:
            async for record in changes:
                known = newest.get(record.id)
                assert known is None or known.status == "running", (
                    "a change after the terminal status"
                )
                newest[record.id] = record
        return list(newest.values())


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_wait_returns_correct_records_in_time_and_leaves_no_task(chunk: int) -> None:
    outcomes: set[str] = set()
    with asyncio.Runner(debug=False, loop_factory=FakeClockLoop) as runner:
        for seed in range(chunk, PROGRAMS, CHUNKS):
            random.seed(seed)  # for the jitter of the polls
            program = Program(seed)
            try:
                runner.run(program.run())
            except (AssertionError, NeonError) as error:
                error.add_note(f"the program of seed {seed}")
                raise
            outcomes.update(program.outcomes)
    assert outcomes == {"finished", "timed out", "CancelledError"}
