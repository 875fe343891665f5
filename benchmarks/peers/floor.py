"""The floor: bare aiohttp and msgspec, with the same Structs as neonctl-async."""

from collections.abc import Sequence
from typing import Self

import aiohttp
import msgspec

from benchmarks.harness.results import FLOOR
from benchmarks.peers.base import API_KEY, AsyncContender
from benchmarks.servers.fixed_responses import PAGE
from neonctl_async import Operation
from neonctl_async.models.operations import OperationResponse, OperationsPage

_OPERATION = msgspec.json.Decoder(OperationResponse)
_PAGE = msgspec.json.Decoder(OperationsPage)


class Floor(AsyncContender):
    """A client without retries, rate budget and error handling."""

    name = FLOOR

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(headers={"Authorization": f"Bearer {API_KEY}"})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.close()

    async def get(self) -> Operation:
        """Implement AsyncContender."""
        url = f"{self.base_url}/projects/{self.project_id}/operations/{self.operation_id}"
        async with self._http.get(url) as response:
            return _OPERATION.decode(await response.read()).operation

    async def page(self, cursor: str | None = None) -> tuple[Sequence[Operation], str | None]:
        """Implement AsyncContender."""
        query = {"limit": str(PAGE)} | ({} if cursor is None else {"cursor": cursor})
        url = f"{self.base_url}/projects/{self.project_id}/operations"
        async with self._http.get(url, params=query) as response:
            page = _PAGE.decode(await response.read())
        return page.operations, page.pagination.cursor if page.pagination else None
