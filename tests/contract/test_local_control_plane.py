"""Responses of the local control plane have the published schema, or the status 501."""

from collections.abc import Iterator

import pytest

from neonctl_local.server.routes import ROUTE_NAMES
from tests.contract.calls import Call
from tests.contract.description import Description, Endpoint, schema_of
from tests.contract.known import EXTRA_LOCAL_FIELDS
from tests.contract.populated import populated
from tests.contract.problems import assert_none
from tests.contract.validation import violations
from tests.support.methods import METHODS, Method

pytestmark = pytest.mark.contract

NOT_SERVED = 501


@pytest.mark.parametrize("method", METHODS, ids=str)
async def test_response_has_the_published_schema(
    method: Method, endpoint: Endpoint, description: Description
) -> None:
    call = await call_locally(method)
    assert_none(
        f"{method} calls {endpoint}, with {call.arguments}",
        (
            problem
            for problem in problems(call, endpoint, description)
            if not problem.endswith(tuple(EXTRA_LOCAL_FIELDS))
        ),
    )


@pytest.mark.parametrize(
    "method", [method for method in METHODS if str(method) == "projects.delete"], ids=str
)
async def test_known_additional_fields_are_sent(
    method: Method, endpoint: Endpoint, description: Description
) -> None:
    found = list(problems(await call_locally(method), endpoint, description))
    assert [
        end for end in EXTRA_LOCAL_FIELDS if not any(problem.endswith(end) for problem in found)
    ] == []


async def call_locally(method: Method) -> Call:
    async with populated() as local:
        return await local.client.call(method, local.arguments(method))


def problems(call: Call, endpoint: Endpoint, description: Description) -> Iterator[str]:
    exchange = call.exchange
    if str(endpoint) not in ROUTE_NAMES:
        if exchange.status != NOT_SERVED:
            yield f"{exchange.status} of an endpoint without a route"
        return
    yield from exchange.violations
    response = endpoint.responses.get(exchange.status)
    schema = schema_of(response) if response else None
    if schema is not None:
        yield from violations(description, endpoint, exchange.status, exchange.response)
    elif response is None or exchange.response is not None:
        yield f"{exchange.status} with {exchange.response} is not published"
