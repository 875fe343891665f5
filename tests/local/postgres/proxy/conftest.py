"""A Postgres server, and proxies to it."""

from collections.abc import AsyncIterator, Iterator

import pytest

from neonctl_async.local.postgres.proxy.connector import Route
from neonctl_async.local.postgres.proxy.errors import ComputeRefusedError
from neonctl_async.local.postgres.proxy.proxy import Proxy
from tests.local.postgres.proxy.server import Server, find_programs, running_server

ENDPOINT = "ep-late-frost-12345678"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A Postgres server that all tests share."""
    programs = find_programs()
    if programs is None:
        pytest.skip("Postgres is not installed")
    with running_server(programs, max_connections="120") as server:
        yield server


class Routes:
    """The computes behind a proxy: each has the same server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.requested: list[str] = []

    async def find(self, endpoint_id: str) -> Route:
        self.requested.append(endpoint_id)
        if endpoint_id.startswith("ep-gone"):
            raise ComputeRefusedError("The requested endpoint could not be found.")
        return Route(self.server.socket, read_only=endpoint_id.startswith("ep-read"))


@pytest.fixture
def routes(server: Server) -> Routes:
    """The computes behind the proxy of the test."""
    return Routes(server)


@pytest.fixture
async def proxy(routes: Routes) -> AsyncIterator[Proxy]:
    """A proxy on a free port. It has to close every connection."""
    proxy = Proxy(routes.find, host="127.0.0.1", port=0, tls=None)
    await proxy.start()
    yield proxy
    await proxy.stop()
    assert proxy.connections() == 0
