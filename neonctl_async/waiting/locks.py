"""Waiting for a locked project: a mutation gets a 423 while operations are running."""

import asyncio
from weakref import WeakValueDictionary

from neonctl_async.errors import NeonError
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.status import Outcome, outcome
from neonctl_async.waiting.waiter import Waiter

NEWEST_OPERATIONS = 100
"""Number of a project's newest operations that are searched for running ones."""


class ProjectLock:
    """The lock of one project, as seen by the client.

    A locked-out call holds ``retry_slot`` while it retries, so that calls for the same project
    retry one after another.
    """

    def __init__(self, project_id: str, source: OperationSource, waiter: Waiter) -> None:
        self.retry_slot: asyncio.Lock = asyncio.Lock()
        self._project_id = project_id
        self._source = source
        self._waiter = waiter

    async def settle(self) -> bool:
        """Wait until the project's running operations have reached a terminal state.

        Return False if no operation is running or reading them fails: then the lock may have
        another cause.
        """
        now = self._waiter.server_now()
        try:
            page = await self._source.newest(self._project_id, NEWEST_OPERATIONS)
            running = [
                operation
                for operation in page.operations
                if outcome(operation, now) is Outcome.PENDING
            ]
            if not running:
                return False
            await self._waiter.settle(running)
        except NeonError:
            return False  # a failure that lasts is raised by the mutation itself
        return True


class ProjectLocks:
    """The locks of all projects in which a call got a 423."""

    def __init__(self, source: OperationSource, waiter: Waiter) -> None:
        self._source = source
        self._waiter = waiter
        self._locks: WeakValueDictionary[str, ProjectLock] = WeakValueDictionary()

    def of(self, project_id: str) -> ProjectLock:
        """Return the lock of a project: the same object while any call holds a reference to it."""
        lock = self._locks.get(project_id)
        if lock is None:
            lock = self._locks[project_id] = ProjectLock(project_id, self._source, self._waiter)
        return lock
