"""An event loop on which time passes only when nothing else is left to do."""

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
    """Instead of sleeping until the next timer, moves the clock there."""

    def __init__(self, grace: float) -> None:
        super().__init__()
        self._grace = grace
        self.now = 0.0
        self.real = 0
        """How many have asked for time to go as it really does."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        has_sockets = len(self.get_map()) > 1  # beside the one that wakes the loop up
        grace = self._grace if has_sockets else 0
        began = time.monotonic()
        ready = super().select(timeout if self.real or timeout is None else grace)
        if timeout is not None and not ready:
            # Rounded up: a timer must find that its time has come, not a hair before it.
            self.now = math.nextafter(self.now + timeout, math.inf)
        elif self.real:
            self.now += time.monotonic() - began
        return ready


class FakeClockLoop(asyncio.SelectorEventLoop):
    """A loop whose sleeps, timeouts and timers take no real time; ``time()`` begins at 0.

    Once nothing is left to do, the clock jumps to the next timer. Where there are sockets, they
    get ``grace`` real seconds before that, which is enough for a server of this process. While a
    thread works that ``run_in_executor`` or ``asyncio.to_thread`` started, a name lookup for one,
    time goes as it really does; so it does within :func:`real_time`.
    """

    def __init__(self, grace: float = 0.002) -> None:
        self._jumping = _JumpingSelector(grace)
        self._began = datetime.now(UTC)
        super().__init__(self._jumping)

    def time(self) -> float:
        """The seconds that have passed on the fake clock."""
        return self._jumping.now

    def utc_now(self) -> datetime:
        """The time of day on the fake clock, which was right when the loop was made."""
        return self._began + timedelta(seconds=self.time())

    def begin_real_time(self) -> None:
        """Have time go as it really does, until :meth:`end_real_time` is called as often."""
        self._jumping.real += 1

    def end_real_time(self) -> None:
        """Undo one :meth:`begin_real_time`."""
        self._jumping.real -= 1

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """As any loop does; time goes as it really does until the thread is through."""
        future = super().run_in_executor(executor, func, *args)
        self.begin_real_time()
        future.add_done_callback(lambda _: self.end_real_time())
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for its threads as long as it takes: they know nothing of this loop's time."""
        del timeout
        await super().shutdown_default_executor()


@contextmanager
def real_time() -> Generator[None]:
    """Have the running loop's clock go as a real one does, for what is outside its process.

    On any other loop than a :class:`FakeClockLoop` it does nothing.
    """
    _begin_real_time()
    try:
        yield
    finally:
        _end_real_time()


def real_time_hooks() -> Hooks:
    """Hooks for a client whose server is another process or thread: answers take real time."""
    return Hooks(on_request=_begin_real_time, on_response=_end_real_time)


def loop_clock() -> Callable[[], datetime]:
    """Tells the time of day on the clock of the running loop, fake or not.

    For a ``LocalControlPlane(clock=loop_clock())``, whose operations then end in step with it.
    """
    loop = asyncio.get_running_loop()
    return loop.utc_now if isinstance(loop, FakeClockLoop) else lambda: datetime.now(UTC)


def _begin_real_time(_event: object = None) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, FakeClockLoop):
        loop.begin_real_time()


def _end_real_time(_event: object = None) -> None:
    loop = asyncio.get_running_loop()
    if isinstance(loop, FakeClockLoop):
        loop.end_real_time()
