import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from neonctl_local.postgres import clusters as clusters_module
from neonctl_local.postgres import directories as directories_module
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import Desired
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.servers.postmaster import Postmaster
from tests.support.clusters import (
    DESIRED,
    LEDGER,
    PASSWORD,
    asyncpg,
    connect,
    data_directories,
    execute,
    fetch,
    servers,
    session,
    transfer_until,
)
from tests.support.until import until

pytestmark = pytest.mark.postgres


async def test_started_cluster_has_its_role_and_its_database(clusters: Clusters, main: str) -> None:
    assert clusters.is_running(main)
    owner = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'app'"
    assert await fetch(clusters, main, owner) == ["alice"]
    groups = "SELECT pg_has_role('alice', 'neon_superuser', 'member')"
    assert await fetch(clusters, main, groups) == [True]
    with pytest.raises(asyncpg.InvalidPasswordError):
        await connect(clusters.socket(main), password="wrong")


async def test_start_and_initialize_twice_keep_the_data(
    clusters: Clusters, main: str, installation: Installation
) -> None:
    async with session(clusters, main) as connection:
        await connection.execute("CREATE TABLE kept ()")
        await clusters.start(main, DESIRED)
        await clusters.initialize(main, installation.major)
        assert await connection.fetchval("SELECT count(*) FROM kept") == 0


async def test_copy_of_a_running_cluster_is_independent(clusters: Clusters, main: str) -> None:
    await execute(clusters, main, LEDGER)
    await clusters.copy(main, "br-copy")
    assert not clusters.is_running("br-copy")
    await clusters.start("br-copy", DESIRED)
    await execute(clusters, "br-copy", "DELETE FROM accounts WHERE id > 5")
    await execute(clusters, main, "DELETE FROM accounts WHERE id > 9")
    assert await fetch(clusters, "br-copy", "SELECT count(*) FROM accounts") == [5]
    assert await fetch(clusters, main, "SELECT count(*) FROM accounts") == [9]


async def test_copies_under_writes_have_all_earlier_rows_and_are_consistent(
    clusters: Clusters, main: str
) -> None:
    await execute(clusters, main, LEDGER)
    stop = asyncio.Event()
    writing = asyncio.create_task(transfer_until(clusters, main, stop))
    await until(lambda: _has_transfers(clusters, main, 20))
    [earlier] = await fetch(clusters, main, "SELECT max(id) FROM transfers")
    copies = [f"br-{number}" for number in range(3)]
    await asyncio.gather(*(clusters.copy(main, copy) for copy in copies))
    stop.set()
    committed = await writing
    for copy in copies:
        await clusters.start(copy, DESIRED)
        numbers = await fetch(clusters, copy, "SELECT id FROM transfers ORDER BY id")
        assert numbers == committed[: len(numbers)]
        assert numbers[-1] >= earlier
        assert await fetch(clusters, copy, "SELECT sum(balance) FROM accounts") == [1000]
        moved = await fetch(clusters, copy, "SELECT balance - 100 FROM accounts WHERE id = 2")
        assert moved == [len(numbers)]


async def _has_transfers(clusters: Clusters, id: str, count: int) -> bool:
    [found] = await fetch(clusters, id, "SELECT count(*) FROM transfers")
    return bool(found >= count)


async def test_copy_of_a_stopped_cluster_has_its_rows(clusters: Clusters, main: str) -> None:
    await execute(clusters, main, LEDGER)
    await clusters.stop(main)
    await clusters.copy(main, "br-copy")
    await clusters.start("br-copy", DESIRED)
    assert await fetch(clusters, "br-copy", "SELECT count(*) FROM accounts") == [10]


async def test_copy_replaces_an_existing_cluster(clusters: Clusters, main: str) -> None:
    await clusters.copy(main, "br-copy")
    await clusters.start("br-copy", DESIRED)
    await execute(clusters, main, LEDGER)
    await clusters.copy(main, "br-copy")
    assert not clusters.is_running("br-copy")
    await clusters.start("br-copy", DESIRED)
    assert await fetch(clusters, "br-copy", "SELECT count(*) FROM accounts") == [10]


@pytest.mark.fact("connections-7")
async def test_stop_ends_sessions_with_an_error_that_clients_know(
    clusters: Clusters, main: str
) -> None:
    """Asked by psycopg: older versions of asyncpg replace the words of the server."""
    socket = clusters.socket(main)
    assert socket is not None
    connecting = psycopg.AsyncConnection.connect(
        host=str(socket.parent),
        port=int(socket.suffix.removeprefix(".")),
        user="alice",
        password=PASSWORD,
        dbname="app",
    )
    async with await connecting as connection:
        query = asyncio.create_task(connection.execute("SELECT pg_sleep(60)"))
        await until(lambda: _is_busy(clusters, main))
        await clusters.stop(main)
        reason = "terminating connection due to administrator command"
        with pytest.raises(psycopg.errors.AdminShutdown, match=reason):
            await query
    assert not clusters.is_running(main)
    assert clusters.socket(main) is None
    await clusters.stop(main)


