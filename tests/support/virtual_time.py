"""An event loop on which time passes only when nothing else is left to do."""

import asyncio
import math
import selectors


class JumpingSelector(selectors.DefaultSelector):
    """Instead of sleeping until the next timer, moves the clock there.

    ``grace`` is in real seconds: so long a socket may take to become ready before time jumps.
    """

    def __init__(self, grace: float) -> None:
        super().__init__()
        self._grace = grace
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(self._grace)
        if not ready:
            # Rounded up: a timer must find that its time has come, not a hair before it.
            self.now = math.nextafter(self.now + timeout, math.inf)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Sleeps, timeouts and timers take no real time; ``loop.time()`` begins at 0.

    Sockets of this process answer within the default grace; where there are none, 0 will do.
    """

    def __init__(self, grace: float = 0.002) -> None:
        self._jumping = JumpingSelector(grace)
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Wait for its threads as long as it takes: they know nothing of this loop's time."""
        del timeout
        await super().shutdown_default_executor()


def now() -> float:
    """The time on the clock of the running loop, in seconds."""
    return asyncio.get_running_loop().time()
