"""``endpoints.wait_connectable``."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from neonctl_async import (
    ClientClosedError,
    Hooks,
    NeonClient,
    NotConnectableError,
    NotFoundError,
    StateTimeoutError,
)
from tests.connections.postgres_server import STARTING_UP, PostgresServer, responding
from tests.resources.computes import Api, options_of, serve_role
from tests.support.clock import now, skip_ahead
from tests.support.records import client_of
from tests.support.server import Received, Respond, http_response

pytestmark = pytest.mark.virtual_time


@pytest.fixture
async def neon(api: Api) -> AsyncIterator[NeonClient]:
    async with client_of(api) as neon:
        yield neon


def serve_compute(api: Api, *states: dict[str, Any]) -> None:
    """Respond to requests for the compute with each of ``states`` for one second."""

    def respond(request: Received) -> Respond | None:
        if request.path.endswith("/endpoints/ep-1"):
            state = states[min(int(now()), len(states) - 1)]
            return http_response(200, {"endpoint": api.endpoint(**state)})
        return api.stored_response(request)

    serve_role(api)
    api.fault = respond


async def test_running_compute_is_read_once(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    serve_compute(api, {})
    compute = await neon.endpoints.wait_connectable("p-1", "ep-1")
    assert compute.current_state == "active"
    assert options_of(server) == ["endpoint=ep-1"]
    assert api.lines.count("GET /projects/p-1/endpoints/ep-1") == 1


async def test_starting_compute_is_awaited_before_it_is_connected(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    serve_compute(api, {"current_state": "init", "pending_state": "active"}, {})
    compute = await neon.endpoints.wait_connectable("p-1", "ep-1")
    assert compute.current_state == "active"
    assert server.times[0] >= 1


@pytest.mark.parametrize("states", [["init", "active"], ["unavailable", "active"]])
async def test_compute_is_connected_even_if_the_loop_was_blocked_past_the_deadline(
    api: Api,
    neon: NeonClient,
    server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    states: list[str],
) -> None:
    def respond(request: Received) -> Respond | None:
        if not request.path.endswith("/endpoints/ep-1"):
            return api.stored_response(request)
        state = states[now() >= 1]
        if state == "unavailable":
            return http_response(503, headers={"Retry-After": "1"})
        return http_response(200, {"endpoint": api.endpoint(current_state=state)})

    serve_role(api)
    api.fault = respond
    wait = asyncio.create_task(neon.endpoints.wait_connectable("p-1", "ep-1", timeout=2))
    await asyncio.sleep(0.5)
    skip_ahead(monkeypatch, 3)
    assert (await wait).current_state == "active"
    assert options_of(server) == ["endpoint=ep-1"]


async def test_compute_is_connected_even_if_a_hook_blocks_the_loop_past_the_deadline(
    api: Api, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_compute(api, {})
    hooks = Hooks(on_response=lambda _response: skip_ahead(monkeypatch, 3))
    async with client_of(api, hooks=[hooks]) as neon:
        await neon.endpoints.wait_connectable("p-1", "ep-1", timeout=2)
    assert options_of(server) == ["endpoint=ep-1"]


async def test_compute_that_does_not_start_is_a_timeout(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    serve_compute(api, {"current_state": "idle", "pending_state": "active"})
    with pytest.raises(StateTimeoutError, match="did not become 'active'"):
        await neon.endpoints.wait_connectable("p-1", "ep-1", timeout=5)
    assert now() == pytest.approx(5, abs=0.1)
    assert server.connections == 0


async def test_idle_compute_is_connected_and_read_again(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    serve_compute(api, {"current_state": "idle"})
    assert (await neon.endpoints.wait_connectable("p-1", "ep-1")).current_state == "idle"
    assert server.connections == 1
    assert api.lines.count("GET /projects/p-1/endpoints/ep-1") == 2


async def test_reading_the_compute_again_ends_at_the_deadline(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    async def hang(_writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    def respond(request: Received) -> Respond | None:
        if not request.path.endswith("/endpoints/ep-1"):
            return api.stored_response(request)
        idle = {"endpoint": api.endpoint(current_state="idle")}
        return hang if server.connections else http_response(200, idle)

    serve_role(api)
    api.fault = respond
    compute = await neon.endpoints.wait_connectable("p-1", "ep-1", timeout=5)
    assert compute.current_state == "idle"
    assert now() == pytest.approx(5, abs=0.1)


async def test_disabled_compute_is_not_connectable(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    serve_compute(api, {"current_state": "idle", "disabled": True})
    with pytest.raises(NotConnectableError, match="it is disabled: enable it first") as caught:
        await neon.endpoints.wait_connectable("p-1", "ep-1")
    assert caught.value.is_final
    assert server.connections == 0


async def test_missing_compute_is_not_found(neon: NeonClient) -> None:
    with pytest.raises(NotFoundError):
        await neon.endpoints.wait_connectable("p-1", "ep-1")


async def test_reading_the_compute_ends_at_the_deadline(api: Api, neon: NeonClient) -> None:
    async def hang(_writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    api.fault = lambda _request: hang
    with pytest.raises(NotConnectableError, match="did not return its address"):
        await neon.endpoints.wait_connectable("p-1", "ep-1", timeout=5)
    assert now() == pytest.approx(5, abs=0.1)


async def test_reading_the_address_ends_at_the_deadline(api: Api, neon: NeonClient) -> None:
    async def hang(_writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    serve_compute(api, {})
    api.responses["GET /projects/p-1/connection_uri"] = hang
    with pytest.raises(NotConnectableError, match="did not return its address"):
        await neon.endpoints.wait_connectable("p-1", "ep-1", timeout=5)
    assert now() == pytest.approx(5, abs=0.1)


@pytest.mark.parametrize("timeout", [-1, float("nan")])
async def test_invalid_timeout_is_rejected(api: Api, neon: NeonClient, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout is"):
        await neon.endpoints.wait_connectable("p-1", "ep-1", timeout=timeout)
    assert api.received == []


async def test_closed_client_ends_the_wait(api: Api) -> None:
    async with PostgresServer(responding(STARTING_UP)) as starting:
        api.postgres_port = starting.port
        serve_compute(api, {})
        async with client_of(api) as neon:
            task = asyncio.create_task(neon.endpoints.wait_connectable("p-1", "ep-1"))
            await asyncio.sleep(2)
        with pytest.raises(ClientClosedError):
            await task
