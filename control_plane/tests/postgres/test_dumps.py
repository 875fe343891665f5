import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from neonctl_local.postgres import emptying
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import DatabaseSpec, Desired, RoleSpec
from neonctl_local.postgres.errors import ClusterBusyError, ClusterError
from tests.support.clusters import ALICE, DESIRED, LEDGER, execute, fetch, session

pytestmark = pytest.mark.postgres


async def test_dump_has_the_tables_without_rows_and_is_repeatable(
    clusters: Clusters, main: str
) -> None:
    await execute(clusters, main, LEDGER)
    first = await clusters.dump_schema(main, "app")
    assert "CREATE TABLE public.accounts" in first
    assert "COPY" not in first
    assert "restrict" not in first
    assert await clusters.dump_schema(main, "app") == first


async def test_stopped_cluster_is_dumped_and_stays_stopped(clusters: Clusters, main: str) -> None:
    await execute(clusters, main, LEDGER)
    await clusters.stop(main)
    assert "CREATE TABLE public.accounts" in await clusters.dump_schema(main, "app")
    assert not clusters.is_running(main)


@pytest.mark.parametrize("name", ["host=nowhere", "postgresql://nowhere/x", "-x", "a b'c\"d"])
async def test_name_of_a_database_is_no_connection_string(
    clusters: Clusters, main: str, name: str
) -> None:
    await clusters.configure(main, Desired([ALICE], [DatabaseSpec(name, "alice")]))
    assert "PostgreSQL database dump" in await clusters.dump_schema(main, name)


async def test_missing_database_is_an_error_of_pg_dump(clusters: Clusters, main: str) -> None:
    with pytest.raises(ClusterError, match=r"pg_dump failed with status 1: .*nowhere"):
        await clusters.dump_schema(main, "nowhere")


@pytest.mark.parametrize("running", [True, False])
async def test_schema_copy_has_roles_and_tables_but_no_rows(
    clusters: Clusters, main: str, running: bool
) -> None:
    other = DatabaseSpec("Other 'one'", "bob")
    desired = Desired([ALICE, RoleSpec("bob", "b")], [*DESIRED.databases, other])
    await clusters.configure(main, desired)
    await execute(
        clusters, main, LEDGER, "CREATE ROLE by_sql", "GRANT SELECT ON accounts TO by_sql"
    )
    await execute(
        clusters, main, "CREATE TABLE t (n int)", database=other.name, user="bob", password="b"
    )
    if not running:
        await clusters.stop(main)
    await clusters.copy_schema(main, "br-schema")
    assert clusters.is_running(main) is running
    assert not clusters.is_running("br-schema")
    await clusters.start("br-schema", desired)
    assert await fetch(clusters, "br-schema", "SELECT count(*) FROM accounts") == [0]
    may = "SELECT has_table_privilege('by_sql', 'accounts', 'SELECT')"
    assert await fetch(clusters, "br-schema", may) == [True]
    rows = "SELECT count(*) FROM t"
    options = {"database": other.name, "user": "bob", "password": "b"}
    assert await fetch(clusters, "br-schema", rows, **options) == [0]


@pytest.mark.process
async def test_lines_of_a_comment_are_not_taken_for_those_of_the_program(
    clusters: Clusters, main: str
) -> None:
    restricted = "a\n\\restrict b\n\\unrestrict b\nc"
    await execute(
        clusters,
        main,
        f"CREATE TABLE t (); COMMENT ON TABLE t IS '{restricted}'",
        "CREATE ROLE r1; COMMENT ON ROLE r1 IS E'\\nCREATE ROLE cloud_admin;'",
        "CREATE ROLE r2; COMMENT ON ROLE r2 IS '; CREATE ROLE r2; CREATE ROLE r3 SUPERUSER; --'",
    )
    assert restricted in await clusters.dump_schema(main, "app")
    await clusters.copy_schema(main, "br-schema")
    await clusters.start("br-schema", DESIRED)
    superusers = "SELECT rolname FROM pg_roles WHERE rolsuper"
    assert await fetch(clusters, "br-schema", superusers) == ["cloud_admin"]


async def test_dump_of_a_database_with_another_encoding_is_unicode(
    clusters: Clusters, main: str
) -> None:
    await execute(
        clusters, main, "CREATE TABLE straße ()", "ALTER DATABASE app SET client_encoding = latin1"
    )
    assert 'CREATE TABLE public."straße"' in await clusters.dump_schema(main, "app")


async def test_failed_schema_copy_leaves_no_cluster(
    clusters: Clusters, main: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(emptying, "_ROWS", "SELECT 1 / 0")
    with pytest.raises(ClusterError, match="division by zero"):
        await clusters.copy_schema(main, "br-schema")
    assert clusters.ids() == {main}


async def test_cancelled_dump_kills_the_program(clusters: Clusters, main: str) -> None:
    await execute(clusters, main, LEDGER)
    dumping = asyncio.create_task(clusters.dump_schema(main, "app"))
    await asyncio.sleep(0.005)
    dumping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dumping
    await clusters.stop(main)


@pytest.mark.parametrize("relation", ["accounts", "balances"])
async def test_locked_relation_fails_the_dump_soon(each_clusters: Clusters, relation: str) -> None:
    clusters, id = each_clusters, "br-main"
    await clusters.start(id, DESIRED)
    view = "CREATE VIEW balances AS SELECT 1 AS balance"
    await execute(clusters, id, LEDGER, view)
    async with session(clusters, id) as connection:
        await connection.execute("BEGIN")
        await connection.execute(f"ALTER TABLE {relation} RENAME TO renamed")
        async with asyncio.timeout(20):
            with pytest.raises(ClusterBusyError, match="the schema needs: end it, then try again"):
                await clusters.dump_schema(id, "app")
            await clusters.stop(id)


async def test_locked_relation_fails_all_dumps_soon_and_delays_no_other_work(
    clusters: Clusters, main: str
) -> None:
    await execute(clusters, main, LEDGER)
    async with session(clusters, main) as connection:
        await connection.execute("BEGIN; LOCK TABLE accounts IN ACCESS EXCLUSIVE MODE")
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        async with asyncio.timeout(20):
            dumps = [clusters.dump_schema(main, "app") for _ in range(3)]
            ended = await asyncio.gather(*dumps, return_exceptions=True)
    assert {type(error) for error in ended} == {ClusterBusyError}, ended
