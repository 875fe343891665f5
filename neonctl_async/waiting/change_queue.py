"""The queue of changes that one wait has not processed yet."""

import asyncio
import copy
from collections import OrderedDict

from neonctl_async.errors import NeonError
from neonctl_async.models.operations import OperationRef
from neonctl_async.waiting.status import Change


class ChangeQueue:
    """A queue of changes from pollers to one wait, in the order of arrival.

    A newer change replaces a queued change of the same operation. A slow wait therefore delays no
    poller, and the queue holds at most one record per operation.
    """

    def __init__(self, deadline: float, *, reports_each: bool = False) -> None:
        self.reports_each = reports_each
        """True if the caller sees each change, False if it only sees the end of the wait."""
        self.deadline = deadline
        """The deadline of the wait on the loop's clock, in seconds."""
        self.last_error: NeonError | None = None
        """The newest failure of a poll that did not end the wait."""
        # Not a dict: finding its first item takes longer with each item removed before it.
        self._changes: OrderedDict[OperationRef, Change] = OrderedDict()
        self._failure: Exception | None = None
        self._ready = asyncio.Event()

    def deliver(self, change: Change) -> None:
        """Add a change, in place of a queued change of the same operation."""
        self._changes[change.ref] = change
        self._changes.move_to_end(change.ref)
        self._ready.set()

    def fail(self, error: Exception) -> None:
        """End the wait with ``error`` after the queued changes. Later errors are ignored."""
        self._failure = self._failure or error
        self._ready.set()

    def take(self) -> Change | None:
        """Remove and return the oldest change, or return None if there is none.

        Raises the error passed to :meth:`fail` when no change is left.
        """
        if self._changes:
            return self._changes.popitem(last=False)[1]
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
