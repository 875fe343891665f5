"""Waits on operations whose ends are known, and what is asked meanwhile. No network, no chance."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple, TypeVar

from msgspec import UNSET, UnsetType

from neonctl_async import Operation, OperationRef, OperationStatus, PollPolicy
from neonctl_async.clock import utc_now
from neonctl_async.models.operations import OperationsPage
from neonctl_async.testing import FakeClockLoop
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.types import OperationAction
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.waiter import Waiter

T = TypeVar("T")

PROJECT = "late-frost-12345678"
POLICY = PollPolicy(jitter=0.0)


class Seen(NamedTuple):
    """An operation: when it began and ended, and when a wait was told."""

    began: float
    ended: float
    told: float


class Look(NamedTuple):
    """A request: when it was sent, and for how many operations."""

    at: float
    pending: int


class Platform(OperationSource):
    """Starts operations, ends them on time, and answers at once."""

    def __init__(self) -> None:
        self._spans: dict[str, tuple[float, float]] = {}
        self._told: dict[str, float] = {}
        self._looks: list[float] = []

    def start(self, seconds: float) -> Operation:
        """An operation that takes so long."""
        name = f"op-{len(self._spans)}"
        self._spans[name] = (_now(), _now() + seconds)
        return self._record(name)

    def tell(self, operation: Operation) -> None:
        """A wait has seen this of an operation."""
        if operation.status is OperationStatus.FINISHED:
            self._told[operation.id] = _now()

    async def acquire_poll_slot(self) -> None:
        """No budget holds anything up here."""

    async def get(self, ref: OperationRef) -> Operation:
        """One operation."""
        self._looks.append(_now())
        return self._record(ref.id)

    async def newest(
        self, project_id: str, limit: int, cursor: str | UnsetType = UNSET
    ) -> OperationsPage:
        """The newest operations, which here are few enough for one page."""
        assert (project_id, cursor) == (PROJECT, UNSET)
        self._looks.append(_now())
        newest_first = list(reversed(self._spans))[:limit]
        return OperationsPage(operations=[self._record(name) for name in newest_first])

    def seen(self) -> list[Seen]:
        """All operations, in the order of their begin."""
        return [Seen(*span, self._told[name]) for name, span in self._spans.items()]

    def looks(self) -> list[Look]:
        """All requests, and how many operations were awaited at each."""
        seen = self.seen()
        return [Look(at, sum(one.began < at <= one.told for one in seen)) for at in self._looks]

    def _record(self, name: str) -> Operation:
        began, ends = self._spans[name]
        until = min(_now(), ends)
        origin = utc_now() - timedelta(seconds=_now())
        return Operation(
            id=name,
            project_id=PROJECT,
            action=OperationAction.CREATE_BRANCH,
            status=OperationStatus.FINISHED if _now() >= ends else OperationStatus.RUNNING,
            created_at=origin + timedelta(seconds=began),
            updated_at=origin + timedelta(seconds=until),
            total_duration_ms=round(1000 * (until - began)),
        )


async def alone(durations: Sequence[float]) -> Platform:
    """Wait for operations of these durations, one after another."""
    platform = Platform()
    waiter = Waiter(platform, POLICY, HookDispatcher([]))
    for seconds in durations:
        await _wait(waiter, platform, [seconds])
    return platform


async def together(waits: Mapping[float, Sequence[float]]) -> Platform:
    """Begin waits at these moments, each for operations of its durations."""
    platform = Platform()
    waiter = Waiter(platform, POLICY, HookDispatcher([]))

    async def begin(at: float, durations: Sequence[float]) -> None:
        await asyncio.sleep(at)
        await _wait(waiter, platform, durations)

    await asyncio.gather(*(begin(at, durations) for at, durations in waits.items()))
    return platform


async def _wait(waiter: Waiter, platform: Platform, durations: Sequence[float]) -> None:
    await waiter.wait(
        [platform.start(seconds) for seconds in durations],
        timeout=None,
        fail_fast=False,
        on_update=platform.tell,
        raise_on_failure=True,
    )


def on_fake_clock(main: Callable[[], Coroutine[None, None, T]]) -> T:
    """What ``main`` returns, run on a clock that jumps."""
    with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
        return runner.run(main())


def _now() -> float:
    return asyncio.get_running_loop().time()
