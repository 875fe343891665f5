"""Responses of the local control plane have the published schema."""

from collections.abc import Iterator

import pytest

from tests.contract.calls import Call
from tests.contract.description import Description, Endpoint, schema_of
from tests.contract.known import NOT_SERVED_LOCALLY, TOLD_LOCALLY
from tests.contract.validity import misfits
from tests.contract.verdict import agrees
from tests.contract.world import populated
from tests.support.methods import METHODS, Method

pytestmark = pytest.mark.contract

SERVED = [method for method in METHODS if str(method) not in NOT_SERVED_LOCALLY]
NOT_SERVED = [method for method in METHODS if str(method) in NOT_SERVED_LOCALLY]


@pytest.mark.parametrize("method", SERVED, ids=str)
async def test_response_has_the_published_schema(
    method: Method, endpoint: Endpoint, description: Description
) -> None:
    call = await called_locally(method)
    agrees(
        f"{method} calls {endpoint}, with {call.arguments}",
        (
            one
            for one in problems(call, endpoint, description)
            if not one.endswith(tuple(TOLD_LOCALLY))
        ),
    )


@pytest.mark.parametrize("method", NOT_SERVED, ids=str)
async def test_unserved_endpoint_is_not_found(method: Method) -> None:
    assert (await called_locally(method)).exchange.status == 404


@pytest.mark.parametrize(
    "method", [one for one in METHODS if str(one) == "projects.delete"], ids=str
)
async def test_known_additional_fields_are_sent(
    method: Method, endpoint: Endpoint, description: Description
) -> None:
    found = list(problems(await called_locally(method), endpoint, description))
    assert [end for end in TOLD_LOCALLY if not any(one.endswith(end) for one in found)] == []


async def called_locally(method: Method) -> Call:
    async with populated() as world:
        return await world.client.observe(method, world.arguments(method))


def problems(call: Call, endpoint: Endpoint, description: Description) -> Iterator[str]:
    yield from call.exchange.violations
    answer = endpoint.answers.get(call.exchange.status)
    schema = schema_of(answer) if answer else None
    if schema is not None:
        yield from misfits(description, endpoint, call.exchange.status, call.exchange.answer)
    elif answer is None or call.exchange.answer is not None:
        yield f"{call.exchange.status} with {call.exchange.answer} is not published"
