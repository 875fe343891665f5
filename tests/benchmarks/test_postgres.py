"""The Postgres server of the peers."""

import asyncio

import pytest

from benchmarks.servers.postgres import PostgresServer, newest_installation
from benchmarks.servers.queries import execute, fetch_number
from neonctl_local.postgres.errors import PostgresUnavailableError

pytestmark = pytest.mark.postgres


def test_server_keeps_its_data_over_a_restart_and_deletes_it_at_the_end() -> None:
    try:
        server = PostgresServer(newest_installation())
    except PostgresUnavailableError as error:
        pytest.skip(str(error))
    with server:
        asyncio.run(execute(server.uri(), "CREATE TABLE numbers AS SELECT 7 AS number"))
        server.stop()
        server.start()
        assert asyncio.run(fetch_number(server.uri(), "SELECT number FROM numbers")) == 7
        assert server.socket.is_socket()
    assert not server.folder.exists()
