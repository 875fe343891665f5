"""What a mutation does that running operations of its project lock out (423)."""

import asyncio
from weakref import WeakValueDictionary

from neonctl_async.clock import utc_now
from neonctl_async.errors import NeonError
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.status import Outcome, outcome
from neonctl_async.waiting.waiter import Waiter

NEWEST = 100
"""How many of a project's newest operations are looked through for those that run."""


class ProjectLock:
    """The lock of one project, as a client sees it from outside.

    Whoever was locked out takes the ``retry_slot``, so that many who wait for the same project try
    again one after another.
    """

    def __init__(self, project_id: str, source: OperationSource, waiter: Waiter) -> None:
        self.retry_slot: asyncio.Lock = asyncio.Lock()
        self._project_id = project_id
        self._source = source
        self._waiter = waiter

    async def settle(self) -> bool:
        """Wait until the operations that run now have ended.

        False if none shows: what holds the lock need not be an operation.
        """
        now = utc_now()
        try:
            page = await self._source.newest(self._project_id, NEWEST)
            running = [one for one in page.operations if outcome(one, now) is Outcome.PENDING]
            if not running:
                return False
            await self._waiter.settle(running)
        except NeonError:
            return False  # the mutation itself will tell, if this failure lasts
        return True


class ProjectLocks:
    """The locks of the projects that somebody is locked out of."""

    def __init__(self, source: OperationSource, waiter: Waiter) -> None:
        self._source = source
        self._waiter = waiter
        self._locks: WeakValueDictionary[str, ProjectLock] = WeakValueDictionary()

    def of(self, project_id: str) -> ProjectLock:
        """The lock of a project, the same for all who ask while anyone holds on to it."""
        lock = self._locks.get(project_id)
        if lock is None:
            lock = self._locks[project_id] = ProjectLock(project_id, self._source, self._waiter)
        return lock
