import asyncio
from pathlib import Path

import pytest

from neonctl_local.postgres import spares
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.cluster import Cluster
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import Desired, RoleSpec
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.programs import program_environment
from neonctl_local.postgres.template import ADMINISTRATOR
from tests.support import clusters as support
from tests.support.clusters import (
    DESIRED,
    LEDGER,
    data_directories,
    execute,
    fetch,
    kill_servers,
    servers,
)
from tests.support.until import until

pytestmark = pytest.mark.postgres


@pytest.fixture
async def stopped(clusters: Clusters, main: str) -> str:
    """The id of a stopped cluster with rows and two prepared copies."""
    await execute(clusters, main, LEDGER)
    await clusters.stop(main)
    await clusters.prepare(main, 2)
    await until(lambda: clusters.prepared(main) == 2)
    return main


async def test_more_copies_are_made_when_none_is_ready(
    clusters: Clusters, stopped: str, temporary_directory: Path
) -> None:
    before = await data_directories(temporary_directory)
    for number in range(3):
        await clusters.copy(stopped, f"br-{number}")
        await clusters.start(f"br-{number}", DESIRED)
        assert await fetch(clusters, f"br-{number}", "SELECT count(*) FROM accounts") == [10]
    await until(lambda: clusters.prepared(stopped) == 2)
    assert len(await data_directories(temporary_directory)) == len(before) + 3


async def test_deleted_copy_is_restored_and_taken_again(
    clusters: Clusters, stopped: str, temporary_directory: Path
) -> None:
    before = await data_directories(temporary_directory)
    for _ in range(5):
        await clusters.copy(stopped, "br-copy")
        await clusters.start("br-copy", DESIRED)
        assert await fetch(clusters, "br-copy", "SELECT count(*) FROM accounts") == [10]
        await execute(clusters, "br-copy", "DELETE FROM accounts")
        await clusters.delete("br-copy")
    await until(lambda: clusters.prepared(stopped) == 2)
    assert await data_directories(temporary_directory) == before


async def test_copy_of_an_older_source_is_not_taken_again(clusters: Clusters, stopped: str) -> None:
    await clusters.copy(stopped, "br-copy")
    await clusters.start(stopped, DESIRED)
    await execute(clusters, stopped, "DELETE FROM accounts")
    await clusters.stop(stopped)
    await clusters.delete("br-copy")
    for name in ("br-1", "br-2", "br-3"):
        await clusters.copy(stopped, name)
        await clusters.start(name, DESIRED)
        assert await fetch(clusters, name, "SELECT count(*) FROM accounts") == [0]


async def test_copy_whose_source_changes_before_it_is_restored_is_not_taken_again(
    clusters: Clusters, stopped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spares, "REST", 60)  # until somebody waits for a copy
    await clusters.copy(stopped, "br-copy")
    await clusters.start("br-copy", DESIRED)
    await execute(clusters, "br-copy", "DELETE FROM accounts")
    await clusters.delete("br-copy")
    await clusters.start(stopped, DESIRED)
    await execute(clusters, stopped, "CREATE TABLE more (n int)")
    await clusters.stop(stopped)
    for name in ("br-1", "br-2", "br-3"):
        await clusters.copy(stopped, name)
        await clusters.start(name, DESIRED)
        assert await fetch(clusters, name, "SELECT count(*) FROM accounts") == [10]
        assert await fetch(clusters, name, "SELECT count(*) FROM more") == [0]


async def ended(directory: Path) -> None:
    """Wait until no server runs, and until the control plane has noticed it."""

    async def is_over() -> bool:
        return not await servers(directory)

    await until(is_over)
    await asyncio.sleep(0.1)  # a killed process disappears a moment before its parent knows


async def test_killed_copy_is_restored(
    clusters: Clusters, stopped: str, temporary_directory: Path
) -> None:
    await kill_servers(temporary_directory)
    await ended(temporary_directory)
    await clusters.copy(stopped, "br-copy")
    await clusters.start("br-copy", DESIRED)
    await execute(clusters, "br-copy", "DELETE FROM accounts")
    await kill_servers(temporary_directory)
    await clusters.delete("br-copy")
    for name in ("br-1", "br-2", "br-3"):
        await clusters.copy(stopped, name)
        await clusters.start(name, DESIRED)
        assert await fetch(clusters, name, "SELECT count(*) FROM accounts") == [10]


async def test_prepared_copy_has_the_system_catalogs_of_its_databases_in_its_cache(
    clusters: Clusters, stopped: str
) -> None:
    assert clusters.prepared(stopped) == 2
    caches = await asyncio.to_thread(list, clusters.root.glob("clusters/*/base/*/pg_internal.init"))
    names = {path.parent.name for path in caches}
    assert len(names) >= 2, "Postgres writes the file at the first connection to a database"
    for name in names:
        assert len([path for path in caches if path.parent.name == name]) >= 2


