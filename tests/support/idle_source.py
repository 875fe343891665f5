"""A source of operations for tests of waits that follow no operation."""

import asyncio
from datetime import datetime

from neonctl_async import RateBudget
from neonctl_async.clock import utc_now
from neonctl_async.models.operations import OperationsPage
from neonctl_async.transport.budget import Budget
from neonctl_async.transport.protocol import Request
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.states.sources import T


class IdleSource(OperationSource):
    """A project without operations."""

    def __init__(self) -> None:
        self._budget = Budget(RateBudget.unlimited(), connections=100)

    @property
    def budget(self) -> Budget:
        return self._budget

    def server_now(self) -> datetime:
        return utc_now()

    async def poll(self, request: Request[T]) -> T:
        """Return an empty page."""
        await asyncio.sleep(0.1)
        page = OperationsPage(operations=[])
        assert isinstance(page, request.response_type)
        return page
