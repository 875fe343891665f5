"""@neon/sdk on fixed answers."""

from typing import Self

import msgspec

from benchmarks.harness.results import NEON_SDK
from benchmarks.peers.base import AT_ONCE, Held, Pager
from benchmarks.peers.neon_sdk import NeonSdk


class _Taken(msgspec.Struct):
    seconds: float


class SdkOnFixedAnswers(Pager):
    """A process of Node.js that takes its own times."""

    name = NEON_SDK

    async def __aenter__(self) -> Self:
        self._sdk = await NeonSdk().__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._sdk.__aexit__()

    async def alone(self, count: int) -> float:
        """See Contender."""
        return await self._seconds("gets", count=count, atOnce=1)

    async def at_once(self, count: int) -> float:
        """See Contender."""
        return await self._seconds("gets", count=count, atOnce=AT_ONCE)

    async def pages(self, count: int) -> float:
        """See Contender. The SDK does not let one choose the size of a page; it gets 1,000."""
        return await self._seconds("pages", count=count)

    async def paging(self, pause: float) -> float:
        """See Pager."""
        return await self._seconds("paging", pause=pause)

    async def held(self) -> Held:
        """See Contender."""
        return await self._sdk.ask("held", Held, baseUrl=self.base_url, projectId=self.project_id)

    async def _seconds(self, method: str, **arguments: object) -> float:
        taken = await self._sdk.ask(
            method,
            _Taken,
            baseUrl=self.base_url,
            projectId=self.project_id,
            operationId=self.operation_id,
            **arguments,
        )
        return taken.seconds
