"""Whatever the platform may answer by its description is read."""

import asyncio

import pytest

from neonctl_async import NeonClient
from tests.contract.arguments import every_argument
from tests.contract.calls import watched
from tests.contract.description import Endpoint
from tests.contract.methods import Method

pytestmark = pytest.mark.contract

GENERATED = 50


async def test_documented_answers_of_every_status_are_read(
    method: Method, endpoint: Endpoint, prism: str
) -> None:
    for status in endpoint.answers:
        async with watched(prism, f"code={status}") as client:
            await method.call(client.neon, every_argument(method))


async def test_generated_answers_are_read(method: Method, prism: str) -> None:
    async with watched(prism, "dynamic=true") as client:
        async with asyncio.TaskGroup() as group:
            for _ in range(GENERATED):
                group.create_task(_read_one(method, client.neon))
        assert len(client.witness.seen) == GENERATED


async def _read_one(method: Method, neon: NeonClient) -> None:
    await method.call(neon, every_argument(method))
