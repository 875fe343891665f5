"""An event loop in a thread of its own, which no test can stop."""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import TypeVar

from anyio.from_thread import start_blocking_portal

T = TypeVar("T")


class Elsewhere:
    """Where coroutines run that must outlive whoever asks for them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def run(self, coroutine: Coroutine[None, None, T]) -> T:
        """What a coroutine comes to, which is cancelled if this is. From any other event loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def call(self, coroutine: Coroutine[None, None, T]) -> T:
        """The same from where there is no event loop: it blocks."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()


@contextmanager
def run_elsewhere() -> Generator[Elsewhere, None, None]:
    """A thread with an event loop, which is ended with what still runs on it."""
    with start_blocking_portal() as portal:
        yield Elsewhere(portal.call(asyncio.get_running_loop))
