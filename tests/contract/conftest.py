"""Fixtures of the contract tests: the description, Prism, and a call of every method."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.contract.calls import Call, call_every_method
from tests.contract.description import Description, Endpoint
from tests.contract.prism import prism_server
from tests.support.methods import METHODS, Method


@pytest.fixture(scope="session")
def description() -> Description:
    return Description.newest()


@pytest.fixture(scope="session")
def prism(description: Description) -> Iterator[str]:
    with prism_server(description) as address:
        yield address


@pytest.fixture(scope="session")
def calls(prism: str) -> dict[Method, Call | Exception]:
    return asyncio.run(call_every_method(prism))


@pytest.fixture(params=METHODS, ids=str)
def method(request: pytest.FixtureRequest) -> Method:
    method = request.param
    assert isinstance(method, Method)
    return method


@pytest.fixture
def call(method: Method, calls: dict[Method, Call | Exception]) -> Call:
    """A call of the method with every parameter."""
    call = calls[method]
    if isinstance(call, Exception):
        pytest.fail(f"{method} cannot be called: {call!r}", pytrace=False)
    return call


@pytest.fixture
def endpoint(call: Call, description: Description) -> Endpoint:
    """The endpoint that the method calls."""
    endpoint = description.endpoint_of(call.exchange.method, call.exchange.path)
    if endpoint is None:
        pytest.fail(
            f"{call.method} calls {call.exchange}: not published: remove the method, or list the "
            "endpoint in UNPUBLISHED in known.py",
            pytrace=False,
        )
    return endpoint
