"""Records in the tables that a server of Postgres ended by itself."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from neonctl_local.engine import databases
from neonctl_local.errors import StorageFullError
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.server.tenants.work_runner import RETRY_DELAY

_logger: Final = logging.getLogger(__name__)


class Crashes:
    """The crashes of servers that are being recorded, each in a task of its own."""

    def __init__(self, tenants: Sequence[TenantState]) -> None:
        self._tenants: Final = tenants
        self._tasks: Final[set[asyncio.Task[None]]] = set()

    def note(self, branch_id: str, reason: str) -> None:
        """Log the crash of the server of a branch, and start to record it."""
        _logger.warning("the server of branch %s ended by itself: %s", branch_id, reason)
        task = asyncio.create_task(self._stop_computes(branch_id, reason))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def finish(self) -> None:
        """Wait until all crashes are recorded."""
        await asyncio.gather(*self._tasks)

    async def _stop_computes(self, branch_id: str, reason: str) -> None:
        """Record a crash, which a full disk may have caused: as soon as it has space again."""
        for state in tuple(self._tenants):
            while state.databases is not None:
                try:
                    await state.database.run(databases.crashed, branch_id, reason)
                except StorageFullError:
                    await asyncio.sleep(RETRY_DELAY)
                else:
                    break
