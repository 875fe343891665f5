"""Waits that come, go and end in any order: thousands of programs, each from a seed of its own.

Without sockets, so that an instant of the clock costs next to nothing.
"""

import asyncio
import random
from contextlib import aclosing
from datetime import timedelta

import pytest
from msgspec import UNSET, UnsetType

from neonctl_async import (
    ConnectionLostError,
    NeonError,
    Operation,
    OperationRef,
    OperationStatus,
    PollPolicy,
    WaitTimeoutError,
)
from neonctl_async.models.base import Pagination
from neonctl_async.models.operations import OperationsPage
from neonctl_async.testing import FakeClockLoop
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.types import OperationAction
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.waiter import Waiter
from tests.support.clock import now
from tests.support.records import EPOCH

PROGRAMS = 2000
CHUNKS = 20
SLOWEST_ANSWER = 0.4
SLOW_CONSUMER = 0.3
LATEST = 5.0 + 2 * SLOWEST_ANSWER
"""Seconds after its end that an operation is reported at the latest: the pace is at least that."""


class Unreliable(OperationSource):
    """Operations whose ends are planned; answers come late, out of order, old, or not at all."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.is_healthy = True
        self.ends: dict[OperationRef, float] = {}
        self.polls = 0

    def start(self, project_id: str, seconds: float) -> Operation:
        """Start an operation that ends so many seconds from now."""
        one = OperationRef(project_id=project_id, id=f"op-{len(self.ends)}")
        self.ends[one] = now() + seconds
        return self.record(one)

    def record(self, ref: OperationRef) -> Operation:
        """An operation as it is now."""
        end = self.ends[ref]
        ended = now() >= end
        return Operation(
            id=ref.id,
            project_id=ref.project_id,
            action=OperationAction.CREATE_BRANCH,
            status=OperationStatus.FINISHED if ended else OperationStatus.RUNNING,
            created_at=EPOCH,
            updated_at=EPOCH + timedelta(seconds=end if ended else 0.0),
        )

    async def acquire_poll_slot(self) -> None:
        """Looks queue for a while."""
        await asyncio.sleep(self._chance.choice([0.0, 0.0, SLOWEST_ANSWER / 2]))

    async def get(self, ref: OperationRef) -> Operation:
        """The truth, or a failure that passes."""
        await self._travel()
        answer = self.record(ref)
        await self._travel()
        return answer

    async def newest(
        self, project_id: str, limit: int, cursor: str | UnsetType = UNSET
    ) -> OperationsPage:
        """A page from which anything may be missing."""
        await self._travel()
        begin = 0 if cursor is UNSET else int(cursor)
        of_project = [one for one in reversed(self.ends) if one.project_id == project_id]
        page = [
            self.record(one)
            for one in of_project[begin : begin + limit]
            if self._chance.random() > 0.1
        ]
        await self._travel()
        following = Pagination(cursor=str(begin + limit))
        return OperationsPage(operations=page, pagination=following)

    async def _travel(self) -> None:
        self.polls += 1
        await asyncio.sleep(self._chance.random() * SLOWEST_ANSWER / 2)
        if self.is_healthy and self._chance.random() < 0.03:
            raise ConnectionLostError(
                "the connection broke",
                method="GET",
                path="/",
                request_id="r",
                maybe_delivered=True,
            )


class Program:
    """Some operations of some projects, and some waits for some of them, at random times."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._source = Unreliable(self._chance)
        self._waiter = Waiter(self._source, PollPolicy(), HookDispatcher(()))
        self.outcomes: list[str] = []

    async def run(self) -> None:
        """Run all waits to their ends. Raises AssertionError where one of them ends wrongly."""
        chance = self._chance
        operations: list[Operation] = []
        for _ in range(chance.randint(1, 9)):
            seconds = chance.choice([0.0, 0.5, 2.0, 9.0]) * chance.random()
            operations.append(self._source.start(f"p{chance.randrange(3)}", seconds))
        waits: list[asyncio.Task[str]] = []
        for _ in range(chance.randint(1, 8)):
            some = chance.sample(operations, chance.randint(1, len(operations)))
            waits.append(asyncio.create_task(self._wait(some)))
        for wait in waits:
            if chance.random() < 0.25:
                asyncio.get_running_loop().call_later(chance.random() * 9, wait.cancel)
        ended = await asyncio.gather(*waits, return_exceptions=True)
        self.outcomes = [
            outcome if isinstance(outcome, str) else type(outcome).__name__ for outcome in ended
        ]
        for outcome in ended:
            if not isinstance(outcome, str | asyncio.CancelledError):
                raise outcome
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left, left
        polls = self._source.polls
        await asyncio.sleep(60)
        assert self._source.polls == polls, "somebody still looks"
        await self._waiter.aclose()

    async def _wait(self, operations: list[Operation]) -> str:
        chance = self._chance
        await asyncio.sleep(chance.choice([0.0, 3.0 * chance.random()]))
        what = [one.ref if chance.random() < 0.3 else one for one in operations]
        timeout = chance.choice([None, None, 2.0 * chance.random(), 60.0])
        begun = now()
        due = max(begun, *(self._source.ends[one.ref] for one in operations))
        method = chance.choice([self._wait_for_all, self._as_completed, self._watch])
        try:
            seen = await method(what, timeout)
        except WaitTimeoutError as error:
            self._check_timed_out(error, operations)
            late = now() - begun - (timeout or 0.0)
            assert 0 <= late <= len(operations) * SLOW_CONSUMER
            return "timed out"
        assert {one.id for one in seen} == {one.id for one in operations}
        assert all(one.status == "finished" for one in seen)
        assert all(self._source.ends[one.ref] <= now() for one in seen)
        # A failed look, or a page that left something out, costs another delay.
        assert now() <= due + 5 * LATEST
        return "ended"

    def _check_timed_out(self, error: WaitTimeoutError, operations: list[Operation]) -> None:
        told = {*(one.id for one in error.pending), *(one.id for one in error.settled)}
        assert told == {one.id for one in operations}
        assert all(self._source.record(one.ref).status == one.status for one in error.settled)

    async def _wait_for_all(
        self, what: list[Operation | OperationRef], timeout: float | None
    ) -> list[Operation]:
        return await self._waiter.wait(
            what, timeout=timeout, fail_fast=False, on_update=None, raise_on_failure=True
        )

    async def _as_completed(
        self, what: list[Operation | OperationRef], timeout: float | None
    ) -> list[Operation]:
        seen: list[Operation] = []
        async with aclosing(self._waiter.as_completed(what, timeout=timeout)) as completed:
            async for one in completed:
                seen.append(one)
                await asyncio.sleep(self._chance.choice([0.0, 0.0, SLOW_CONSUMER]))
        assert len(seen) == len(what)
        return seen

    async def _watch(
        self, what: list[Operation | OperationRef], timeout: float | None
    ) -> list[Operation]:
        newest: dict[str, Operation] = {}
        async with aclosing(self._waiter.watch(what, timeout=timeout)) as changes:
            async for one in changes:
                known = newest.get(one.id)
                assert known is None or known.status == "running", "an end that was taken back"
                newest[one.id] = one
        return list(newest.values())


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_wait_ends_with_the_truth_in_time_and_leaves_nothing_behind(chunk: int) -> None:
    outcomes: set[str] = set()
    with asyncio.Runner(debug=False, loop_factory=FakeClockLoop) as runner:
        for seed in range(chunk, PROGRAMS, CHUNKS):
            random.seed(seed)  # for the jitter of the looks
            program = Program(seed)
            try:
                runner.run(program.run())
            except (AssertionError, NeonError) as error:
                error.add_note(f"the program of seed {seed}")
                raise
            outcomes.update(program.outcomes)
    assert outcomes == {"ended", "timed out", "CancelledError"}
