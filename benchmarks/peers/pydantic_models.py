"""What one writes with httpx and pydantic 2: models of the same fields."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

import httpx
from pydantic import BaseModel

from benchmarks.harness.results import PYDANTIC
from benchmarks.peers.base import KEY, Concurrent
from benchmarks.servers.fixed_responses import PAGE


class Operation(BaseModel):
    """One operation. What may be unknown to this version is text, which is quickest."""

    id: str
    project_id: str
    action: str
    status: str
    created_at: datetime
    updated_at: datetime
    branch_id: str | None = None
    endpoint_id: str | None = None
    error: str | None = None
    failures_count: int = 0
    retry_at: datetime | None = None
    total_duration_ms: int | None = None


class OperationResponse(BaseModel):
    """The answer to a GET of an operation."""

    operation: Operation


class Pagination(BaseModel):
    """Where the next page begins."""

    cursor: str | None = None


class OperationsPage(BaseModel):
    """A page of operations."""

    operations: list[Operation]
    pagination: Pagination | None = None


class HttpxPydantic(Concurrent):
    """httpx.AsyncClient, and its answers validated as JSON."""

    name = PYDANTIC

    async def __aenter__(self) -> Self:
        headers = {"Authorization": f"Bearer {KEY}"}
        self._http = httpx.AsyncClient(base_url=self.base_url, headers=headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def get(self) -> Operation:
        """One operation."""
        answer = await self._http.get(f"/projects/{self.project_id}/operations/{self.operation_id}")
        return OperationResponse.model_validate_json(answer.content).operation

    async def page(self, cursor: str | None = None) -> tuple[Sequence[Operation], str | None]:
        """A page of 1,000 operations, and the cursor of the next."""
        query: dict[str, str | int] = {"limit": PAGE}
        if cursor is not None:
            query["cursor"] = cursor
        answer = await self._http.get(f"/projects/{self.project_id}/operations", params=query)
        page = OperationsPage.model_validate_json(answer.content)
        return page.operations, page.pagination.cursor if page.pagination else None
