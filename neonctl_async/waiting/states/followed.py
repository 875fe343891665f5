"""The pending operations that a wait for a state follows."""

from collections.abc import Iterable

from neonctl_async.errors import ClientClosedError, NeonError
from neonctl_async.models.operations import Operation, OperationRef
from neonctl_async.waiting.change_queue import ChangeQueue
from neonctl_async.waiting.registry import PollerRegistry
from neonctl_async.waiting.status import Outcome
from neonctl_async.waiting.tracked import TrackedOperation


class FollowedOperations:
    """Follows operations on the shared pollers of the client."""

    def __init__(self, pollers: PollerRegistry) -> None:
        self._pending: dict[OperationRef, TrackedOperation] = {}
        self.settled: dict[OperationRef, Operation] = {}
        self.unsuccessful: int = 0
        """The number of operations that finished without success."""
        self.last_error: NeonError | None = None
        """The newest failure of a poll of the operations."""
        self._pollers = pollers
        self._queue: ChangeQueue | None = None

    def follow(self, operations: Iterable[Operation], deadline: float) -> None:
        """Follow operations that are not followed yet, with a last poll before ``deadline``."""
        queue = self._queue = self._queue or ChangeQueue(deadline, reports_each=True)
        queue.deadline = deadline
        for operation in operations:
            if operation.ref not in self._pending:
                tracked = self._pollers.add(operation.ref, operation, queue)
                self._pending[operation.ref] = tracked

    @property
    def pending(self) -> list[Operation]:
        """The newest records of the operations that are followed."""
        return [one.record for one in self._pending.values() if one.record is not None]

    async def wait_until_one_finishes(self) -> bool:
        """Wait until an operation finishes, and record all that have finished by then.

        Return False if polling fails permanently; no operation is followed any more then. Raises
        ClientClosedError if the client is closed.
        """
        queue = self._queue
        finished = False
        try:
            while queue is not None and self._pending:
                changed = queue.take()
                self.last_error = queue.last_error or self.last_error
                if changed is None and finished:
                    return True
                if changed is None:
                    await queue.wait_until_ready()
                elif changed.outcome is not Outcome.PENDING and changed.record is not None:
                    finished = True
                    self.settled[changed.ref] = changed.record
                    self.unsuccessful += changed.outcome is Outcome.UNSUCCESSFUL
                    self._pending.pop(changed.ref, None)
        except NeonError as error:
            if isinstance(error, ClientClosedError):
                raise
            self.last_error = error
            await self.release()
        return finished

    async def release(self) -> None:
        """Stop following all operations."""
        queue, self._queue = self._queue, None
        pending = list(self._pending)
        self._pending.clear()
        if queue is not None:
            await self._pollers.release(pending, queue)
