"""Simulates waits for operations of known durations, without network or randomness."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, TypeVar

from msgspec import UNSET, UnsetType

from neonctl_async import Operation, OperationRef, OperationStatus, PollPolicy, RateBudget
from neonctl_async.clock import utc_now
from neonctl_async.models.operations import OperationsPage
from neonctl_async.testing import FakeClockLoop
from neonctl_async.transport.budget import Budget, Slot
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.types import OperationAction
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.waiter import Waiter

T = TypeVar("T")

PROJECT = "late-frost-12345678"
POLICY = PollPolicy(jitter=0.0)


class Lifetime(NamedTuple):
    """The times at which an operation started and finished, and its wait was notified."""

    started: float
    finished: float
    notified: float


class Poll(NamedTuple):
    """The time of a request, and the number of pending operations."""

    at: float
    pending: int


class Simulation(OperationSource):
    """Starts operations, finishes them on time, and responds without delay."""

    def __init__(self) -> None:
        self._spans: dict[str, tuple[float, float]] = {}
        self._notified: dict[str, float] = {}
        self._polls: list[float] = []
        self._budget = Budget(RateBudget.unlimited(), connections=100)

    @property
    def budget(self) -> Budget:
        """A budget without limits."""
        return self._budget

    def start(self, seconds: float) -> Operation:
        """Start an operation that takes ``seconds``."""
        name = f"op-{len(self._spans)}"
        self._spans[name] = (_now(), _now() + seconds)
        return self._record(name)

    def on_update(self, operation: Operation) -> None:
        """Record when a wait is notified of a finished operation."""
        if operation.status is OperationStatus.FINISHED:
            self._notified[operation.id] = _now()

    async def get(self, ref: OperationRef, slot: Slot | None = None) -> Operation:
        """Return one operation."""
        self._note_poll(slot)
        return self._record(ref.id)

    async def newest(
        self,
        project_id: str,
        limit: int,
        cursor: str | UnsetType = UNSET,
        slot: Slot | None = None,
    ) -> OperationsPage:
        """Return the newest operations, which fit on one page."""
        assert (project_id, cursor) == (PROJECT, UNSET)
        self._note_poll(slot)
        newest_first = list(reversed(self._spans))[:limit]
        return OperationsPage(operations=[self._record(name) for name in newest_first])

    def lifetimes(self) -> list[Lifetime]:
        """Return the lifetimes of all operations, in the order in which they were started."""
        return [Lifetime(*span, self._notified[name]) for name, span in self._spans.items()]

    def polls(self) -> list[Poll]:
        """Return all requests."""
        lifetimes = self.lifetimes()
        return [
            Poll(at, sum(one.started < at <= one.notified for one in lifetimes))
            for at in self._polls
        ]

    def _note_poll(self, slot: Slot | None) -> None:
        self._polls.append(_now())
        if slot is not None:
            slot.release()

    def _record(self, name: str) -> Operation:
        started, finishes = self._spans[name]
        until = min(_now(), finishes)
        origin = utc_now() - timedelta(seconds=_now())
        return Operation(
            id=name,
            project_id=PROJECT,
            action=OperationAction.CREATE_BRANCH,
            status=OperationStatus.FINISHED if _now() >= finishes else OperationStatus.RUNNING,
            created_at=origin + timedelta(seconds=started),
            updated_at=origin + timedelta(seconds=until),
            total_duration_ms=round(1000 * (until - started)),
        )


async def one_by_one(durations: Sequence[float]) -> Simulation:
    """Wait for operations of these durations, one after another, with one client."""
    simulation, waiter = _client()
    for seconds in durations:
        await _wait(simulation, waiter, 0.0, [seconds])
    return simulation


async def concurrently(waits: Mapping[float, Sequence[float]]) -> Simulation:
    """Start waits at these times, each for operations of these durations, with one client."""
    simulation, waiter = _client()
    await asyncio.gather(*(_wait(simulation, waiter, *wait) for wait in waits.items()))
    return simulation


def _client() -> tuple[Simulation, Waiter]:
    simulation = Simulation()
    return simulation, Waiter(simulation, POLICY, HookDispatcher([]))


async def _wait(
    simulation: Simulation, waiter: Waiter, at: float, durations: Sequence[float]
) -> None:
    await asyncio.sleep(at)
    await waiter.wait(
        [simulation.start(seconds) for seconds in durations],
        timeout=None,
        fail_fast=False,
        on_update=simulation.on_update,
        raise_on_failure=True,
    )


def on_fake_clock(main: Callable[[], Coroutine[None, None, T]]) -> T:
    """Run ``main`` on a clock that jumps to the next timer."""
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        return runner.run(main())


def _now() -> float:
    return asyncio.get_running_loop().time()
