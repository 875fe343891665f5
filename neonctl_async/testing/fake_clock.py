"""An event loop with a fake clock, which jumps to the next timer when the loop is idle."""

import asyncio
import math
import selectors
import time
from collections.abc import Callable, Generator
from concurrent.futures import Executor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TypeVar, TypeVarTuple

from neonctl_async.hooks import Hooks

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that moves its clock to the next timer instead of sleeping."""

    def __init__(self, grace: float) -> None:
        super().__init__()
        self._grace = grace
        self.now = 0.0
        self.real_time_users = 0
        """The number of callers that currently need the clock to run in real time."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        has_sockets = len(self.get_map()) > 1  # beside the socket that wakes the loop
        grace = self._grace if has_sockets else 0
        started_at = time.monotonic()
        ready = super().select(timeout if self.real_time_users or timeout is None else grace)
        if timeout is not None and not ready:
            # Rounded up, because the loop runs a timer only once its time has passed.
            self.now = math.nextafter(self.now + timeout, math.inf)
        elif self.real_time_users:
            self.now += time.monotonic() - started_at
        return ready


class FakeClockLoop(asyncio.SelectorEventLoop):
    """An event loop whose sleeps, timeouts and timers take no real time. ``time()`` starts at 0.

    When nothing else is left to do, the clock jumps to the next timer. If the loop has sockets, it
    first waits ``grace`` real seconds for them, which is enough for a server in the same loop.
    The clock runs in real time while a thread of ``run_in_executor`` or ``asyncio.to_thread``
    works, for example on a name lookup, and inside :func:`real_time`.
    """

    def __init__(self, grace: float = 0.002) -> None:
        self._jumping = _JumpingSelector(grace)
        self._created_at = datetime.now(UTC)
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the seconds that have passed on the fake clock."""
        return self._jumping.now

    def utc_now(self) -> datetime:
        """Return the time of day on the fake clock. It starts at the real time of day."""
        # Rounded down, so that the result is never later than the time of the loop.
        return self._created_at + timedelta(microseconds=math.floor(self.time() * 1e6))

    def start_real_time(self) -> None:
        """Run the clock in real time until :meth:`stop_real_time` undoes each such call."""
        self._jumping.real_time_users += 1

    def stop_real_time(self) -> None:
        """Undo one call of :meth:`start_real_time`."""
        self._jumping.real_time_users -= 1

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run a function in a thread, and the clock in real time until the future is done."""
        future = super().run_in_executor(executor, func, *args)
        self.start_real_time()
        future.add_done_callback(lambda _: self.stop_real_time())
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for the threads without a timeout, because they do not run on the fake clock."""
        del timeout
        await super().shutdown_default_executor()


@contextmanager
def real_time() -> Generator[None]:
    """Run the clock of the running loop in real time, for work outside this process.

    On any loop other than a :class:`FakeClockLoop`, this does nothing.
    """
    _start_real_time()
    try:
        yield
    finally:
        _stop_real_time()


def real_time_hooks() -> Hooks:
    """Return hooks for a client whose server is in another process or thread.

    With them, a :class:`FakeClockLoop` runs in real time during each request.
    """
    return Hooks(on_request=_start_real_time, on_response=_stop_real_time)


def loop_clock() -> Callable[[], datetime]:
    """Return a function that returns the time of day on the clock of the running loop.

    Use it for ``LocalControlPlane(clock=loop_clock())``: its operations and the loop's timeouts
    then use the same time.
    """
    loop = asyncio.get_running_loop()
    return loop.utc_now if isinstance(loop, FakeClockLoop) else lambda: datetime.now(UTC)


def _start_real_time(_event: object = None) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, FakeClockLoop):
        loop.start_real_time()


def _stop_real_time(_event: object = None) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, FakeClockLoop):
        loop.stop_real_time()
