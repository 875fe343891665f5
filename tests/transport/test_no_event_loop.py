"""A client without asyncio: coroutines that nothing runs, or that another library such as trio."""

from collections.abc import Callable, Coroutine
from typing import Any, Final

import pytest

from neonctl_async import ConfigurationError, NeonClient, OperationRef
from tests.support.records import API_KEY, PROJECT

OPERATION: Final = OperationRef(project_id=PROJECT, id="op-1")


@pytest.fixture
def unused() -> NeonClient:
    return NeonClient(API_KEY, base_url="http://127.0.0.1:9")


async def enter(neon: NeonClient) -> None:
    async with neon:
        pass


async def watch(neon: NeonClient) -> None:
    async for _ in neon.operations.watch(OPERATION):
        pass


def get(neon: NeonClient) -> Coroutine[Any, Any, object]:
    return neon.projects.get(PROJECT)


def create(neon: NeonClient) -> Coroutine[Any, Any, object]:
    return neon.projects.create(name="shop", wait=True)


def collect(neon: NeonClient) -> Coroutine[Any, Any, object]:
    return neon.projects.list().collect()


def wait(neon: NeonClient) -> Coroutine[Any, Any, object]:
    return neon.operations.wait(OPERATION)


def wait_for(neon: NeonClient) -> Coroutine[Any, Any, object]:
    return neon.branches.wait_for(PROJECT, "br-1")


def wait_for_without_end(neon: NeonClient) -> Coroutine[Any, Any, object]:
    return neon.branches.wait_for(PROJECT, "br-1", timeout=None)


@pytest.mark.parametrize(
    "use", [enter, get, create, collect, wait, watch, wait_for, wait_for_without_end]
)
def test_call_outside_asyncio_raises_a_configuration_error(
    unused: NeonClient, use: Callable[[NeonClient], Coroutine[Any, Any, object]]
) -> None:
    coroutine = use(unused)
    with pytest.raises(ConfigurationError, match=r"no asyncio event loop .* asyncio\.run\(\)"):
        coroutine.send(None)


@pytest.mark.parametrize("name", ["requests_last_minute", "poll_stretch"])
def test_property_outside_asyncio_raises_a_configuration_error(
    unused: NeonClient, name: str
) -> None:
    with pytest.raises(ConfigurationError, match="no asyncio event loop is running"):
        getattr(unused, name)


def test_client_can_be_closed_outside_asyncio(unused: NeonClient) -> None:
    with pytest.raises(StopIteration):
        unused.aclose().send(None)
