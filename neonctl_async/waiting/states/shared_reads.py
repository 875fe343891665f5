"""Requests that callers share: one at a time for each object, whose result all callers get."""

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import anyio
import msgspec

from neonctl_async.clock import loop_time
from neonctl_async.errors import ClientClosedError

T = TypeVar("T")


class Reading(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The result of a request: its value or its error. Times are on the loop's clock."""

    number: int
    """The number of the request among all requests for the object, starting at 1."""
    value: T | None
    error: BaseException | None
    finished_at: float
    seconds: float


class SharedRead(Generic[T]):
    """A request that any number of callers share and repeat."""

    def __init__(self, fetch: Callable[[], Awaitable[T]]) -> None:
        self.users = 0
        """The number of callers that may need a result."""
        self.newest: Reading[T] | None = None
        """The latest result, or None before the first one."""
        self._fetch = fetch
        self._started = 0
        self._started_at = 0.0
        self._changed = asyncio.Event()
        self._task: asyncio.Task[T] | None = None
        self._failure: ClientClosedError | None = None

    async def fresh(self) -> Reading[T]:
        """Return the result of a request that starts after this call."""
        return await self.next(self._started)

    async def next(self, number: int, start_at: float = -math.inf) -> Reading[T]:
        """Wait for a result with a higher number than ``number``, and return it.

        At ``start_at``, start a request, unless another caller has started one.
        """
        while True:
            if self._failure is not None:
                raise ClientClosedError(str(self._failure))
            if self.newest is not None and self.newest.number > number:
                return self.newest
            if self._task is None and start_at <= loop_time():
                self._task = asyncio.create_task(self._run(), name="read a state")
                self._task.add_done_callback(self._end)
            with anyio.CancelScope(deadline=math.inf if self._task else start_at):
                await self._changed.wait()

    def stop(self, reason: ClientClosedError | None = None) -> asyncio.Task[T] | None:
        """Cancel the request. Pending calls raise ``reason`` if it is given.

        Return the task if it is still running.
        """
        task = self._task
        if task is not None:
            task.cancel()
        self._failure = reason
        self._notify()
        return task

    async def _run(self) -> T:
        # The request covers all callers resumed together, even with an eager task factory.
        await asyncio.sleep(0)
        self._started += 1
        self._started_at = loop_time()
        return await self._fetch()

    def _end(self, task: asyncio.Task[T]) -> None:
        """Deliver the result of a task, even if it was cancelled before it started."""
        now = loop_time()
        error = ClientClosedError("the task that reads a state was cancelled")
        failure = error if task.cancelled() else task.exception()
        number = 1 + (self.newest.number if self.newest else 0)
        self._started = number
        self._task = None
        self.newest = Reading(
            number=number,
            value=None if failure else task.result(),
            error=failure,
            finished_at=now,
            seconds=now - self._started_at,
        )
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class SharedReads:
    """The shared requests of a client, by the object that they read.

    ``purpose`` names the calls that need the requests, for the error when the client is closed.
    """

    def __init__(self, purpose: str = "a wait for a state") -> None:
        self._purpose = purpose
        self._reads: dict[Hashable, SharedRead[Any]] = {}
        self._is_closed = False

    @asynccontextmanager
    async def use(
        self, key: Hashable, fetch: Callable[[], Awaitable[T]]
    ) -> AsyncGenerator[SharedRead[T]]:
        """Yield the shared request for ``key``, which ``fetch`` sends.

        On exit, the last user cancels a request in progress. Raises ClientClosedError if the client
        is closed.
        """
        if self._is_closed:
            raise ClientClosedError("the client is closed: create a new NeonClient")
        shared: SharedRead[T] = self._reads.setdefault(key, SharedRead(fetch))
        shared.users += 1
        try:
            yield shared
        finally:
            shared.users -= 1
            if not shared.users and self._reads.get(key) is shared:
                del self._reads[key]
                await _finish([shared.stop()])

    async def aclose(self) -> None:
        """Cancel all requests. Pending callers raise ClientClosedError."""
        self._is_closed = True
        reads = list(self._reads.values())
        self._reads.clear()
        reason = ClientClosedError(f"the client was closed during {self._purpose}")
        await _finish([shared.stop(reason) for shared in reads])


async def _finish(tasks: list[asyncio.Task[Any] | None]) -> None:
    running = [task for task in tasks if task is not None]
    if running:
        # Shielded, so that a cancelled caller leaves no task behind. The tasks finish at once.
        with anyio.CancelScope(shield=True):
            await asyncio.wait(running)