async def _is_busy(clusters: Clusters, id: str) -> bool:
    return (await clusters.activity(id)).busy


async def test_activity_counts_queries_and_transactions_but_no_idle_session(
    clusters: Clusters, main: str
) -> None:
    assert (await clusters.activity(main)).last_active is None
    async with session(clusters, main) as connection:
        before = datetime.now(UTC)
        await connection.execute("SELECT 1")
        idle = await clusters.activity(main)
        async with connection.transaction():
            assert await _is_busy(clusters, main)
    assert not idle.busy
    assert idle.last_active is not None
    assert idle.last_active >= before - timedelta(seconds=1)
    assert idle.logical_size > 5_000_000


async def test_activity_includes_clients_that_have_disconnected(
    clusters: Clusters, main: str
) -> None:
    assert (await clusters.activity(main)).last_active is None
    before = datetime.now(UTC)
    await execute(clusters, main, "SELECT 1")

    async def is_noticed() -> bool:
        last_active = (await clusters.activity(main)).last_active
        return last_active is not None and last_active >= before

    await until(is_noticed)
    await asyncio.sleep(0.05)
    for _ in range(3):
        assert (await clusters.activity(main)).last_active is None, "the reads do not count"


async def test_size_grows_with_the_data(clusters: Clusters, main: str) -> None:
    before = await clusters.activity(main)
    await execute(
        clusters, main, "CREATE TABLE t AS SELECT repeat('x', 500) FROM generate_series(1, 4000)"
    )
    after = await clusters.activity(main)
    assert after.logical_size > before.logical_size + 2_000_000


async def test_time_of_the_last_change_survives_stop_and_copy(
    clusters: Clusters, main: str
) -> None:
    before = datetime.now(UTC)
    await execute(clusters, main, "CREATE TABLE t ()")
    changed = await clusters.changed_at(main)
    assert before <= changed <= datetime.now(UTC)
    await fetch(clusters, main, "SELECT 1")
    await clusters.stop(main)
    await clusters.copy(main, "br-copy")
    assert await clusters.changed_at(main) == changed
    assert await clusters.changed_at("br-copy") == changed
    await clusters.start(main, DESIRED)
    assert await clusters.changed_at(main) == changed, "a restart changes nothing"


@pytest.mark.parametrize("transaction", ["open", "new", "many", "killed"])
async def test_commits_during_a_stop_count_as_changes(
    clusters: Clusters, main: str, monkeypatch: pytest.MonkeyPatch, transaction: str
) -> None:
    """``many`` transactions fill several pages of the list of commits. A kill loses the list."""
    insert = "INSERT INTO t VALUES (1)"
    await execute(clusters, main, "CREATE TABLE t (n int)")
    client = await connect(clusters.socket(main))
    if transaction == "open":
        await client.execute("BEGIN")
        await client.execute(insert)
        await execute(clusters, main, insert)  # with a higher number
    stop = Postmaster.stop

    async def stop_after_commits(postmaster: Postmaster, *, immediately: bool = False) -> None:
        if transaction == "many":
            commits = "BEGIN FOR n IN 1..1000 LOOP INSERT INTO t VALUES (n); COMMIT; END LOOP; END"
            await client.execute(f"DO $$ {commits} $$")
        await client.execute("COMMIT" if transaction == "open" else insert)
        await stop(postmaster, immediately=immediately or transaction == "killed")

    with monkeypatch.context() as patch:
        patch.setattr(Postmaster, "stop", stop_after_commits)
        await clusters.stop(main)
    stored = await clusters.changed_at(main)
    await clusters.start(main, DESIRED)
    commits = await fetch(clusters, main, "SELECT pg_xact_commit_timestamp(xmin) FROM t")
    assert stored == max(commits)


async def test_rename_keeps_the_data_and_happens_once(clusters: Clusters, main: str) -> None:
    await execute(clusters, main, LEDGER)
    await clusters.rename(main, "br-old")
    assert clusters.ids() == {"br-old"}
    await clusters.copy("br-old", main)
    await clusters.rename(main, "br-old")
    assert clusters.ids() == {"br-old", main}, "a repeated step changes nothing"
    await clusters.start("br-old", DESIRED)
    assert await fetch(clusters, "br-old", "SELECT count(*) FROM accounts") == [10]


async def test_delete_removes_server_and_files(
    clusters: Clusters, main: str, temporary_directory: Path
) -> None:
    await clusters.copy(main, "br-copy")
    await clusters.delete(main, "br-copy", "br-unknown")
    assert clusters.ids() == set()
    assert await servers(temporary_directory) == []
    assert await data_directories(temporary_directory) == []


