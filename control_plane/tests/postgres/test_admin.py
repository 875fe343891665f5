import asyncio
import sys
from pathlib import Path
from typing import Any

import asyncpg
import msgspec
import pytest

from neonctl_local.postgres.admin import Address, connect, load_driver
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import DatabaseSpec
from neonctl_local.postgres.errors import ClusterError, PostgresUnavailableError
from tests.support.clusters import DESIRED, fetch

pytestmark = pytest.mark.postgres


def test_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(PostgresUnavailableError, match=r"pip install 'neonctl-local\[postgres\]'"):
        load_driver()


async def test_server_that_is_not_there_is_an_error_of_the_cluster(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="Postgres refused the work of the administrator"):
        async with connect(Address(tmp_path, 1), "password", (15, 0)):
            pass


async def test_wrong_password_of_the_administrator_is_an_error_of_the_cluster(
    clusters: Clusters, main: str
) -> None:
    socket = clusters.socket(main)
    assert socket is not None
    address = Address(socket.parent, int(socket.suffix.removeprefix(".")))
    with pytest.raises(ClusterError, match="password authentication failed"):
        async with connect(address, "wrong", (15, 0)):
            pass


async def test_administrator_waits_while_postgres_recovers(
    clusters: Clusters, main: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect_once = asyncpg.connect
    refusals = ["the database system is in recovery mode", "the database system is starting up"]

    async def refuse_at_first(*args: Any, **kwargs: Any) -> Any:  # Any: the arguments of asyncpg
        if refusals:
            raise asyncpg.CannotConnectNowError(refusals.pop())
        return await connect_once(*args, **kwargs)

    monkeypatch.setattr(asyncpg, "connect", refuse_at_first)
    databases = [*DESIRED.databases, DatabaseSpec("second", "alice")]
    await clusters.configure(main, msgspec.structs.replace(DESIRED, databases=databases))
    assert refusals == []
    found = await fetch(clusters, main, "SELECT datname FROM pg_database WHERE datname = 'second'")
    assert len(found) == 1


@pytest.mark.fact("branch-data-8")
async def test_copies_keep_no_replication_slot(clusters: Clusters, main: str) -> None:
    await asyncio.gather(clusters.copy(main, "br-a"), clusters.copy(main, "br-b"))
    await clusters.start("br-a", DESIRED)
    for id in (main, "br-a"):
        assert await fetch(clusters, id, "SELECT slot_name FROM pg_replication_slots") == []
