"""@neon/sdk as a compared client."""

from typing import Self

import msgspec

from benchmarks.harness.results import NEON_SDK
from benchmarks.peers.base import CONCURRENCY, ListMemory, Pager
from benchmarks.peers.neon_sdk import NeonSdk


class _Time(msgspec.Struct):
    seconds: float


class SdkOnFixedResponses(Pager):
    """@neon/sdk in a Node.js process, which measures its own times."""

    name = NEON_SDK

    async def __aenter__(self) -> Self:
        self._sdk = await NeonSdk().__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sdk.__aexit__()

    async def sequential_gets(self, count: int) -> float:
        """Implement Contender."""
        return await self._seconds("gets", count=count, concurrency=1)

    async def concurrent_gets(self, count: int) -> float:
        """Implement Contender."""
        return await self._seconds("gets", count=count, concurrency=CONCURRENCY)

    async def pages(self, count: int) -> float:
        """Implement Contender. The SDK has no option for the page size; the server sends 1,000."""
        return await self._seconds("pages", count=count)

    async def paging(self, pause: float) -> float:
        """Implement Pager."""
        return await self._seconds("paging", pause=pause)

    async def list_memory(self) -> ListMemory:
        """Implement Contender."""
        arguments = {"baseUrl": self.base_url, "projectId": self.project_id}
        return await self._sdk.call("listMemory", ListMemory, **arguments)

    async def _seconds(self, method: str, **arguments: object) -> float:
        time = await self._sdk.call(
            method,
            _Time,
            baseUrl=self.base_url,
            projectId=self.project_id,
            operationId=self.operation_id,
            **arguments,
        )
        return time.seconds
