"""Watches running servers: their activity, their history, and crashes."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from neonctl_local.clock import span
from neonctl_local.engine import databases, servers
from neonctl_local.errors import StorageFullError
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.server.failure_log import FailureLog
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.server.tenants.work_runner import RETRY_DELAY

ACTIVITY_INTERVAL: Final = 0.5
"""The time between two checks of the activity, in seconds."""
AT_A_TIME: Final = 10
"""The largest number of servers checked at a time. A role can make a check take ten seconds."""
FULL_EVERY: Final = 10
"""Every tenth check includes all running servers, and clusters that are no longer needed."""
HISTORY_INTERVAL: Final = 5.0
"""The time between two checks of the history, in seconds."""

HISTORY_BYTES: Final = 4 << 30
"""The disk space for the history of all branches. The oldest history is removed first."""


_logger: Final = logging.getLogger(__name__)


class ActivityWatch:
    """Stores the activity and size of branches, and suspends idle computes on time.

    Without it, a compute would be suspended only at the next request on its project.
    """

    def __init__(
        self, tenants: Sequence[TenantState], sweep: Callable[[], Awaitable[None]]
    ) -> None:
        self._tenants: Final = tenants
        self._sweep: Final = sweep
        self._slots: Final = asyncio.Semaphore(AT_A_TIME)

    async def run(self) -> None:
        """Watch until cancelled. A check that fails is logged and repeated."""
        failures = FailureLog(_logger, "the check of the running servers failed")
        checks = 0
        while True:
            await asyncio.sleep(ACTIVITY_INTERVAL)
            checks += 1
            with failures:
                await self._check_all(takes_all=checks % FULL_EVERY == 0)

    async def _check_all(self, *, takes_all: bool) -> None:
        checks = [self._check(state, takes_all=takes_all) for state in tuple(self._tenants)]
        await asyncio.gather(*checks)
        if takes_all:
            await self._sweep()

    async def _check(self, state: TenantState, *, takes_all: bool) -> None:
        suspensions = await state.database.read(servers.suspensions)
        now = state.now()
        soon = now + span(ACTIVITY_INTERVAL)
        checked = [
            branch_id
            for branch_id, idle_at in suspensions.items()
            if takes_all or (idle_at is not None and idle_at <= soon)
        ]
        notes = (self._note(state, branch_id) for branch_id in checked)
        outcomes = await asyncio.gather(*notes, return_exceptions=True)
        # A check that fails must not keep the computes of other branches running.
        if await state.database.run(servers.suspend_due, now) and state.databases is not None:
            state.databases.runner.wake()
        for error in filter(None, outcomes):
            raise error

    async def _note(self, state: TenantState, branch_id: str) -> None:
        if state.databases is not None:
            async with self._slots:
                await state.databases.note_activity(branch_id)


class Crashes:
    """Records the crashes of servers, each in a task of its own."""

    def __init__(self, tenants: Sequence[TenantState]) -> None:
        self._tenants: Final = tenants
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    def note(self, branch_id: str, reason: str) -> None:
        """Log the crash of a branch's server, and start to record it."""
        _logger.warning("the server of branch %s ended by itself: %s", branch_id, reason)
        task = asyncio.create_task(self._stop_computes(branch_id, reason))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait until all crashes are recorded."""
        await asyncio.gather(*self._tasks)

    async def _stop_computes(self, branch_id: str, reason: str) -> None:
        """Record a crash. If the disk is full, which may be the cause, wait for space."""
        for state in tuple(self._tenants):
            while state.databases is not None:
                try:
                    await state.database.run(databases.crashed, branch_id, reason)
                except StorageFullError:
                    await asyncio.sleep(RETRY_DELAY)
                else:
                    break


class HistoryKeeper:
    """Makes copies of growing clusters, and removes history beyond the retention of its project."""

    def __init__(self, tenants: Sequence[TenantState], clusters: Clusters) -> None:
        self._tenants: Final = tenants
        self._clusters: Final = clusters

    async def run(self) -> None:
        """Maintain the history until cancelled. A failure is logged, and the next round follows."""
        failures = FailureLog(_logger, "the check of the history failed")
        while True:
            await asyncio.sleep(HISTORY_INTERVAL)
            with failures:
                for state in tuple(self._tenants):
                    retention = await state.database.read(servers.history_retention)
                    await self._clusters.keep_history(retention)
                await self._clusters.limit_history(HISTORY_BYTES)
