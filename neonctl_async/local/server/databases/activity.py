"""Watches the activity of running servers, and suspends computes after their idle time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from neonctl_async.local.clock import SECOND, Instant, span
from neonctl_async.local.engine import databases, servers
from neonctl_async.local.postgres.clusters import Clusters
from neonctl_async.local.postgres.errors import ClusterError

if TYPE_CHECKING:
    from neonctl_async.local.server.tenant_state import TenantState

INTERVAL: Final = 0.5
"""The time between two looks at computes that are due, in seconds."""
FULL_EVERY: Final = 10
"""Every tenth look takes in all running servers, and clusters that are no longer needed."""

_logger = logging.getLogger(__name__)


class ActivityWatch:
    """Stores the activity and the size of branches, and suspends idle computes in time.

    Without it, a compute would be suspended only at the next request on its project.
    """

    def __init__(
        self,
        tenants: Sequence["TenantState"],
        clusters: Clusters,
        sweep: Callable[[], Awaitable[None]],
    ) -> None:
        self._tenants: Final = tenants
        self._clusters: Final = clusters
        self._sweep: Final = sweep

    async def run(self) -> None:
        """Watch until cancelled."""
        looks = 0
        while True:
            await asyncio.sleep(INTERVAL)
            looks += 1
            takes_all = looks % FULL_EVERY == 0
            for state in tuple(self._tenants):
                await self._look(state, takes_all=takes_all)
            if takes_all:
                await self._sweep()

    async def _look(self, state: "TenantState", *, takes_all: bool) -> None:
        suspensions = await state.database.run(servers.suspensions)
        now = state.now()
        for branch_id, idle_at in suspensions.items():
            is_due = idle_at is not None and idle_at <= now + span(INTERVAL)
            if (takes_all or is_due) and self._clusters.is_running(branch_id):
                await self._note(state, branch_id)
        await state.database.run(servers.suspend_due)
        if state.databases is not None:
            # Also starts work that was planned for a time that has come meanwhile.
            state.databases.runner.wake()

    async def _note(self, state: "TenantState", branch_id: str) -> None:
        try:
            activity = await self._clusters.activity(branch_id)
        except ClusterError as error:
            _logger.info("the activity of branch %s is unknown: %s", branch_id, error)
            return
        idle: Instant | None = None
        if activity.last_active is not None:
            idle = round((datetime.now(UTC) - activity.last_active).total_seconds() * SECOND)
        await state.database.run(
            databases.note_activity,
            branch_id,
            busy=activity.busy,
            last_active=None if idle is None else state.now() - max(0, idle),
            logical_size=activity.logical_size,
        )
