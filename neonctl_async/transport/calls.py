"""Running calls: their states, their timeouts and deadlines, and their interruption."""

import asyncio
import math
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final, Literal, Self, TypeAlias

import anyio

from neonctl_async.errors import ClientClosedError, ConfigurationError

LATE_SECONDS: Final = 0.05
"""A timer that is later than this shows that the event loop was blocked. On a busy machine, timers
are up to 5 ms late."""
GRACE_SECONDS: Final = 1.0
"""The time to read what arrived while the event loop was blocked. Reading takes milliseconds, but
all other tasks run first."""
LAST_TRY_SECONDS: Final = 10.0
"""The time by which a deadline is extended: enough for a request or a connection attempt."""

State: TypeAlias = Literal[
    "waiting",  # for a slot, or for the next attempt
    "sent",  # a request was or may have been sent; no response has arrived
    "receiving",  # a part of the response has arrived
    "timed out",
    "closed",  # by the client, while no request was in flight
    "closed in flight",
]

_CLOSED = "the client is closed: create a new NeonClient"


def running_loop() -> asyncio.AbstractEventLoop:
    """Return the running event loop. Raises ConfigurationError if there is none, as under trio."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigurationError(
            "no asyncio event loop is running: use the NeonClient in a coroutine that "
            "asyncio.run() or an asyncio framework runs (trio and curio are not supported)"
        ) from None


class Call:
    """One call, in the task that runs it. Use it as a context manager.

    A timeout or the closing of the client interrupts it by cancelling its task. A cancellation by
    other code is propagated.
    """

    __slots__ = (
        "_calls",
        "_cancelling",
        "_has_grace",
        "_interruptions",
        "_task",
        "_total_until",
        "expires_at",
        "is_connecting",
        "sent_at",
        "state",
        "timeout_message",
    )

    sent_at: float
    """The time at which the latest request was sent."""
    timeout_message: str
    """The timeout that interrupted the request, in words."""

    def __init__(self, calls: "Calls") -> None:
        task = asyncio.current_task(running_loop())
        assert task is not None
        self._task = task
        self._cancelling = task.cancelling()
        self._interruptions = 0
        self._calls = calls
        self.state: State = "waiting"
        self.expires_at: float = math.inf
        """The time at which the request in flight reaches its next timeout."""
        self.is_connecting: bool = False
        """True if the latest request has no connection yet, or failed before it had one."""

    def __enter__(self) -> Self:
        self._calls.check_open()
        self._calls.running.add(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._calls.running.discard(self)
        if not self._interruptions:
            return
        if not self._is_cancelled_by_others() and kind is asyncio.CancelledError:
            is_sent = self.state == "closed in flight" and not self.is_connecting
            raise ClientClosedError(_CLOSED, maybe_delivered=is_sent) from None

    def start_request(self, total: float) -> None:
        """Start the timeouts of a request that is about to be sent and may take ``total`` seconds.

        Raises ClientClosedError if the client has just been closed.
        """
        if self.state != "waiting":
            raise ClientClosedError(_CLOSED)
        calls = self._calls
        self.state = "sent"
        self.sent_at = now = calls.time()
        self._total_until = now + total
        self._has_grace = self.is_connecting = False
        self.expires_at = until = now + min(calls.read_timeout, total)
        if until < calls.check_at:
            calls.start_timer(until)

    def restart_read_timeout(self) -> None:
        """Restart the read timeout, because a part of the response has arrived."""
        if self.state == "sent":
            self.state = "receiving"
        self.expires_at = min(self._calls.time() + self._calls.read_timeout, self._total_until)

    def end_request(self) -> None:
        """Record that the request in flight has ended."""
        self.expires_at = math.inf
        if self.state not in {"closed", "closed in flight"}:
            self.state = "waiting"

    def is_timed_out(self) -> bool:
        """Return whether a timeout, and nothing else, has cancelled the task."""
        return self.state == "timed out" and not self._is_cancelled_by_others()

    def expire(self, now: float, *, is_late: bool) -> None:
        """Interrupt the request in flight, because it has reached a timeout.

        If the timer fired late, the response may have arrived while the event loop was blocked. In
        this case, allow ``GRACE_SECONDS`` to read it, but only once.
        """
        if is_late and not self._has_grace:
            self._has_grace = True
            self.expires_at = now + GRACE_SECONDS
            self._total_until = max(self._total_until, self.expires_at)
            return
        if self.is_connecting:
            message = f"no connection within {self.expires_at - self.sent_at:g} s"
        elif self.expires_at == self._total_until:
            message = f"no complete response within {self._total_until - self.sent_at:g} s"
        elif self.state == "receiving":
            message = f"the response stalled for {self._calls.read_timeout:g} s"
        else:
            message = f"no response within {self._calls.read_timeout:g} s"
        self.timeout_message = message
        self._interrupt("timed out")

    def close(self) -> None:
        """Make the call raise ClientClosedError."""
        self._interrupt("closed" if self.state == "waiting" else "closed in flight")

    def _interrupt(self, state: State) -> None:
        self.state = state
        self.expires_at = math.inf
        self._interruptions += 1
        self._task.cancel()

    def _is_cancelled_by_others(self) -> bool:
        """Undo our own cancellations. Return whether others have cancelled the task."""
        for _ in range(self._interruptions):
            self._task.uncancel()
        self._interruptions = 0
        return self._task.cancelling() > self._cancelling


class Calls:
    """The running calls of a client, and one timer for all their timeouts.

    A timer for each request would take 5 % of the time of a small request.
    """

    def __init__(self, read_timeout: float) -> None:
        self.read_timeout: float = read_timeout
        self.is_closed: bool = False
        self.running: set[Call] = set()
        self.check_at: float = math.inf
        """The time of the next check."""
        self._timer: asyncio.TimerHandle | None = None

    def time(self) -> float:
        """Return the time of the event loop."""
        return asyncio.get_running_loop().time()

    def start_timer(self, at: float) -> None:
        """Schedule the next check of the timeouts for ``at``, in place of any scheduled check."""
        self._stop_timer()
        self.check_at = at
        self._timer = asyncio.get_running_loop().call_at(at, self._check)

    def check_open(self) -> None:
        """Raise ClientClosedError if the client is closed."""
        if self.is_closed:
            raise ClientClosedError(_CLOSED)

    def close(self) -> None:
        """Make all running calls raise ClientClosedError, and refuse new calls."""
        self.is_closed = True
        self._stop_timer()
        while self.running:
            self.running.pop().close()

    def _check(self) -> None:
        now = self.time()
        is_late = now > self.check_at + LATE_SECONDS
        for call in list(self.running):
            if call.expires_at <= now:
                call.expire(now, is_late=is_late)
        self.check_at = math.inf
        next_at = min((call.expires_at for call in self.running), default=math.inf)
        if next_at < math.inf:
            self.start_timer(next_at)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class Deadline:
    """The deadline of a call, for all that it waits for.

    While the event loop is blocked, or the machine is asleep, what a call waits for can happen
    unseen. A deadline that passes meanwhile is therefore extended, once, to look again.
    """

    def __init__(self, timeout: float | None) -> None:
        self.timeout: Final = timeout
        """The timeout of the call, in seconds; None for no limit."""
        self.at: float = running_loop().time() + (math.inf if timeout is None else timeout)
        """The time of the deadline, on the event loop's clock."""
        self._extended = asyncio.Event()

    @property
    def is_extended(self) -> bool:
        """True if the deadline passed while the event loop was blocked."""
        return self._extended.is_set()

    @property
    def left(self) -> float | None:
        """The seconds until the deadline, at least 0; None for no limit."""
        return None if self.timeout is None else max(self.at - running_loop().time(), 0.0)

    def extend_if_missed(self) -> None:
        """Extend the deadline if it passed while the event loop was blocked.

        Call this where a timer would have fired unless the loop was blocked, for example after a
        wait with the same deadline.
        """
        now = running_loop().time()
        if self.timeout and not self.is_extended and now > self.at + LATE_SECONDS:
            self.at = now + LAST_TRY_SECONDS
            self._extended.set()

    async def sleep(self, seconds: float) -> None:
        """Sleep, but only until the deadline is extended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._extended.wait()

    @contextmanager
    def scope(self) -> Generator[anyio.CancelScope]:
        """Cancel the body at the deadline."""
        # Not a deadline of the scope: it would cancel the body before it can be extended.
        scope, loop = anyio.CancelScope(), running_loop()
        timer: asyncio.TimerHandle | None = None

        def set_timer() -> None:
            nonlocal timer
            if self.at <= loop.time():
                scope.cancel()
            elif self.at < math.inf:
                timer = loop.call_at(self.at, expire)

        def expire() -> None:
            self.extend_if_missed()
            set_timer()

        set_timer()
        try:
            with scope:
                yield scope
            if not scope.cancel_called:
                self.extend_if_missed()
        finally:
            if timer is not None:
                timer.cancel()
