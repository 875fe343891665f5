"""A client without asyncio: coroutines that nothing runs, or that another library such as trio."""

from collections.abc import Callable, Coroutine
from operator import attrgetter
from typing import Any

import pytest

from neonctl_async import ConfigurationError, NeonClient, OperationRef
from tests.support.records import API_KEY, PROJECT

OPERATION = OperationRef(project_id=PROJECT, id="op-1")


@pytest.fixture
def unused() -> NeonClient:
    return NeonClient(API_KEY, base_url="http://127.0.0.1:9")


@pytest.mark.parametrize(
    "call",
    [
        lambda neon: neon.__aenter__(),
        lambda neon: neon.projects.get(PROJECT),
        lambda neon: neon.projects.create(name="shop", wait=True),
        lambda neon: neon.projects.list().collect(),
        lambda neon: neon.operations.wait(OPERATION),
        lambda neon: anext(neon.operations.watch(OPERATION)),
        lambda neon: neon.branches.wait_for(PROJECT, "br-1"),
    ],
)
def test_call_outside_asyncio_raises_a_configuration_error(
    unused: NeonClient, call: Callable[[NeonClient], Coroutine[None, None, Any]]
) -> None:
    coroutine = call(unused)
    with pytest.raises(ConfigurationError, match=r"no asyncio event loop .* asyncio\.run\(\)"):
        coroutine.send(None)


@pytest.mark.parametrize("name", ["requests_last_minute", "poll_stretch"])
def test_property_outside_asyncio_raises_a_configuration_error(
    unused: NeonClient, name: str
) -> None:
    with pytest.raises(ConfigurationError, match="no asyncio event loop is running"):
        attrgetter(name)(unused)


def test_client_can_be_closed_outside_asyncio(unused: NeonClient) -> None:
    with pytest.raises(StopIteration):
        unused.aclose().send(None)
