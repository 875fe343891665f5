"""A call returns when the object is ready, even if Neon lists no operation for it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from neonctl_async import (
    EndpointSpec,
    NeonClient,
    NotConnectableError,
    PollPolicy,
    RateBudget,
    StateTimeoutError,
    WaitOptions,
)
from neonctl_async.types import EnsuredBranch, EnsuredEndpoint
from tests.connections.postgres_server import PostgresServer, authenticating
from tests.models.records import BRANCH, DATABASE, ENDPOINT, ROLE
from tests.resources.computes import Api, options_of, serve_role
from tests.support.clock import skip_ahead
from tests.support.records import PROJECT, client_of
from tests.support.server import MisbehavingServer, Received, Respond, http_response
from tests.support.until import until

MAIN = {**BRANCH, "id": "br-main", "name": "main", "default": True, "project_id": PROJECT}


class Creating(MisbehavingServer):
    """A server with a branch and a compute that need ``reads``, but have no operations."""

    def __init__(self, reads: int) -> None:
        super().__init__(self._respond_to)
        self.left = reads

    @property
    def _state(self) -> str:
        return "ready" if self.left <= 0 else "init"

    @property
    def _branch(self) -> dict[str, object]:
        return {
            **BRANCH,
            "id": "br-new",
            "name": "preview",
            "project_id": PROJECT,
            "parent_id": "br-main",
            "current_state": self._state,
        }

    @property
    def _compute(self) -> dict[str, object]:
        state = "active" if self._state == "ready" else "init"
        return {**ENDPOINT, "id": "ep-new", "branch_id": "br-new", "current_state": state}

    def _respond_to(self, request: Received) -> Respond:
        path = request.path.partition(PROJECT)[2]
        if path in {"/branches/br-new", "/endpoints/ep-new"}:
            self.left -= 1
        contents: dict[str, object] = {
            "/branches": {"branches": [MAIN, self._branch]},
            "/endpoints": {"endpoints": [self._compute]},
            "/operations": {"operations": []},
            "/branches/br-new": {"branch": self._branch},
            "/endpoints/ep-new": {"endpoint": self._compute},
        }
        return http_response(content=contents[path])


async def ensure(server: Creating, wait: Any) -> EnsuredBranch:
    async with (
        server,
        NeonClient(
            "napi_test",
            base_url=server.base_url,
            budget=RateBudget.unlimited(),
            polling=PollPolicy(initial=0.01, maximum=0.02),
        ) as neon,
    ):
        return await neon.branches.ensure(
            PROJECT, name="preview", endpoints=[EndpointSpec(type="read_write")], wait=wait
        )


async def test_state_is_waited_for_if_there_are_no_operations() -> None:
    server = Creating(reads=5)
    assert not (await ensure(server, wait=True)).created
    assert server.left <= 0


async def test_without_wait_the_state_is_not_read() -> None:
    server = Creating(reads=5)
    ensured = await ensure(server, wait=False)
    assert (ensured.branch.current_state, ensured.operations) == ("init", [])
    assert server.left == 5


async def test_state_that_is_not_reached_is_an_error_with_the_result() -> None:
    with pytest.raises(StateTimeoutError, match=r"branch br-new .* did not become") as caught:
        await ensure(Creating(reads=10_000), wait=0.1)
    assert isinstance(caught.value.result, EnsuredBranch)


@pytest.mark.virtual_time
async def test_each_state_is_read_again_if_the_loop_was_blocked_past_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Creating(reads=2)
    call = asyncio.create_task(ensure(server, wait=30))
    await until(lambda: server.left == 1)
    skip_ahead(monkeypatch, 60)
    await call
    assert server.left < 0


@asynccontextmanager
async def computes() -> AsyncGenerator[tuple[Api, PostgresServer, NeonClient]]:
    """Run an API with an existing branch, role and database, and the server of its computes."""
    child = {**BRANCH, "id": "br-1", "name": "preview", "parent_id": "br-main"}
    async with (
        PostgresServer(authenticating) as server,
        Api(port=server.port) as api,
        client_of(api) as neon,
    ):
        serve_role(api)
        existing = [api.endpoint("ep-1"), api.endpoint("ep-2", type="read_only")]
        api.respond_to("GET /projects/p-1/branches", {"branches": [MAIN, child]})
        api.respond_to("GET /projects/p-1/endpoints", {"endpoints": existing})
        api.respond_to("GET /projects/p-1/branches/br-1/roles/app", {"role": ROLE})
        api.respond_to("GET /projects/p-1/branches/br-1/databases/shop", {"database": DATABASE})
        yield api, server, neon


@pytest.mark.virtual_time
async def test_created_role_is_connected_even_if_the_loop_was_blocked_past_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with computes() as (api, server, neon):
        serve_role(api, api.operation("ep-1"))
        api.respond_to("GET /projects/p-1/branches/br-1/roles/ada", {"message": "none"}, 404)
        api.respond_to("GET /projects/p-1/endpoints/ep-1", {"endpoint": api.endpoint("ep-1")})
        wait = WaitOptions(timeout=2, connect=True)
        call = asyncio.create_task(neon.roles.ensure("p-1", "br-1", name="ada", wait=wait))
        await asyncio.sleep(0.5)
        skip_ahead(monkeypatch, 3)
        await call
        assert options_of(server)


@pytest.mark.virtual_time
async def test_computes_of_an_adopted_branch_are_connected() -> None:
    async with computes() as (api, server, neon):
        specs = [EndpointSpec(type="read_write"), EndpointSpec(type="read_only")]
        adopted = await neon.branches.ensure("p-1", name="preview", endpoints=specs, wait="connect")
        assert [one.id for one in adopted.endpoints] == ["ep-1", "ep-2"]
        assert options_of(server) == ["endpoint=ep-1", "endpoint=ep-2"]
        assert api.lines[:2] == ["GET /projects/p-1/branches", "GET /projects/p-1/endpoints"]


@pytest.mark.virtual_time
async def test_compute_of_an_adopted_role_and_database_is_connected() -> None:
    async with computes() as (_api, server, neon):
        await neon.roles.ensure("p-1", "br-1", name="app", wait="connect")
        await neon.databases.ensure("p-1", "br-1", name="shop", owner_name="owner", wait="connect")
        assert options_of(server) == ["endpoint=ep-1"] * 2


@pytest.mark.virtual_time
async def test_compute_that_accepts_no_connection_is_an_error_with_the_result() -> None:
    async with computes() as (_api, server, neon):
        await server.__aexit__()
        with pytest.raises(NotConnectableError) as caught:
            await neon.endpoints.ensure(
                "p-1", branch_id="br-1", wait=WaitOptions(timeout=2, connect=True)
            )
        assert isinstance(caught.value.result, EnsuredEndpoint)
        await server.__aenter__()


@pytest.mark.virtual_time
async def test_wait_for_connections_without_a_compute_is_refused() -> None:
    async with computes() as (api, _server, neon):
        with pytest.raises(ValueError, match="requires a connection, but the branch has no"):
            await neon.branches.ensure("p-1", name="preview", wait="connect")
        with pytest.raises(ValueError, match="requires a connection, but a disabled"):
            await neon.endpoints.ensure("p-1", branch_id="br-1", disabled=True, wait="connect")
        assert api.lines == []
