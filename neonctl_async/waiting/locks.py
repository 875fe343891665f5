"""Waiting for a locked project: a mutation gets a 423 while operations are running."""

import logging
from functools import partial
from typing import Final
from weakref import WeakValueDictionary

from neonctl_async.clock import loop_time
from neonctl_async.errors import NeonError
from neonctl_async.transport.retry import ProjectLock
from neonctl_async.waiting.source import NEWEST_OPERATIONS, OperationSource
from neonctl_async.waiting.tracked import Outcome, outcome
from neonctl_async.waiting.waiter import Waiter

REPORT_SECONDS: Final = 60.0
"""The shortest time between two log lines about one project's lock, in seconds."""

_logger = logging.getLogger(__name__)


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
            lock = ProjectLock(
                partial(self._wait_for_running, project_id), partial(self._report, project_id)
            )
            self._locks[project_id] = lock
        return lock

    async def _wait_for_running(self, project_id: str) -> int | None:
        """Wait until the project's running operations have reached a terminal state.

        Return their number, or None if reading them fails.
        """
        now = self._waiter.server_now()
        try:
            page = await self._source.newest(project_id, NEWEST_OPERATIONS)
            running = [one for one in page.operations if outcome(one, now) is Outcome.PENDING]
            ids = {one.id for one in running}
            others = [one for one in page.operations if one.id not in ids]
            self._waiter.pollers.note_history(project_id, others)
            if running:
                await self._waiter.wait_for_end(running)
        except NeonError:
            return None  # a failure that lasts is raised by the mutation itself
        return len(running)

    def _report(self, project_id: str) -> None:
        """Log that a project is locked, unless that was logged recently."""
        now = loop_time()
        if now < self._reported_at.get(project_id, -REPORT_SECONDS) + REPORT_SECONDS:
            return
        recent = {id: at for id, at in self._reported_at.items() if now < at + REPORT_SECONDS}
        self._reported_at = {**recent, project_id: now}
        _logger.info(
            "project %s is locked (423): rejected calls wait for its running operations, and are "
            "sent again one at a time",
            project_id,
        )
