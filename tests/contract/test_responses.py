"""The library decodes every response that the description allows."""

import asyncio

import pytest

from neonctl_async import APIError, InvalidResponseError, NeonClient
from tests.contract.calls import recorded_client
from tests.contract.description import Endpoint
from tests.contract.problems import assert_none
from tests.support.arguments import every_argument
from tests.support.methods import Method

pytestmark = pytest.mark.contract

GENERATED = 50


async def test_documented_response_of_each_status_is_decoded(
    method: Method, endpoint: Endpoint, prism: str
) -> None:
    for status in endpoint.responses:
        async with recorded_client(prism, f"code={status}") as client:
            assert_none(f"{method} decodes a {status}", await problems(method, client.neon))


async def test_generated_responses_are_decoded(method: Method, prism: str) -> None:
    async with recorded_client(prism, "dynamic=true") as client:
        found = await asyncio.gather(*(problems(method, client.neon) for _ in range(GENERATED)))
        # A page without any project, but with unavailable ones, is followed by the next page.
        assert len(client.recorder.exchanges) >= GENERATED
    assert_none(
        f"{method} decodes generated responses", {problem for each in found for problem in each}
    )


async def problems(method: Method, neon: NeonClient) -> list[str]:
    """Return the reason why a response cannot be decoded, if there is one."""
    try:
        await method.call(neon, every_argument(method))
    except InvalidResponseError as error:
        # Prism generates ids of its own. The record was decoded before its id was compared.
        if str(method) == "operations.get" and "record of another operation" in str(error):
            return []
        return [str(error.__cause__)]
    except APIError as error:
        return [f"the response is a {error.status}: see test_requests.py"]
    return []
