"""The waits of commands that change something."""

import asyncio

import pytest

from neonctl_async import EndpointSpec
from neonctl_async.cli.finishing import finish, outcomes_view
from neonctl_async.cli.output import Output, Screen
from neonctl_async.cli.session import CommandSession
from tests.connections.postgres_server import PostgresServer, authenticating
from tests.resources.computes import Api, options_of, serve_role
from tests.support.clock import skip_ahead
from tests.support.records import client_of


@pytest.mark.virtual_time
async def test_compute_is_connected_even_if_the_loop_was_blocked_past_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with (
        PostgresServer(authenticating) as server,
        Api(port=server.port) as api,
        client_of(api) as neon,
    ):
        serve_role(api)
        api.respond_to("POST /projects/p-1/branches", api.created("ep-1"))
        api.respond_to("GET /projects/p-1/endpoints/ep-1", {"endpoint": api.endpoint()})
        created = await neon.branches.create("p-1", endpoints=[EndpointSpec(type="read_write")])
        session = CommandSession(Screen(Output.RAW), neon)
        view = outcomes_view("Created", created.branch.id)
        command = asyncio.create_task(
            finish(
                session,
                created,
                view,
                done="created",
                wait=True,
                timeout=2,
                connect=created.endpoints,
            )
        )
        await asyncio.sleep(0.5)
        skip_ahead(monkeypatch, 3)
        await command
        assert options_of(server) == ["endpoint=ep-1"]
