"""Waiting for a locked project: a mutation gets a 423 while operations are running."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final
from weakref import WeakValueDictionary

from neonctl_async.errors import NeonError
from neonctl_async.waiting.source import NEWEST_OPERATIONS, OperationSource
from neonctl_async.waiting.status import Outcome, outcome
from neonctl_async.waiting.waiter import Waiter

REPORT_SECONDS: Final = 60.0
"""The shortest time between two log lines about the lock of one project, in seconds."""

_logger = logging.getLogger(__name__)


class ProjectLock:
    """The lock of one project, as seen by the client.

    A locked-out call holds ``retry_slot`` while it retries, so that calls for the same project
    retry one after another.
    """

    def __init__(
        self,
        project_id: str,
        source: OperationSource,
        waiter: Waiter,
        report: Callable[[str], None],
    ) -> None:
        self.retry_slot: asyncio.Lock = asyncio.Lock()
        self._project_id = project_id
        self._source = source
        self._waiter = waiter
        self._report = report

    def report(self) -> None:
        """Log that the project is locked, unless that was logged a short time ago."""
        self._report(self._project_id)

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
        self._reported_at: dict[str, float] = {}

    def of(self, project_id: str) -> ProjectLock:
        """Return the lock of a project: the same object while any call holds a reference to it."""
        lock = self._locks.get(project_id)
        if lock is None:
            lock = ProjectLock(project_id, self._source, self._waiter, self._report)
            self._locks[project_id] = lock
        return lock

    def _report(self, project_id: str) -> None:
        now = asyncio.get_running_loop().time()
        if now < self._reported_at.get(project_id, -REPORT_SECONDS) + REPORT_SECONDS:
            return
        recent = {id: at for id, at in self._reported_at.items() if now < at + REPORT_SECONDS}
        self._reported_at = {**recent, project_id: now}
        _logger.info(
            "project %s is locked (423): rejected calls wait for its running operations, and are "
            "sent again one at a time",
            project_id,
        )
