"""Locks of clusters, and blocking calls that a cancellation does not abandon."""

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, TypeVar

T = TypeVar("T")

logger: Final = logging.getLogger("neonctl_local")


async def in_thread(
    function: Callable[..., T], *args: object, executor: Executor | None = None
) -> T:
    """Run a blocking function in a thread. If cancelled, wait until the function has returned.

    ``asyncio.to_thread`` abandons the thread when the caller is cancelled, and files or processes
    that the thread creates would be left behind.
    """
    loop = asyncio.get_running_loop()
    task = loop.run_in_executor(executor, partial(function, *args))
    if cancelled := await wait_for_end(task):
        raise cancelled
    return task.result()


async def complete(work: Coroutine[None, None, T]) -> T:
    """Finish work that must not stop halfway. A cancellation is raised after it has finished."""
    task = asyncio.ensure_future(work)
    if cancelled := await wait_for_end(task):
        raise cancelled
    return task.result()


async def wait_for_end(task: asyncio.Future[T]) -> asyncio.CancelledError | None:
    """Wait until a task that must not be cancelled has ended, and ignore its error.

    Return the cancellation of the caller, if there was one during the wait.
    """
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if not task.cancelled():
        task.exception()  # marks the exception as retrieved
    return cancelled


class ClusterLock:
    """A lock that many readers share, or one writer holds alone. Waiters are served in order."""

    def __init__(self) -> None:
        self._readers = 0
        self._writing = False
        self._waiting: deque[tuple[bool, asyncio.Future[None]]] = deque()

    @property
    def free(self) -> bool:
        """True if nobody holds the lock or waits for it."""
        return not (self._readers or self._writing or self._waiting)

    @asynccontextmanager
    async def shared(self) -> AsyncGenerator[None]:
        """Hold the lock together with other readers."""
        await self._acquire(writing=False)
        try:
            yield
        finally:
            self._readers -= 1
            self._wake()

    @asynccontextmanager
    async def exclusive(self) -> AsyncGenerator[None]:
        """Hold the lock alone."""
        await self._acquire(writing=True)
        try:
            yield
        finally:
            self._writing = False
            self._wake()

    async def _acquire(self, *, writing: bool) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append((writing, waiter))
        self._wake()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.cancelled():
                self._waiting = deque(each for each in self._waiting if each[1] is not waiter)
            elif writing:
                self._writing = False
            else:
                self._readers -= 1
            self._wake()
            raise

    def _wake(self) -> None:
        """Give the lock to the waiters at the head of the queue that may have it now."""
        while self._waiting and not self._writing:
            writing, waiter = self._waiting[0]
            if writing and self._readers:
                return
            self._waiting.popleft()
            if waiter.done():
                continue
            self._writing, self._readers = writing, self._readers + (not writing)
            waiter.set_result(None)


class Background:
    """Tasks that nobody waits for. Their errors are logged, and ``stop`` cancels them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Start a task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    async def stop(self) -> None:
        """Cancel all tasks, and wait until they have ended."""
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.warning("work in the background failed: %s", error, exc_info=error)
