"""``wait="connect"`` and ``endpoints.wait_connectable``."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import NoReturn

import pytest

from neonctl_async import (
    EndpointSpec,
    NeonClient,
    NotConnectableError,
    NotFoundError,
    Wait,
    WaitOptions,
    WaitTimeoutError,
)
from neonctl_async.types import BranchCreated, RoleUpdated
from neonctl_local import LocalControlPlane
from tests.connections.postgres_server import (
    STARTING_UP,
    PostgresServer,
    responding,
)
from tests.models import records
from tests.resources.computes import Api, options_of, serve_role
from tests.resources.test_base import STARTING_METHODS, call
from tests.support.clock import now, skip_ahead
from tests.support.methods import Method
from tests.support.records import client_of
from tests.support.server import http_response

pytestmark = pytest.mark.virtual_time

READ_WRITE = EndpointSpec(type="read_write")
REFUSING = {
    "branches.create",  # without endpoints
    "branches.create_anonymized",
    "branches.delete",
    "branches.update",
    "endpoints.delete",
    "endpoints.suspend",
    "projects.delete",
    "snapshots.create",
    "snapshots.delete",
}
"""The methods that cannot wait for connections."""


@pytest.fixture
async def neon(api: Api) -> AsyncIterator[NeonClient]:
    async with client_of(api) as neon:
        yield neon


async def test_creation_is_connected_after_its_operations(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    api.respond_to("POST /projects/p-1/branches", api.created("ep-1"))
    created = await neon.branches.create("p-1", endpoints=[READ_WRITE], wait="connect")
    assert [record.status for record in created.operations] == ["finished"]
    assert server.startups == [
        {"user": "ada", "database": "shop", "options": "endpoint=ep-1"},
    ]
    assert server.times[0] >= 1.0
    assert api.lines == ["POST /projects/p-1/branches"]


async def test_creation_is_connected_even_if_the_loop_was_blocked_past_the_deadline(
    api: Api, neon: NeonClient, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.respond_to("POST /projects/p-1/branches", api.created("ep-1"))
    wait = WaitOptions(timeout=2, connect=True)
    call = asyncio.create_task(neon.branches.create("p-1", endpoints=[READ_WRITE], wait=wait))
    await asyncio.sleep(0.5)
    skip_ahead(monkeypatch, 3)
    await call
    assert options_of(server) == ["endpoint=ep-1"]


async def test_address_is_read_even_if_the_loop_was_blocked_past_the_deadline(
    api: Api, neon: NeonClient, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_role(api, api.operation("ep-1"))
    api.respond_to("GET /projects/p-1/endpoints/ep-1", {"endpoint": api.endpoint()})
    call = asyncio.create_task(create_role(neon, WaitOptions(timeout=2, connect=True)))
    await asyncio.sleep(0.5)
    skip_ahead(monkeypatch, 3)
    await call
    assert options_of(server) == ["endpoint=ep-1"]


async def test_password_is_not_sent(api: Api, neon: NeonClient, server: PostgresServer) -> None:
    api.respond_to("POST /projects/p-1/branches", api.created("ep-1"))
    await neon.branches.create("p-1", endpoints=[READ_WRITE], wait="connect")
    await asyncio.sleep(0.1)
    assert server.after_request == [b""]


async def test_other_computes_of_a_branch_share_the_address_of_the_first(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    api.respond_to("POST /projects/p-1/branches", api.created("ep-1", "ep-2"))
    await neon.branches.create("p-1", endpoints=[READ_WRITE] * 2, wait="connect")
    assert options_of(server) == ["endpoint=ep-1", "endpoint=ep-2"]
    assert api.lines == ["POST /projects/p-1/branches"]


async def create_role(neon: NeonClient, wait: Wait = "connect") -> RoleUpdated:
    return await neon.roles.create("p-1", "br-1", name="ada", wait=wait)


async def test_address_is_read_if_the_response_has_none(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    serve_role(api, api.operation("ep-1"))
    api.respond_to("GET /projects/p-1/endpoints/ep-1", {"endpoint": api.endpoint()})
    await create_role(neon)
    assert options_of(server) == ["endpoint=ep-1"]
    assert api.lines == [
        "POST /projects/p-1/branches/br-1/roles",
        "GET /projects/p-1/endpoints/ep-1",
        "GET /projects/p-1/branches/br-1/databases",
        "GET /projects/p-1/connection_uri",
    ]
    assert api.received[-1].target.partition("?")[2] == (
        "database_name=shop&role_name=ada&branch_id=br-1&endpoint_id=ep-1"
    )


async def test_addresses_of_many_computes_need_three_requests(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    ids = [f"ep-{n}" for n in range(5)]
    serve_role(api, *(api.operation(id) for id in ids))
    listed = [api.endpoint(id) for id in [*ids, "ep-other"]]
    api.respond_to("GET /projects/p-1/endpoints", {"endpoints": listed})
    api.respond_to("GET /projects/p-1/connection_uri", {"uri": api.uri("ep-0")})
    await create_role(neon)
    assert options_of(server) == [f"endpoint={id}" for id in ids]
    assert api.lines[1:] == [
        "GET /projects/p-1/endpoints",
        "GET /projects/p-1/branches/br-1/databases",
        "GET /projects/p-1/connection_uri",
    ]


async def test_host_name_of_a_compute_is_its_address(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[object] = []

    def getaddrinfo(host: object, port: object, **_options: object) -> NoReturn:
        looked_up.append((host, port))
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async with Api(port=server.port, host="ep-1.example.com") as api, client_of(api) as neon:
        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
        response = {"endpoint": api.endpoint(), "operations": [api.operation("ep-1")]}
        api.respond_to("POST /projects/p-1/endpoints/ep-1/start", response)
        with pytest.raises(NotConnectableError) as caught:
            await neon.endpoints.start("p-1", "ep-1", wait=WaitOptions(timeout=5, connect=True))
    assert (caught.value.host, caught.value.stage) == ("ep-1.example.com", "dns")
    assert looked_up[0] == ("ep-1.example.com", 5432)
    assert api.lines == ["POST /projects/p-1/endpoints/ep-1/start"]


async def test_computes_that_the_call_suspends_are_not_connected(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    serve_role(api, api.operation("ep-1"), api.operation("ep-1", "suspend_compute"))
    await create_role(neon)
    assert server.connections == 0


async def test_call_without_a_compute_waits_for_its_operations_only(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    serve_role(api, api.operation(None))
    updated = await create_role(neon)
    assert [record.status for record in updated.operations] == ["finished"]
    assert server.connections == 0


async def test_operations_and_connections_share_the_deadline(api: Api, neon: NeonClient) -> None:
    async with PostgresServer(responding(STARTING_UP)) as starting:
        api.postgres_port = starting.port
        api.respond_to("POST /projects/p-1/branches", api.created("ep-1"))
        with pytest.raises(NotConnectableError, match=r"after 3 s .*starting up") as caught:
            await neon.branches.create(
                "p-1", endpoints=[READ_WRITE], wait=WaitOptions(timeout=3, connect=True)
            )
    assert now() == pytest.approx(3, abs=0.1)
    error = caught.value
    assert isinstance(error.result, BranchCreated)
    assert error.maybe_delivered
    assert [record.status for record in error.result.operations] == ["finished"]
    assert error.settled == error.result.operations


async def test_deadline_may_pass_before_the_operations_finish(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    api.respond_to("POST /projects/p-1/branches", api.created("ep-1"))
    with pytest.raises(WaitTimeoutError, match="1 of 1 operations did not finish"):
        await neon.branches.create(
            "p-1", endpoints=[READ_WRITE], wait=WaitOptions(timeout=0.5, connect=True)
        )
    assert server.connections == 0


async def test_failed_lookup_carries_the_response(api: Api, neon: NeonClient) -> None:
    serve_role(api, api.operation("ep-1"))
    with pytest.raises(NotFoundError) as caught:
        await create_role(neon)
    assert isinstance(caught.value.result, RoleUpdated)
    assert caught.value.maybe_delivered


async def test_lookup_ends_at_the_deadline(api: Api, neon: NeonClient) -> None:
    async def hang(_writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    serve_role(api, api.operation("ep-1"))
    api.responses["GET /projects/p-1/endpoints/ep-1"] = hang
    with pytest.raises(NotConnectableError, match="did not return its address") as caught:
        await create_role(neon, WaitOptions(timeout=5, connect=True))
    assert now() == pytest.approx(5, abs=0.1)
    assert (caught.value.endpoint_id, caught.value.stage) == ("ep-1", "dns")
    assert isinstance(caught.value.result, RoleUpdated)


async def test_branch_without_databases_has_no_address(api: Api, neon: NeonClient) -> None:
    serve_role(api, api.operation("ep-1"))
    api.respond_to("GET /projects/p-1/endpoints/ep-1", {"endpoint": api.endpoint()})
    api.respond_to("GET /projects/p-1/branches/br-1/databases", {"databases": []})
    with pytest.raises(NotConnectableError, match="branch br-1 has no database") as caught:
        await create_role(neon)
    assert caught.value.is_final


async def test_invalid_uri_is_an_error_without_the_password(api: Api, neon: NeonClient) -> None:
    serve_role(api, api.operation("ep-1"))
    api.respond_to("GET /projects/p-1/endpoints/ep-1", {"endpoint": api.endpoint()})
    api.respond_to("GET /projects/p-1/connection_uri", {"uri": "postgresql://ada:npg_secret@/"})
    with pytest.raises(NotConnectableError, match="its connection URI cannot be read") as caught:
        await create_role(neon)
    assert "npg_secret" not in str(caught.value)


@pytest.mark.parametrize("method", STARTING_METHODS, ids=str)
async def test_each_method_waits_for_connections_or_refuses(
    api: Api, neon: NeonClient, server: PostgresServer, method: Method
) -> None:
    response = {
        "branch": {**records.BRANCH, "parent_id": "br-0"},
        "database": records.DATABASE,
        "endpoint": api.endpoint(),
        "jwks": records.JWKS,
        "operations": [api.operation("ep-1")],
        "project": records.PROJECT,
        "role": records.ROLE,
        "snapshot": records.SNAPSHOT,
        "databases": [records.DATABASE],
        "uri": api.uri(),
    }
    api.fault = lambda request: (
        None if "/operations" in request.path else http_response(200, response)
    )
    if str(method) in REFUSING:
        with pytest.raises(ValueError, match=r"^wait requires a connection, but "):
            await call(method, neon, wait="connect")
        assert api.received == []
    else:
        await call(method, neon, wait="connect")
        assert options_of(server) == ["endpoint=ep-1"]


async def test_disabled_compute_is_refused(api: Api, neon: NeonClient) -> None:
    with pytest.raises(ValueError, match="a disabled compute accepts none"):
        await neon.endpoints.update("p-1", "ep-1", disabled=True, wait="connect")
    with pytest.raises(ValueError, match="a disabled compute accepts none"):
        await neon.endpoints.create(
            "p-1", branch_id="br-1", type="read_only", disabled=True, wait="connect"
        )
    assert api.received == []


async def test_anonymized_branch_with_computes_is_connected(
    api: Api, neon: NeonClient, server: PostgresServer
) -> None:
    api.respond_to("POST /projects/p-1/branch_anonymized", api.created("ep-1"))
    await neon.branches.create_anonymized("p-1", endpoints=[READ_WRITE], wait="connect")
    assert options_of(server) == ["endpoint=ep-1"]


async def test_emulated_compute_is_created_but_never_connectable(
    control_plane: LocalControlPlane,
) -> None:
    async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
        with pytest.raises(NotConnectableError, match="emulates its databases") as caught:
            await neon.projects.create(name="shop", wait="connect")
        assert await neon.projects.list().collect() != []
    assert caught.value.is_final
    assert caught.value.result is not None
