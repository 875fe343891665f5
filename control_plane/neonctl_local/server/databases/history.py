"""Keeps the history of running servers short enough for recoveries, and for the disk."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from neonctl_local.engine import servers
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.server.failure_log import FailureLog
from neonctl_local.server.tenants.state import TenantState

INTERVAL: Final = 5.0
"""The time between two checks, in seconds."""

KEPT_BYTES: Final = 4 << 30
"""The disk space of the history of all branches. The oldest history is removed first."""

_logger = logging.getLogger(__name__)


class HistoryKeeper:
    """Makes copies of growing clusters, and removes history after the retention of its project."""

    def __init__(self, tenants: Sequence[TenantState], clusters: Clusters) -> None:
        self._tenants: Final = tenants
        self._clusters: Final = clusters

    async def run(self) -> None:
        """Check until cancelled. A check that fails is logged and repeated."""
        failures = FailureLog(_logger, "the check of the history failed")
        while True:
            await asyncio.sleep(INTERVAL)
            with failures:
                for state in tuple(self._tenants):
                    retention = await state.database.read(servers.history_retention)
                    await self._clusters.keep_history(retention)
                await self._clusters.limit_history(KEPT_BYTES)
