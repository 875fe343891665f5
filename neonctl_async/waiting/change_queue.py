"""The operations that have changed since a wait saw them."""

import asyncio
import copy
from collections import OrderedDict

from neonctl_async.errors import NeonError
from neonctl_async.waiting.tracked import TrackedOperation


class ChangeQueue:
    """A queue of changed operations from pollers to one wait, in the order of their latest changes.

    An operation is queued at most once, because a wait sees only its newest record. A slow wait
    therefore delays no poller.
    """

    def __init__(self, deadline: float, *, reports_each: bool = False) -> None:
        self.reports_each = reports_each
        """True if the caller sees each change, False if it only sees the end of the wait."""
        self.deadline = deadline
        """The deadline of the wait on the loop's clock, in seconds."""
        self.last_error: NeonError | None = None
        """The newest failure of a poll that did not end the wait."""
        # Not a dict: finding its first item takes longer with each item removed before it.
        self._changed: OrderedDict[TrackedOperation, None] = OrderedDict()
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
