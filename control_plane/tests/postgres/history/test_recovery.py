"""Copies of clusters as they were at an earlier moment."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from unittest import mock

import pytest

from neonctl_local.postgres import clusters as clusters_module
from neonctl_local.postgres import dumps
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.cluster import Cluster
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.history import bases
from neonctl_local.postgres.history.bases import Base, Moment
from neonctl_local.postgres.template import Template
from tests.support.clusters import DESIRED, execute, fetch, kill_servers, servers
from tests.support.until import until

pytestmark = [pytest.mark.postgres, pytest.mark.long]
ROWS = "SELECT n FROM rows ORDER BY n"


@asynccontextmanager
async def opened(
    installation: Installation, account: ServerAccount | None
) -> AsyncGenerator[Clusters]:
    """Open clusters with history, one of which runs."""
    versions = {installation.major: installation}
    clusters = Clusters(versions, account, directory=None, durable=False, history=True)
    await clusters.open()
    try:
        await clusters.initialize("br-main", installation.major)
        await clusters.start("br-main", DESIRED)
        await execute(clusters, "br-main", "CREATE TABLE rows (n int)")
        yield clusters
    finally:
        await clusters.close()


@pytest.fixture
async def clusters(
    installation: Installation,
    template: Template,  # noqa: ARG001 - as in the other tests of clusters
    account: ServerAccount | None,
    temporary_directory: Path,  # noqa: ARG001 - the directory of all temporary files
) -> AsyncIterator[Clusters]:
    """Clusters with history, one of which runs."""
    async with opened(installation, account) as clusters:
        yield clusters


@pytest.mark.usefixtures("temporary_directory")
async def test_copy_has_the_rows_of_its_time(
    each_installation: Installation, account: ServerAccount | None
) -> None:
    async with opened(each_installation, account) as clusters:
        await execute(clusters, "br-main", "INSERT INTO rows VALUES (1)")
        first = datetime.now(UTC)
        await execute(clusters, "br-main", "INSERT INTO rows VALUES (2)")
        [lsn] = await fetch(clusters, "br-main", "SELECT pg_current_wal_lsn()::text")
        await execute(clusters, "br-main", "INSERT INTO rows VALUES (3)")
        for moment, rows in [(Moment(first), [1]), (Moment(lsn=lsn), [1, 2])]:
            assert await rows_at(clusters, "br-main", moment) == rows


async def kill(clusters: Clusters, id: str) -> None:
    """Kill the server of a cluster, and wait until the cluster has noticed that."""
    root = await asyncio.to_thread(clusters.root.resolve)
    await kill_servers(root)
    while clusters.is_running(id) or await servers(root):  # noqa: ASYNC110 - no event shows the end of another process
        await asyncio.sleep(0.01)


async def rows_at(clusters: Clusters, id: str, moment: Moment) -> list[int]:
    """Return the rows of a cluster at a moment."""
    await clusters.check_moment(id, moment)
    await clusters.copy_past(id, "br-past", moment)
    await clusters.start("br-past", DESIRED)
    return await fetch(clusters, "br-past", ROWS)


async def test_history_continues_after_a_kill(clusters: Clusters) -> None:
    await execute(clusters, "br-main", "INSERT INTO rows VALUES (1)")
    first = Moment(datetime.now(UTC))
    await execute(clusters, "br-main", "INSERT INTO rows VALUES (2)")
    await kill(clusters, "br-main")
    assert await rows_at(clusters, "br-main", first) == [1]
    assert await rows_at(clusters, "br-main", Moment(datetime.now(UTC))) == [1, 2]
    await clusters.start("br-main", DESIRED)
    await execute(clusters, "br-main", "INSERT INTO rows VALUES (3)")
    assert await rows_at(clusters, "br-main", first) == [1]


async def test_copy_of_a_killed_server_has_a_history_of_its_own(clusters: Clusters) -> None:
    await execute(clusters, "br-main", "INSERT INTO rows VALUES (1)")
    await kill(clusters, "br-main")
    await clusters.copy("br-main", "br-copy")
    created = Moment(datetime.now(UTC))
    assert await rows_at(clusters, "br-copy", created) == [1]
    await clusters.start("br-copy", DESIRED)
    await execute(clusters, "br-copy", "INSERT INTO rows VALUES (2)")
    assert await rows_at(clusters, "br-copy", created) == [1]


@pytest.mark.parametrize("source", ["past", "stopped"])
async def test_copy_that_never_started_needs_no_history(
    clusters: Clusters, caplog: pytest.LogCaptureFixture, source: str
) -> None:
    if source == "past":
        await clusters.copy_past("br-main", "br-copy", Moment(datetime.now(UTC)))
    else:
        await clusters.stop("br-main")
        await clusters.copy("br-main", "br-copy")
    await clusters.keep_history({"br-copy": 3600})
    assert caplog.messages == []
    created = Moment(datetime.now(UTC))
    await clusters.start("br-copy", DESIRED)
    await execute(clusters, "br-copy", "INSERT INTO rows VALUES (1)")
    assert await rows_at(clusters, "br-copy", created) == []


@pytest.mark.parametrize("reason", ["age", "size"])
async def test_new_copy_replaces_old_history(clusters: Clusters, reason: str) -> None:
    before = Moment(datetime.now(UTC))
    await execute(clusters, "br-main", "INSERT INTO rows VALUES (1)")
    await execute(clusters, "br-main", "INSERT INTO rows SELECT generate_series(2, 600000)")
    with mock.patch.object(bases, "INTERVAL", 0):
        await clusters.keep_history({"br-main": 3600})
    after = Moment(datetime.now(UTC))
    await execute(clusters, "br-main", "DELETE FROM rows WHERE n > 2")
    assert await rows_at(clusters, "br-main", before) == []
    if reason == "age":
        with mock.patch.object(bases, "GRACE", 0):
            await clusters.keep_history({"br-main": 0})
    else:
        assert await clusters.limit_history(0)
        assert not await clusters.limit_history(0)
    assert len(await rows_at(clusters, "br-main", after)) == 600000
    with pytest.raises(ClusterError, match="its history starts at"):
        await clusters.check_moment("br-main", before)


async def test_limit_keeps_the_only_copy_of_a_branch_whose_sibling_drops_an_equal_one(
    clusters: Clusters,
) -> None:
    await clusters.stop("br-main")
    for id in ("br-1", "br-2"):
        await clusters.copy("br-main", id)
        await clusters.start(id, DESIRED)
        await execute(clusters, id, "INSERT INTO rows VALUES (1)")
    with mock.patch.object(bases, "INTERVAL", 0):
        await execute(clusters, "br-1", "INSERT INTO rows SELECT generate_series(2, 600000)")
        await clusters.keep_history({"br-1": 3600})
    now = Moment(datetime.now(UTC))
    assert await clusters.limit_history(0)
    assert await rows_at(clusters, "br-2", now) == [1]


@pytest.mark.parametrize("started", [True, False])
async def test_limit_keeps_the_history_of_a_branch_that_replaces_another_meanwhile(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch, started: bool
) -> None:
    chosen, released = asyncio.Event(), asyncio.Event()

    def choose(
        usage: Mapping[str, Sequence[tuple[Base, int]]], _limit: int
    ) -> dict[str, list[Base]]:
        chosen.set()
        return {id: [usage[id][0][0]] for id in ("br-busy", "br-main")}

    async def describe(_cluster: Cluster, _database: str) -> str:
        await released.wait()
        return ""

    monkeypatch.setattr(clusters_module, "oversized", choose)
    monkeypatch.setattr(dumps, "describe_tables", describe)
    for id in ("br-busy", "br-new"):
        await clusters.copy("br-main", id)
    await clusters.start("br-busy", DESIRED)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(clusters.describe_schema("br-busy", "app"))
        tasks.create_task(clusters.limit_history(0))
        await chosen.wait()  # the oldest copy of br-busy cannot be dropped yet
        await clusters.delete("br-main")
        await clusters.rename("br-new", "br-main")
        created = Moment(datetime.now(UTC))
        if started:
            await clusters.start("br-main", DESIRED)
            await execute(clusters, "br-main", "INSERT INTO rows VALUES (1)")
        released.set()
    assert await rows_at(clusters, "br-main", created) == []


@pytest.mark.parametrize("source", ["new", "stopped"])
async def test_prepared_copy_has_no_history_of_an_earlier_copy(
    clusters: Clusters, caplog: pytest.LogCaptureFixture, source: str
) -> None:
    big = "AS SELECT repeat('x', 500) FROM generate_series(1, 8000)"  # fills several WAL segments
    await clusters.stop("br-main")
    if source == "new":
        await clusters.copy("br-main", "br-source")
        await clusters.delete("br-main")
        await clusters.rename("br-source", "br-main")
    await clusters.prepare("br-main", 1)
    await until(lambda: clusters.prepared("br-main") == 1)
    for n in (1, 2):
        await clusters.copy("br-main", "br-copy")
        await clusters.start("br-copy", DESIRED)
        await execute(
            clusters, "br-copy", f"CREATE TABLE first {big}", f"INSERT INTO rows VALUES ({n})"
        )
        now = Moment(datetime.now(UTC))
        await execute(clusters, "br-copy", "DELETE FROM rows", f"CREATE TABLE last {big}")
        assert await rows_at(clusters, "br-copy", now) == [n]
        await clusters.delete("br-copy")
    assert caplog.messages == []


async def test_wal_that_is_missing_is_an_error(clusters: Clusters) -> None:
    moment = Moment(datetime.now(UTC))
    await execute(clusters, "br-main", "INSERT INTO rows SELECT generate_series(1, 100000)")
    [history] = await asyncio.to_thread(lambda: list(clusters.root.glob("clusters/*.history")))
    await clusters.stop("br-main")
    segments = await asyncio.to_thread(lambda: sorted((history / "wal").iterdir()))
    missing = segments[len(segments) // 2]
    # While the archiver is busy, the server keeps its own copy.
    for directory in (history / "wal", history.with_suffix("") / "pg_wal"):
        await asyncio.to_thread((directory / missing.name).unlink, missing_ok=True)
    with pytest.raises(ClusterError, match="lacks WAL after"):
        await clusters.copy_past("br-main", "br-past", moment)
