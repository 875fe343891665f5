"""neonctl-async with its default settings, except for the rate budget, which would delay it."""

from collections.abc import AsyncIterator, Sequence
from typing import Self

from benchmarks.harness.results import OURS
from benchmarks.peers.base import API_KEY, AsyncContender
from benchmarks.servers.fixed_responses import PAGE
from neonctl_async import NeonClient, Operation, RateBudget
from neonctl_async.models.operations import OperationsPage


class Ours(AsyncContender):
    """neonctl-async as its users run it."""

    name = OURS

    async def __aenter__(self) -> Self:
        budget = RateBudget.unlimited()
        self._neon = NeonClient(API_KEY, base_url=self.base_url, budget=budget)
        await self._neon.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._neon.aclose()

    async def get(self) -> Operation:
        """Implement AsyncContender."""
        return await self._neon.operations.get(self.project_id, self.operation_id)

    async def page(self, cursor: str | None = None) -> tuple[Sequence[Operation], str | None]:
        """Implement AsyncContender."""
        query = {"limit": PAGE} | ({} if cursor is None else {"cursor": cursor})
        page = await self._neon.request(
            "GET", f"/projects/{self.project_id}/operations", query=query, type=OperationsPage
        )
        return page.operations, page.pagination.next_cursor if page.pagination else None

    async def all_pages(self) -> AsyncIterator[Sequence[object]]:
        """Yield the pages of the list, each requested ahead of time."""
        async for page in self._neon.operations.list(self.project_id, limit=PAGE).pages():
            yield page


class WithoutPrefetch(Ours):
    """The same client, which requests each page when it is needed."""

    name = "neonctl-async, without prefetch"

    def all_pages(self) -> AsyncIterator[Sequence[object]]:
        """Implement AsyncContender."""
        return AsyncContender.all_pages(self)
