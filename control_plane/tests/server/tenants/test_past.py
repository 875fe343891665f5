"""The servers with the past of branches, without servers."""

import asyncio
from typing import cast

import pytest

from neonctl_local.engine.points import PointInTime
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.server.tenants import past
from neonctl_local.server.tenants.cluster_work import ClusterWork
from neonctl_local.server.tenants.past import PastServers
from neonctl_local.storage.database import Database


class FakeClusters:
    """Clusters whose first copy fails."""

    def __init__(self) -> None:
        self.copies: set[str] = set()
        self.may_fail = asyncio.Event()
        self._failed = False

    def ids(self) -> set[str]:
        return self.copies

    async def check(self, _point: PointInTime) -> None:
        if not self._failed:
            await self.may_fail.wait()
            self._failed = True
            raise ClusterError("the disk is full")

    async def copy_at(self, _point: PointInTime, id: str) -> None:
        self.copies.add(id)

    async def start(self, _id: str, _desired: object) -> None:
        return

    async def delete(self, id: str) -> None:
        self.copies.discard(id)

    async def read(self, *_query: object) -> object:
        return None


async def test_server_that_a_second_connection_starts_is_removed_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(past, "IDLE_SECONDS", 0.0)
    monkeypatch.setattr(past, "desired", lambda state: state)
    fake = FakeClusters()
    servers = PastServers(
        cast("Database", fake), cast("Clusters", fake), cast("ClusterWork", fake), lambda _id: 0
    )
    point = PointInTime("br-a", 0, None)
    first, second = (asyncio.create_task(servers.start("ep-a", point)) for _ in range(2))
    await asyncio.sleep(0)
    fake.may_fail.set()
    with pytest.raises(ClusterError):
        await first
    assert fake.copies == {await second}
    await servers.sweep()
    assert fake.copies == set()
