"""An event loop in a background thread, which outlives the event loops of the tests."""

import asyncio
from collections.abc import Coroutine, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    contextmanager,
    suppress,
)
from typing import Final, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal

from neonctl_async import TransportError
from neonctl_async.testing import real_time

T = TypeVar("T")

LOST: Final = (
    "the local control plane of this test run has exited: it was killed, or its output on stderr"
    " has the reason. Run the tests again"
)
_NOTICE_SECONDS: Final = 2.0
_ATTEMPTS: Final = 3
_PAUSE_SECONDS: Final = 0.1


class ServerLostError(RuntimeError):
    """The server of a background loop has exited. Every call on the loop raises this error."""


class BackgroundLoop:
    """Runs coroutines on an event loop that no test can stop.

    The thread and its loop belong to an anyio ``BlockingPortal``. Even a portal's
    ``start_task_soon`` blocks its caller, so test coroutines use :meth:`run` instead.
    """

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal = portal
        self._loop = portal.call(asyncio.get_running_loop)
        self._lost = portal.call(asyncio.Event)

    async def run(self, coroutine: Coroutine[None, None, T]) -> T:
        """Await ``coroutine`` from another event loop. Cancelling this call cancels it."""
        with real_time():
            return await asyncio.wrap_future(
                asyncio.run_coroutine_threadsafe(self._unless_lost(coroutine), self._loop)
            )

    def call(self, coroutine: Coroutine[None, None, T]) -> T:
        """Run ``coroutine``, and block until it has finished."""
        return asyncio.run_coroutine_threadsafe(self._unless_lost(coroutine), self._loop).result()

    async def watch(self, host: str, port: int) -> None:
        """Make all calls raise ServerLostError once the server at an address has exited.

        However a server exits, the system closes its connections. Await this on the loop.
        """
        failures = 0
        while failures < _ATTEMPTS:
            try:
                reader, writer = await asyncio.open_connection(host, port)
            except OSError:
                failures += 1
            else:
                failures = 0
                try:
                    with suppress(OSError):
                        await reader.read()  # the server closes idle connections too
                finally:
                    writer.close()
                    with suppress(OSError):
                        await writer.wait_closed()
            await asyncio.sleep(_PAUSE_SECONDS)
        self._lost.set()

    async def _unless_lost(self, coroutine: Coroutine[None, None, T]) -> T:
        """Await ``coroutine``, but only until the server exits: a client would keep retrying."""
        working = asyncio.ensure_future(coroutine)
        lost = asyncio.ensure_future(self._lost.wait())
        try:
            await asyncio.wait({working, lost}, return_when=asyncio.FIRST_COMPLETED)
            if working.done() and isinstance(working.exception(), TransportError):
                await asyncio.wait({lost}, timeout=_NOTICE_SECONDS)
            if lost.done():
                working.cancel()  # a shielded part of it continues until its client is closed
                raise ServerLostError(LOST)
            return await working
        except asyncio.CancelledError:
            working.cancel()
            return await working
        finally:
            lost.cancel()

    def enter(self, manager: AbstractAsyncContextManager[T]) -> AbstractContextManager[T]:
        """Return a blocking context manager that enters and exits ``manager`` on this loop."""
        return self._portal.wrap_async_context_manager(manager)


@contextmanager
def run_background_loop() -> Generator[BackgroundLoop, None, None]:
    """Start the thread. On exit, cancel the remaining tasks and stop the thread."""
    with start_blocking_portal() as portal:
        yield BackgroundLoop(portal)
