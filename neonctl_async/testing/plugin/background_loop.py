"""An event loop in a thread of its own, which no test can stop."""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

from anyio.from_thread import start_blocking_portal

from neonctl_async.testing.fake_clock import real_time

T = TypeVar("T")


class BackgroundLoop:
    """Where coroutines run that must outlive whoever asks for them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def run(self, coroutine: Coroutine[None, None, T]) -> T:
        """What a coroutine comes to, which is cancelled if this is. From any other event loop."""
        with real_time():
            return await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(coroutine, self._loop)
            )

    def call(self, coroutine: Coroutine[None, None, T]) -> T:
        """The same from where there is no event loop: it blocks."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    @contextmanager
    def entered(self, opened: AbstractAsyncContextManager[T]) -> Generator[T, None, None]:
        """What a context manager gives that is entered and left there. It holds no cancel scope."""
        given = self.call(_enter(opened))
        try:
            yield given
        finally:
            self.call(_leave(opened))


async def _enter(opened: AbstractAsyncContextManager[T]) -> T:
    return await opened.__aenter__()


async def _leave(opened: AbstractAsyncContextManager[object]) -> None:
    await opened.__aexit__(None, None, None)


@contextmanager
def run_background_loop() -> Generator[BackgroundLoop, None, None]:
    """A thread with an event loop, which is ended with what still runs on it."""
    with start_blocking_portal() as portal:
        yield BackgroundLoop(portal.call(asyncio.get_running_loop))
