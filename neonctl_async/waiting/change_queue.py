"""The operations that have changed since a wait saw them."""

import asyncio
import copy
import math
from collections import OrderedDict
from collections.abc import Iterable

from neonctl_async.errors import NeonError
from neonctl_async.waiting.tracked import TrackedOperation


class ChangeQueue:
    """A queue of changed operations from pollers to one wait, in the order of their latest changes.

    An operation is queued at most once, because a wait sees only its newest record. A slow wait
    therefore delays no poller.
    """

    def __init__(
        self, deadline: float, *, reports_each: bool = False, has_time: bool = True
    ) -> None:
        self.has_time: bool = has_time
        """False if the timeout is 0, so that no poll can come before the deadline."""
        self.reports_each = reports_each
        """True if the caller sees each change, False if it only sees the end of the wait."""
        self.deadline: float = deadline
        """The deadline of the wait on the loop's clock, in seconds."""
        self.last_error: NeonError | None = None
        """The newest failure of a poll that did not end the wait."""
        # Not a dict: finding its first item takes longer with each item removed before it.
        self._changed: OrderedDict[TrackedOperation, None] = OrderedDict()
        self._unpolled: set[TrackedOperation] = set()
        """The operations that need a poll from ``_extended_at`` on before the wait may end."""
        self._extended_at = -math.inf
        self._failure: Exception | None = None
        self._ready = asyncio.Event()

    def deliver(self, operation: TrackedOperation) -> None:
        """Put a changed operation at the end of the queue."""
        self._changed[operation] = None
        self._changed.move_to_end(operation)
        self._ready.set()

    def fail(self, error: Exception) -> None:
        """End the wait with ``error`` after the queued changes. Later errors are ignored."""
        self._failure = self._failure or error
        self._ready.set()

    def extend(self, operations: Iterable[TrackedOperation], now: float, seconds: float) -> None:
        """Move the deadline, so that one more poll can show that these operations have finished."""
        self._unpolled = set(operations)
        self._extended_at = now
        self.deadline = now + seconds

    @property
    def is_extended(self) -> bool:
        """True if the deadline was moved."""
        return self._extended_at > -math.inf

    @property
    def is_over(self) -> bool:
        """True if the poll for which the deadline was moved is over."""
        return self.is_extended and not self._unpolled

    def note_poll(self, operation: TrackedOperation, started_at: float) -> None:
        """Record that a poll of an operation is over, successful or not."""
        if self._unpolled and started_at >= self._extended_at:
            self._unpolled.discard(operation)
            if not self._unpolled:
                self._ready.set()

    def take(self) -> TrackedOperation | None:
        """Remove and return the first changed operation, or return None if there is none.

        Raises the error passed to :meth:`fail` when no change is left.
        """
        if self._changed:
            return self._changed.popitem(last=False)[0]
        if isinstance(self._failure, NeonError):
            # The same failure may end many waits: each raises its own copy.
            raise copy.copy(self._failure) from self._failure.__cause__
        if self._failure is not None:
            raise self._failure
        self._ready.clear()
        return None

    async def wait_until_ready(self) -> None:
        """Wait until there is a change or an error to take."""
        await self._ready.wait()