async def test_restored_copy_has_its_caches_before_anybody_has_connected(
    clusters: Clusters, stopped: str
) -> None:
    def read() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in clusters.root.rglob("pg_internal.init")}

    before = await asyncio.to_thread(read)
    for _ in range(2):
        await clusters.copy(stopped, "br-copy")
        await clusters.start("br-copy", DESIRED)
        await execute(clusters, "br-copy", "ANALYZE pg_class", "CREATE TABLE many (id serial)")
        await clusters.delete("br-copy")
    await until(lambda: clusters.prepared(stopped) == 2)
    assert await asyncio.to_thread(read) == before
    sessions = "SELECT sessions FROM pg_stat_database WHERE datname = 'app'"
    await clusters.copy(stopped, "br-copy")
    await clusters.start("br-copy", DESIRED)
    assert await fetch(clusters, "br-copy", sessions) == [1], "only that of this query"


async def test_prepared_copies_are_independent(clusters: Clusters, stopped: str) -> None:
    for name in ("br-1", "br-2", "br-3"):
        await clusters.copy(stopped, name)
        await clusters.start(name, DESIRED)
        await execute(clusters, name, "DELETE FROM accounts")
    await clusters.start(stopped, DESIRED)
    assert await fetch(clusters, stopped, "SELECT count(*) FROM accounts") == [10]


async def test_started_source_has_no_prepared_copies_until_it_stops(
    clusters: Clusters, stopped: str
) -> None:
    await clusters.start(stopped, DESIRED)
    assert clusters.prepared(stopped) == 0
    await execute(clusters, stopped, "DELETE FROM accounts")
    await clusters.copy(stopped, "br-copy")
    await clusters.start("br-copy", DESIRED)
    assert await fetch(clusters, "br-copy", "SELECT count(*) FROM accounts") == [0]
    await clusters.stop(stopped)
    await until(lambda: clusters.prepared(stopped) == 2)
    await clusters.copy(stopped, "br-new")
    await clusters.start("br-new", DESIRED)
    assert await fetch(clusters, "br-new", "SELECT count(*) FROM accounts") == [0]


async def test_configuration_of_a_prepared_copy_may_differ(
    clusters: Clusters, stopped: str
) -> None:
    await clusters.copy(stopped, "br-copy")
    await clusters.start("br-copy", Desired([RoleSpec("alice", "new")], DESIRED.databases))
    assert await fetch(clusters, "br-copy", "SELECT 1", password="new") == [1]


@pytest.mark.parametrize("change", ["delete", "rename", "prepare"])
async def test_copies_that_nobody_wants_any_more_are_removed(
    clusters: Clusters, stopped: str, temporary_directory: Path, change: str
) -> None:
    if change == "delete":
        await clusters.delete(stopped)
    elif change == "rename":
        await clusters.rename(stopped, "br-renamed")
    else:
        await clusters.prepare(stopped, 0)
    kept = len(clusters.ids())

    async def is_clean() -> bool:
        directories = await data_directories(temporary_directory)
        return len(directories) == kept and await servers(temporary_directory) == []

    await until(is_clean)


async def test_database_whose_deletion_was_interrupted_does_not_prevent_copies(
    clusters: Clusters, main: str
) -> None:
    async with support.administrator(clusters, main, "postgres") as connection:
        await connection.execute("CREATE DATABASE gone")
        await connection.execute("UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'gone'")
    await clusters.stop(main)
    await clusters.prepare(main, 1)
    await until(lambda: clusters.prepared(main) == 1)


