"""neonctl-async with its default settings but for the rate budget, which would hold it back."""

from collections.abc import AsyncIterator, Sequence
from typing import Self

from benchmarks.harness.results import OURS
from benchmarks.peers.base import KEY, Concurrent
from benchmarks.servers.fixed_responses import PAGE
from neonctl_async import NeonClient, Operation, RateBudget
from neonctl_async.models.operations import OperationsPage


class Ours(Concurrent):
    """The client as its users have it."""

    name = OURS

    async def __aenter__(self) -> Self:
        budget = RateBudget.unlimited()
        self._neon = NeonClient(KEY, base_url=self.base_url, budget=budget)
        await self._neon.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._neon.aclose()

    async def get(self) -> Operation:
        """One operation."""
        return await self._neon.operations.get(self.project_id, self.operation_id)

    async def page(self, cursor: str | None = None) -> tuple[Sequence[Operation], str | None]:
        """A page of 1,000 operations, and the cursor of the next."""
        query = {"limit": PAGE} | ({} if cursor is None else {"cursor": cursor})
        page = await self._neon.request(
            "GET", f"/projects/{self.project_id}/operations", query=query, type=OperationsPage
        )
        return page.operations, page.pagination.following if page.pagination else None

    async def all_pages(self) -> AsyncIterator[Sequence[object]]:
        """The pages of the list, each asked for ahead."""
        async for page in self._neon.operations.list(self.project_id, limit=PAGE).pages():
            yield page


class Listed(Ours):
    """The same, by the list that its users ask for: no record twice, none missed."""

    name = "neonctl-async, by list()"

    async def page(self, cursor: str | None = None) -> tuple[Sequence[Operation], str | None]:
        """The newest 1,000 operations."""
        listed = self._neon.operations.list(self.project_id, limit=PAGE)
        return await listed.collect(limit=PAGE), cursor


class WithoutPrefetch(Ours):
    """The same, with each page asked for when it is wanted."""

    name = "without prefetch"

    def all_pages(self) -> AsyncIterator[Sequence[object]]:
        """The pages of the list, each asked for when it is wanted."""
        return Concurrent.all_pages(self)