async def test_missing_cluster_is_an_error(clusters: Clusters) -> None:
    for call in (
        clusters.start("br-x", DESIRED),
        clusters.configure("br-x", DESIRED),
        clusters.copy("br-x", "br-y"),
        clusters.copy_schema("br-x", "br-y"),
        clusters.rename("br-x", "br-y"),
        clusters.activity("br-x"),
        clusters.changed_at("br-x"),
        clusters.dump_schema("br-x", "app"),
        clusters.prepare("br-x", 1),
    ):
        with pytest.raises(ClusterError, match="There are no data of br-x"):
            await call
    await clusters.stop("br-x")
    assert clusters.ids() == set()
    assert not clusters.is_running("br-x")


async def test_stopped_server_has_no_activity_and_cannot_be_configured(
    clusters: Clusters, main: str
) -> None:
    await clusters.stop(main)
    with pytest.raises(ClusterError, match="is not running"):
        await clusters.configure(main, DESIRED)
    with pytest.raises(ClusterError, match="is not running"):
        await clusters.activity(main)


async def test_version_that_is_not_installed_is_refused(clusters: Clusters) -> None:
    with pytest.raises(ClusterError, match="Postgres 9 is not installed: found"):
        await clusters.initialize("br-x", 9)
    assert clusters.ids() == set()


async def test_failed_start_reports_the_reason_of_the_server(clusters: Clusters, main: str) -> None:
    await clusters.stop(main)
    wrong = Desired(DESIRED.roles, DESIRED.databases, {"shared_preload_libraries": "timescaledb"})
    with pytest.raises(ClusterError, match=r"did not start \(exit status 1\): .*timescaledb"):
        await clusters.start(main, wrong)
    assert not clusters.is_running(main)
    await clusters.start(main, DESIRED)


@pytest.mark.parametrize("steps", [0, 2, 8, 20])
async def test_cancelled_start_leaves_no_server(
    clusters: Clusters, installation: Installation, temporary_directory: Path, steps: int
) -> None:
    async def is_ended() -> bool:  # the processes of a killed server end a moment after it
        return await servers(temporary_directory) == []

    await clusters.initialize("br-main", installation.major)
    starting = asyncio.create_task(clusters.start("br-main", DESIRED))
    for _ in range(steps):
        await asyncio.sleep(0.001)
    starting.cancel()
    await asyncio.wait([starting])
    if starting.cancelled():
        assert not clusters.is_running("br-main")
        await until(is_ended)
    await clusters.start("br-main", DESIRED)


@pytest.mark.parametrize("steps", [0, 5, 30])
async def test_cancelled_copy_leaves_no_files(
    clusters: Clusters, main: str, temporary_directory: Path, steps: int
) -> None:
    copying = asyncio.create_task(clusters.copy(main, "br-copy"))
    for _ in range(steps):
        await asyncio.sleep(0.001)
    copying.cancel()
    await asyncio.wait([copying])
    count = 1 if copying.cancelled() else 2
    assert len(clusters.ids()) == count
    assert len(await data_directories(temporary_directory)) == count


async def test_work_on_different_clusters_runs_together(clusters: Clusters, main: str) -> None:
    names = [f"br-{number}" for number in range(6)]
    await asyncio.gather(*(clusters.copy(main, name) for name in names))
    await asyncio.gather(*(clusters.start(name, DESIRED) for name in names))
    assert all(map(clusters.is_running, names))
    await asyncio.gather(*(clusters.stop(name) for name in names[:3]), clusters.delete(*names[3:]))
    assert clusters.ids() == {main, *names[:3]}


async def test_server_of_an_unused_prepared_copy_is_stopped(
    clusters: Clusters, main: str, temporary_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters_module, "UNUSED_TIME", 0.01)
    await clusters.stop(main)
    await clusters.prepare(main, 1)
    await until(lambda: clusters.prepared(main) == 1)
    await clusters.prepare(main, 0)
    await clusters.copy(main, "br-copy")
    assert not clusters.is_running("br-copy"), "nobody started it"
    await until(lambda: _has_no_server(temporary_directory))
    await clusters.start("br-copy", DESIRED)


async def _has_no_server(directory: Path) -> bool:
    return await servers(directory) == []


async def test_cancelled_waiters_for_a_cluster_leave_its_lock_usable(
    clusters: Clusters, main: str
) -> None:
    holding = asyncio.create_task(clusters.stop(main))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(clusters.start(main, DESIRED)) for _ in range(3)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await holding
    await asyncio.wait(waiting)
    assert all(task.cancelled() for task in waiting)
    await clusters.start(main, DESIRED)


async def test_second_control_plane_harms_no_server_of_the_first(
    installation: Installation,
    account: ServerAccount | None,
    open_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(directories_module, "_LOCK_TIMES", (0.1, 0.1))
    first, second = (
        Clusters({installation.major: installation}, account, directory=root, durable=True)
        for root in [open_directory / "data"] * 2
    )
    await first.open()
    await first.initialize("br-main", installation.major)
    await first.start("br-main", DESIRED)
    with pytest.raises(RuntimeError, match="in use by another control plane"):
        await second.open()
    assert first.is_running("br-main")
    assert await fetch(first, "br-main", "SELECT 1") == [1]
    await first.close()