async def test_failed_preparation_leaves_no_server_and_does_not_prevent_others(
    clusters: Clusters,
    main: str,
    temporary_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await clusters.stop(main)
    await clusters.copy(main, "br-other")
    before = await data_directories(temporary_directory)
    warm, failed = Cluster.warm, list[Cluster]()

    async def fail_once(cluster: Cluster) -> None:
        if not failed:
            failed.append(cluster)
            raise ClusterError("it is cold")
        await warm(cluster)

    monkeypatch.setattr(Cluster, "warm", fail_once)
    await clusters.prepare(main, 1)
    await clusters.prepare("br-other", 1)
    await until(lambda: clusters.prepared("br-other") == 1)
    assert caplog.messages == ["no copy of br-main was prepared: it is cold"]
    assert not failed[0].running
    assert len(await data_directories(temporary_directory)) == len(before) + 1


async def test_source_that_changes_while_its_copy_is_made_is_copied_again(
    clusters: Clusters, main: str
) -> None:
    await execute(clusters, main, LEDGER)
    await clusters.stop(main)
    for _ in range(3):
        await clusters.prepare(main, 1)
        await asyncio.sleep(0.005)
        await clusters.start(main, DESIRED)
        await execute(
            clusters, main, "DELETE FROM accounts WHERE id = (SELECT max(id) FROM accounts)"
        )
        await clusters.stop(main)
    await until(lambda: clusters.prepared(main) == 1)
    await clusters.copy(main, "br-copy")
    await clusters.start("br-copy", DESIRED)
    assert await fetch(clusters, "br-copy", "SELECT count(*) FROM accounts") == [7]


HOSTILE = """\
CREATE ROLE intruder LOGIN SUPERUSER PASSWORD 'secret' VALID UNTIL '2100-01-01'
ALTER ROLE alice SET work_mem = '1MB'
ALTER ROLE alice CREATEROLE CONNECTION LIMIT 3
GRANT pg_monitor TO alice
ALTER DATABASE app SET search_path = 'nowhere'
ALTER DATABASE app CONNECTION LIMIT 5
ALTER SYSTEM SET work_mem = '2MB'
GRANT SET ON PARAMETER log_statement TO alice
COMMENT ON DATABASE app IS 'changed'
COMMENT ON ROLE alice IS 'changed'
SET allow_in_place_tablespaces = on
CREATE TABLESPACE elsewhere LOCATION ''
CREATE TABLE public.moved (id serial) TABLESPACE elsewhere
CREATE DATABASE another TEMPLATE app
ALTER SEQUENCE public.transfers_id_seq RESTART WITH 1000
SELECT nextval('public.transfers_id_seq')
DROP EXTENSION plpgsql
SELECT lo_from_bytea(4242, 'large object')
CREATE TYPE public.mood AS ENUM ('sad')
CREATE PUBLICATION everything FOR ALL TABLES
SELECT pg_create_physical_replication_slot('slot', true)
SELECT pg_replication_origin_create('origin')
ALTER TABLE public.accounts ADD COLUMN extra text
UPDATE public.accounts SET balance = 0
CHECKPOINT
DROP TABLE public.transfers
"""
"""Statements that change everything a dump of all databases shows."""
HOSTILE_IN_POSTGRES = """\
CREATE TABLE public.left_behind (id int)
SELECT lo_from_bytea(4243, 'large object')
ALTER DATABASE template1 SET work_mem = '3MB'
"""
NOT_DUMPED = (
    "SELECT name || setting FROM pg_settings WHERE name <> 'port' AND setting !~ '^/' ORDER BY 1",
    "SELECT slot_name FROM pg_replication_slots",
    "SELECT roname FROM pg_replication_origin",
)


@pytest.fixture
def administrator(clusters: Clusters, stopped: str) -> dict[str, str]:
    """The options of a session of the superuser, in all copies."""
    assert stopped in clusters.ids()
    [password, *_] = [path.read_text() for path in clusters.root.glob("clusters/*.password")]
    return {"user": ADMINISTRATOR, "password": password}


async def test_hostile_changes_of_a_copy_leave_nothing_for_the_next_one(
    clusters: Clusters,
    stopped: str,
    installation: Installation,
    administrator: dict[str, str],
    temporary_directory: Path,
) -> None:
    before = await data_directories(temporary_directory)
    dumps: list[str] = []
    for _ in range(4):  # two copies, twice
        await clusters.copy(stopped, "br-copy")
        await clusters.start("br-copy", DESIRED)
        dumps.append(await dump_all(clusters, "br-copy", installation, administrator))
        for database, changes in (("app", HOSTILE), ("postgres", HOSTILE_IN_POSTGRES)):
            await execute(
                clusters, "br-copy", *changes.splitlines(), database=database, **administrator
            )
        await clusters.delete("br-copy")
    await until(lambda: clusters.prepared(stopped) == 2)
    assert await data_directories(temporary_directory) == before, "no further copy was made"
    assert "accounts" in dumps[0]
    assert dumps == dumps[:1] * 4


async def dump_all(
    clusters: Clusters, id: str, installation: Installation, administrator: dict[str, str]
) -> str:
    """Return what pg_dumpall writes, and what it does not: settings, slots and origins."""
    socket = clusters.socket(id)
    assert socket is not None
    others = [await fetch(clusters, id, query, **administrator) for query in NOT_DUMPED]
    variables = {"PGHOST": str(socket.parent), "PGPORT": socket.suffix.removeprefix(".")}
    variables |= {"PGUSER": administrator["user"], "PGPASSWORD": administrator["password"]}
    process = await asyncio.create_subprocess_exec(
        installation.program("pg_dumpall"),
        env=program_environment() | variables,
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0
    lines = [line for line in output.decode().splitlines() if "restrict " not in line]
    return "\n".join([*lines, *map(str, others)])
