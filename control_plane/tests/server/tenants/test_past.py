"""The servers of the past: when they are made, shared and removed."""

import asyncio
from collections import Counter
from typing import cast

import pytest

from neonctl_local.engine import databases
from neonctl_local.engine.databases import DesiredState
from neonctl_local.engine.points import PointInTime
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.server.tenants import past
from neonctl_local.server.tenants.cluster_work import ClusterWork
from neonctl_local.server.tenants.past import MAXIMUM, PastServers
from neonctl_local.storage.database import Database

POINT = PointInTime("br-1", None, "0/1")


class Fake:
    """The clusters of a tenant, the work on them, and the tables."""

    def __init__(self) -> None:
        self.existing: set[str] = set()
        self.connections: Counter[str] = Counter()
        self.started = 0
        self.error: ClusterError | None = None
        self.is_deleted = False
        self.servers = PastServers(
            cast("Database", self),
            cast("Clusters", self),
            cast("ClusterWork", self),
            self.connections.__getitem__,
        )

    def ids(self) -> set[str]:
        return self.existing

    async def start(self, _id: str, _desired: object) -> None:
        self.started += 1

    async def delete(self, id: str) -> None:
        if self.error is not None:
            raise self.error
        self.existing.discard(id)

    async def check(self, _point: PointInTime) -> None:
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error

    async def copy_at(self, _point: PointInTime, id: str) -> None:
        await asyncio.sleep(0)
        self.existing.add(id)

    async def read(self, function: object, *_arguments: object) -> DesiredState | None:
        if function is databases.past_route and self.is_deleted:
            return None
        return DesiredState(roles=[], databases=[], settings={}, renamed={})

    async def begin(self, moment: str = "br-1 lsn:0/1") -> str:
        """Start the server of a moment for a new connection."""
        self.connections[moment] += 1
        return await self.servers.start(moment, POINT)


async def test_connections_of_one_moment_share_a_server() -> None:
    fake = Fake()
    ids = await asyncio.gather(*(fake.begin() for _ in range(5)))
    assert set(ids) == fake.existing
    assert len(fake.existing) == 1
    assert await fake.begin("br-1 lsn:0/2") not in ids


async def test_server_is_started_for_each_connection_because_it_can_have_ended() -> None:
    fake = Fake()
    for _ in range(3):
        await fake.begin()
    assert fake.started == 3


async def test_server_is_removed_when_nobody_used_it_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = Fake()
    await fake.begin()
    monkeypatch.setattr(past, "IDLE_SECONDS", 0.0)
    await fake.servers.sweep()
    assert len(fake.existing) == 1
    fake.connections.clear()
    monkeypatch.setattr(past, "IDLE_SECONDS", 3600.0)
    await fake.servers.sweep()
    assert len(fake.existing) == 1
    monkeypatch.setattr(past, "IDLE_SECONDS", 0.0)
    await fake.servers.sweep()
    assert fake.existing == set()
    await fake.begin()
    assert len(fake.existing) == 1


@pytest.mark.virtual_time
async def test_short_connection_between_two_sweeps_keeps_the_server() -> None:
    fake = Fake()
    for _ in range(3):
        await fake.begin()
        fake.connections.clear()
        await asyncio.sleep(past.IDLE_SECONDS - 1)
        await fake.servers.sweep()
        assert len(fake.existing) == 1
    await asyncio.sleep(1)
    await fake.servers.sweep()
    assert fake.existing == set()


async def test_moments_have_a_limit_which_failures_do_not_use_up() -> None:
    fake = Fake()
    fake.error = ClusterError("no such data")
    for number in range(MAXIMUM + 1):
        with pytest.raises(ClusterError, match="no such data"):
            await fake.begin(f"br-1 lsn:1/{number}")
    fake.error = None
    for number in range(MAXIMUM):
        await fake.begin(f"br-1 lsn:0/{number}")
    with pytest.raises(ClusterError, match=f"connected to {MAXIMUM} points in time"):
        await fake.begin("br-1 lsn:2/0")
    await fake.begin("br-1 lsn:0/0")


async def test_client_that_leaves_during_the_copy_leaves_no_server_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = Fake()
    first, *others = (asyncio.create_task(fake.begin()) for _ in range(3))
    await asyncio.sleep(0)
    first.cancel()
    late = asyncio.create_task(fake.begin())
    await asyncio.gather(*others, late)
    assert len(fake.existing) == 1
    fake.connections.clear()
    monkeypatch.setattr(past, "IDLE_SECONDS", 0.0)
    await fake.servers.sweep()
    assert fake.existing == set()


async def test_server_of_a_deleted_branch_is_removed_although_clients_use_it() -> None:
    fake = Fake()
    await fake.begin()
    fake.is_deleted = True
    starting = asyncio.create_task(fake.begin("br-1 lsn:0/2"))
    await asyncio.sleep(0)
    await fake.servers.sweep()
    assert fake.existing == set()
    await starting
    await fake.servers.sweep()
    assert fake.existing == set()


async def test_server_that_cannot_be_removed_is_removed_by_the_next_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake = Fake()
    await fake.begin()
    fake.connections.clear()
    monkeypatch.setattr(past, "IDLE_SECONDS", 0.0)
    fake.error = ClusterError("the disk is full")
    with pytest.raises(ClusterError, match="the disk is full"):
        await fake.servers.sweep()
    fake.error = None
    await fake.servers.sweep()
    assert fake.existing == set()


async def test_no_server_starts_after_the_end() -> None:
    fake = Fake()
    waiting = [asyncio.create_task(fake.begin()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await fake.servers.close()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert fake.existing == set()
    with pytest.raises(ClusterError, match="control plane is stopping"):
        await fake.begin()


async def test_all_servers_are_removed_at_the_end() -> None:
    fake = Fake()
    for number in range(3):
        await fake.begin(f"br-1 lsn:0/{number}")
    await fake.servers.close()
    assert fake.existing == set()
