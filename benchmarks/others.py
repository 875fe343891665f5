"""What is measured beside each other: a client of ours, and the polling that others do."""

import asyncio
import random
import statistics
from collections.abc import Iterable, Sequence
from typing import Self

import aiohttp
import msgspec
from scenario_server import ScenarioServer, has_ended

from neonctl_async import NeonClient, Operation, RateBudget
from neonctl_async.models.operations import OperationResponse, Started

KEY = "napi_benchmark"


class Others:
    """The polling that others do: a GET an operation every second, and no second try."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(raise_for_status=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._http is not None
        await self._http.close()

    async def create(self, project_id: str, seconds: float) -> Operation:
        """A branch; the operation that it started. Raises aiohttp.ClientError."""
        assert self._http is not None
        url = f"{self._base_url}/projects/{project_id}/branches"
        body = {"annotation_value": {"seconds": str(seconds)}}
        async with self._http.post(url, json=body) as response:
            return msgspec.json.decode(await response.read(), type=Started).operations[0]

    async def wait(self, operation: Operation) -> None:
        """Look at an operation once a second until it has ended. Raises aiohttp.ClientError."""
        assert self._http is not None
        url = f"{self._base_url}/projects/{operation.project_id}/operations/{operation.id}"
        while True:
            async with self._http.get(url) as response:
                seen = msgspec.json.decode(await response.read(), type=OperationResponse)
            if has_ended(seen.operation):
                return
            await asyncio.sleep(1.0)

    async def wait_for_all(self, operations: Iterable[Operation]) -> None:
        """One operation after another."""
        for operation in operations:
            await self.wait(operation)


def client_of(server: ScenarioServer, *, budget: bool = False) -> NeonClient:
    """A client with the default settings; without ``budget`` it has no limit."""
    limits = RateBudget() if budget else RateBudget.unlimited()
    return NeonClient(KEY, base_url=server.base_url, budget=limits)


def told(looks: Sequence[Sequence[float]]) -> str:
    """When the first look came, the second and so on: the median, and how many got so far."""
    at: list[str] = []
    for n in range(max(map(len, looks))):
        reached = [of_run[n] for of_run in looks if len(of_run) > n]
        share = len(reached) / len(looks)
        at.append(f"{statistics.median(reached):.2f}" + (f" ({share:.0%})" if share < 1 else ""))
    return f"looks at {', '.join(at)} s"


def between(shortest: float, longest: float, count: int) -> list[float]:
    """Durations, evenly spread, in an order that is random and always the same."""
    step = (longest - shortest) / max(count - 1, 1)
    durations = [shortest + step * n for n in range(count)]
    random.Random(count).shuffle(durations)
    return durations
