"""Whatever the platform may answer by its description is read."""

import asyncio

import pytest

from neonctl_async import APIError, InvalidResponseError, NeonClient
from tests.contract.calls import watched
from tests.contract.description import Endpoint
from tests.contract.verdict import agrees
from tests.support.arguments import every_argument
from tests.support.methods import Method

pytestmark = pytest.mark.contract

GENERATED = 50


async def test_the_documented_answer_of_every_status_is_read(
    method: Method, endpoint: Endpoint, prism: str
) -> None:
    for status in endpoint.answers:
        async with watched(prism, f"code={status}") as client:
            agrees(f"{method} reads a {status}", await problems(method, client.neon))


async def test_generated_answers_are_read(method: Method, prism: str) -> None:
    async with watched(prism, "dynamic=true") as client:
        found = await asyncio.gather(*(problems(method, client.neon) for _ in range(GENERATED)))
        assert len(client.witness.seen) == GENERATED
    agrees(f"{method} reads generated answers", {one for several in found for one in several})


async def problems(method: Method, neon: NeonClient) -> list[str]:
    """What keeps an answer from being read: one at the most."""
    try:
        await method.call(neon, every_argument(method))
    except InvalidResponseError as error:
        return [str(error.__cause__)]
    except APIError as error:
        return [f"{error.status} is answered: see the tests of requests"]
    return []
