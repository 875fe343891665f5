"""An event loop in a background thread, which outlives the event loops of the tests."""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from neonctl_async.testing.fake_clock import real_time

T = TypeVar("T")


class BackgroundLoop:
    """Runs coroutines on an event loop that no test can stop.

    The thread and its loop belong to a ``BlockingPortal`` of anyio. Even ``start_task_soon`` of a
    portal blocks its caller, so coroutines of tests use :meth:`run` instead.
    """

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal
        self._loop = portal.call(asyncio.get_running_loop)

    async def run(self, coroutine: Coroutine[None, None, T]) -> T:
        """Await ``coroutine`` from another event loop. A cancellation is passed on to it."""
        with real_time():
            return await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(coroutine, self._loop)
            )

    def call(self, coroutine: Coroutine[None, None, T]) -> T:
        """Run ``coroutine``, and block until it has finished."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def enter(self, manager: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """Return a blocking context manager that enters and exits ``manager`` on this loop."""
        return self._portal.wrap_async_context_manager(manager)


@contextmanager
def run_background_loop() -> Generator[BackgroundLoop, None, None]:
    """Start the thread. On exit, cancel the remaining tasks and stop it."""
    with start_blocking_portal() as portal:
        yield BackgroundLoop(portal)
