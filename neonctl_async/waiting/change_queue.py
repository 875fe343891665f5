"""What one wait has yet to see."""

import asyncio
import copy
from collections import OrderedDict

from neonctl_async.errors import NeonError
from neonctl_async.models.operations import OperationRef
from neonctl_async.waiting.status import Change


class ChangeQueue:
    """Takes changes from pollers and hands them to one wait, in the order of their arrival.

    A change not yet taken is replaced by the next change of the same operation, so a slow wait
    holds up no poller and the mailbox never holds more than one record an operation.
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        """On the loop's clock, in seconds."""
        self.last_error: NeonError | None = None
        """The newest failure of a poll that did not end the wait."""
        # In a plain dict, each first item is looked for past all that were taken before it.
        self._changes: OrderedDict[OperationRef, Change] = OrderedDict()
        self._failure: Exception | None = None
        self._arrived = asyncio.Event()

    def deliver(self, change: Change) -> None:
        """Put a change in."""
        self._changes[change.ref] = change
        self._changes.move_to_end(change.ref)  # the newest change comes last
        self._arrived.set()

    def fail(self, error: Exception) -> None:
        """End the wait with ``error``, after the changes that came before it."""
        self._failure = self._failure or error
        self._arrived.set()

    def take(self) -> Change | None:
        """The oldest change, None if there is none. Raises what :meth:`fail` was given."""
        if self._changes:
            return self._changes.popitem(last=False)[1]
        if isinstance(self._failure, NeonError):
            # Several waits may end with the same failure; each raises an exception of its own.
            raise copy.copy(self._failure) from self._failure.__cause__
        if self._failure is not None:
            raise self._failure
        self._arrived.clear()
        return None

    async def arrival(self) -> None:
        """Wait until there is something to take."""
        await self._arrived.wait()
