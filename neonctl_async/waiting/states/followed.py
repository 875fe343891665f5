"""The pending operations that a wait for a state follows."""

from collections.abc import Iterable

from neonctl_async.errors import ClientClosedError, NeonError
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting.change_queue import ChangeQueue
from neonctl_async.waiting.registry import PollerRegistry
from neonctl_async.waiting.status import Outcome


class FollowedOperations:
    """Follows operations on the shared pollers of the client."""

    def __init__(self, pollers: PollerRegistry) -> None:
        self.pending: dict[OperationRef, Operation] = {}
        self.settled: dict[OperationRef, Operation] = {}
        self.unsuccessful: int = 0
        """The number of operations that finished without success."""
        self.last_error: NeonError | None = None
        """The newest failure of a poll of the operations."""
        self._pollers = pollers
        self._queue: ChangeQueue | None = None

    def follow(self, operations: Iterable[Operation], deadline: float) -> None:
        """Follow operations that are not followed yet. Poll them last before ``deadline``."""
        queue = self._queue = self._queue or ChangeQueue(deadline, reports_each=True)
        queue.deadline = deadline
        for operation in operations:
            if operation.ref not in self.pending:
                self.pending[operation.ref] = operation
                self._pollers.add(operation.ref, operation, queue)

    async def wait_until_one_finishes(self) -> bool:
        """Wait until an operation finishes, and record all that have finished by then.

        Return False if polling fails for a reason that lasts: then no operation is followed any
        more. Raises ClientClosedError if the client is closed.
        """
        queue = self._queue
        finished = False
        try:
            while queue is not None and self.pending:
                change = queue.take()
                self.last_error = queue.last_error or self.last_error
                if change is None and finished:
                    return True
                if change is None:
                    await queue.wait_until_ready()
                elif change.outcome is Outcome.PENDING:
                    self.pending[change.ref] = change.operation
                else:
                    finished = True
                    self.settled[change.ref] = change.operation
                    self.unsuccessful += change.outcome is Outcome.UNSUCCESSFUL
                    self.pending.pop(change.ref, None)
        except NeonError as error:
            if isinstance(error, ClientClosedError):
                raise
            self.last_error = error
            await self.release()
        return finished

    async def release(self) -> None:
        """Stop following all operations."""
        queue, self._queue = self._queue, None
        pending = list(self.pending)
        self.pending.clear()
        if queue is not None:
            await self._pollers.release(pending, queue)
