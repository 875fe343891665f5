"""Watches the activity of running servers, and suspends computes after their idle time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from neonctl_local.clock import span
from neonctl_local.engine import servers
from neonctl_local.server.failure_log import FailureLog
from neonctl_local.server.tenants.state import TenantState

_logger = logging.getLogger(__name__)
INTERVAL: Final = 0.5
"""The time between two checks, in seconds."""
AT_A_TIME: Final = 10
"""The most servers that are checked at the same time. A role can let each take ten seconds."""
FULL_EVERY: Final = 10
"""Every tenth check includes all running servers, and clusters that are no longer needed."""


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
            await asyncio.sleep(INTERVAL)
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
        soon = now + span(INTERVAL)
        checked = [
            branch_id
            for branch_id, idle_at in suspensions.items()
            if takes_all or (idle_at is not None and idle_at <= soon)
        ]
        await asyncio.gather(*(self._note(state, branch_id) for branch_id in checked))
        if await state.database.run(servers.suspend_due, now) and state.databases is not None:
            state.databases.runner.wake()

    async def _note(self, state: TenantState, branch_id: str) -> None:
        if state.databases is not None:
            async with self._slots:
                await state.databases.note_activity(branch_id)
