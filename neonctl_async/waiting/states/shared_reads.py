"""Requests that waits share: one at a time for each object, and every wait gets every result."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import anyio
import msgspec

from neonctl_async.clock import loop_time
from neonctl_async.errors import ClientClosedError

T = TypeVar("T")

_CANCELLED = "the task that reads a state was cancelled"


class Reading(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """The result of a request: its value or its error. Times are on the loop's clock."""

    number: int
    """The position of the request among those for the same object, from 1."""
    value: T | None
    error: Exception | None
    finished_at: float
    seconds: float


class SharedRead(Generic[T]):
    """A request that any number of waits repeat."""

    def __init__(self, fetch: Callable[[], Awaitable[T]]) -> None:
        self.users = 0
        """The number of waits that may need a result."""
        self._fetch = fetch
        self._started = 0
        self._newest: Reading[T] | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failure: ClientClosedError | None = None

    @property
    def newest(self) -> Reading[T] | None:
        """The newest result, None before the first one."""
        return self._newest

    async def fresh(self) -> Reading[T]:
        """Return the result of a request that starts after this call."""
        return await self._newer_than(self._started, starts=True)

    async def next(self, number: int) -> Reading[T]:
        """Return the first result after ``number``. Start a request if none is in progress."""
        return await self._newer_than(number, starts=True)

    async def arrival(self, number: int) -> Reading[T]:
        """Wait until another wait has started a request after ``number``, and return its result."""
        return await self._newer_than(number, starts=False)

    def stop(self, reason: ClientClosedError | None = None) -> asyncio.Task[None] | None:
        """Cancel the request. With a ``reason``, waits raise it.

        Return the task if it is still running.
        """
        task = self._task
        if task is not None:
            task.cancel()
        self._failure = reason
        self._notify()
        return task

    async def _newer_than(self, number: int, *, starts: bool) -> Reading[T]:
        while True:
            if self._failure is not None:
                raise ClientClosedError(str(self._failure))
            if self._newest is not None and self._newest.number > number:
                return self._newest
            if starts and self._task is None:
                self._task = asyncio.create_task(self._run(), name="read a state")
                self._task.add_done_callback(self._end_unstarted)
            await self._changed.wait()

    async def _run(self) -> None:
        value: T | None = None
        error: Exception | None = None
        started = loop_time()
        try:
            # The request covers all waits that were resumed together, even if tasks start at once.
            await asyncio.sleep(0)
            self._started += 1
            started = loop_time()
            value = await self._fetch()
        except asyncio.CancelledError:
            error = ClientClosedError(_CANCELLED)
            raise
        except Exception as failure:  # noqa: BLE001 - no wait may hang, whatever the error
            error = failure
        finally:
            self._end(value, error, started)

    def _end_unstarted(self, task: asyncio.Task[None]) -> None:
        """End a task that was cancelled before it started. No wait may hang because of that."""
        if self._task is task:
            self._started += 1
            self._end(None, ClientClosedError(_CANCELLED), loop_time())

    def _end(self, value: T | None, error: Exception | None, started: float) -> None:
        now = loop_time()
        self._task = None
        self._newest = Reading(
            number=self._started,
            value=value,
            error=error,
            finished_at=now,
            seconds=now - started,
        )
        self._notify()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class SharedReads:
    """The shared requests of a client, by the object that they read.

    ``purpose`` names the calls that need them, for the error if the client is closed.
    """

    def __init__(self, purpose: str = "a wait for a state") -> None:
        self._purpose = purpose
        self._reads: dict[Hashable, SharedRead[Any]] = {}
        self._is_closed = False

    @asynccontextmanager
    async def use(
        self, key: Hashable, fetch: Callable[[], Awaitable[T]]
    ) -> AsyncGenerator[SharedRead[T]]:
        """Return the shared request for ``key``. ``fetch`` sends it.

        The last user cancels a request in progress on exit. Raises ClientClosedError if the
        client is closed.
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

    def __len__(self) -> int:
        return len(self._reads)

    async def aclose(self) -> None:
        """Cancel all requests. Pending waits raise ClientClosedError."""
        self._is_closed = True
        reads = list(self._reads.values())
        self._reads.clear()
        reason = ClientClosedError(f"the client was closed during {self._purpose}")
        await _finish([shared.stop(reason) for shared in reads])


async def _finish(tasks: list[asyncio.Task[None] | None]) -> None:
    running = [task for task in tasks if task is not None]
    if running:
        # Shielded, so that a cancelled wait leaves no task behind. The tasks finish at once.
        with anyio.CancelScope(shield=True):
            await asyncio.wait(running)
