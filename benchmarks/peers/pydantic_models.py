"""A hand-written client: httpx, and pydantic 2 models of the same fields."""

from collections.abc import Sequence
from datetime import datetime
from typing import Self

import httpx
from pydantic import BaseModel

from benchmarks.harness.results import PYDANTIC
from benchmarks.peers.base import API_KEY, AsyncContender
from benchmarks.servers.fixed_responses import PAGE


class Operation(BaseModel):
    """One operation. Open enumerations are plain text, which decodes fastest."""

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
    """The response to a GET of an operation."""

    operation: Operation


class Pagination(BaseModel):
    """The cursor of the next page."""

    cursor: str | None = None


class OperationsPage(BaseModel):
    """A page of operations."""

    operations: list[Operation]
    pagination: Pagination | None = None


class HttpxPydantic(AsyncContender):
    """``httpx.AsyncClient``, with responses validated as JSON."""

    name = PYDANTIC

    async def __aenter__(self) -> Self:
        headers = {"Authorization": f"Bearer {API_KEY}"}
        self._http = httpx.AsyncClient(base_url=self.base_url, headers=headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def get(self) -> Operation:
        """Implement AsyncContender."""
        path = f"/projects/{self.project_id}/operations/{self.operation_id}"
        response = await self._http.get(path)
        return OperationResponse.model_validate_json(response.content).operation

    async def page(self, cursor: str | None = None) -> tuple[Sequence[Operation], str | None]:
        """Implement AsyncContender."""
        query: dict[str, str | int] = {"limit": PAGE}
        if cursor is not None:
            query["cursor"] = cursor
        response = await self._http.get(f"/projects/{self.project_id}/operations", params=query)
        page = OperationsPage.model_validate_json(response.content)
        return page.operations, page.pagination.cursor if page.pagination else None
