import asyncio
import sys
from pathlib import Path

import pytest

from neonctl_async.local.postgres.admin import Address, connect, load_driver
from neonctl_async.local.postgres.clusters import Clusters
from neonctl_async.local.postgres.errors import ClusterError, PostgresUnavailableError
from tests.support.clusters import DESIRED, fetch

pytestmark = pytest.mark.postgres


def test_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(PostgresUnavailableError, match=r"pip install 'neonctl-async\[postgres\]'"):
        load_driver()


async def test_server_that_is_not_there_is_an_error_of_the_cluster(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="Postgres refused the work of the administrator"):
        async with connect(Address(tmp_path, 1), "password"):
            pass


async def test_wrong_password_of_the_administrator_is_an_error_of_the_cluster(
    clusters: Clusters, main: str
) -> None:
    socket = clusters.socket(main)
    assert socket is not None
    address = Address(socket.parent, int(socket.suffix.removeprefix(".")))
    with pytest.raises(ClusterError, match="password authentication failed"):
        async with connect(address, "wrong"):
            pass


async def test_copies_keep_no_replication_slot(clusters: Clusters, main: str) -> None:
    await asyncio.gather(clusters.copy(main, "br-a"), clusters.copy(main, "br-b"))
    await clusters.start("br-a", DESIRED)
    for id in (main, "br-a"):
        assert await fetch(clusters, id, "SELECT slot_name FROM pg_replication_slots") == []
