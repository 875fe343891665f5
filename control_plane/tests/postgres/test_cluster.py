import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from neonctl_local.postgres import cluster
from neonctl_local.postgres.admin import AdminSession, await_setting
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.cluster import (
    APPLIED,
    CHANGED,
    PASSWORDS,
    SETTINGS,
    Cluster,
    Machine,
    default_settings,
)
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import DatabaseSpec, Desired, RoleSpec
from neonctl_local.postgres.copying import copy_cluster
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.servers.extensions import TrustedExtensions
from tests.support.clusters import (
    ALICE,
    DESIRED,
    administrator,
    asyncpg,
    connect,
    data_directories,
    execute,
    fetch,
    session,
)

pytestmark = pytest.mark.postgres

APP = DatabaseSpec("app", "alice")


async def test_new_password_replaces_the_old_one(clusters: Clusters, main: str) -> None:
    await clusters.configure(main, Desired([RoleSpec("alice", "new")], [APP]))
    assert await fetch(clusters, main, "SELECT 1", password="new") == [1]
    with pytest.raises(asyncpg.InvalidPasswordError):
        await connect(clusters.socket(main))


async def test_any_password_works(clusters: Clusters, main: str) -> None:
    for password in ("a'b\\c\"d $1", "gr\u00fc\u00dfe", "\u2168", "x" * 500):
        await clusters.configure(main, Desired([RoleSpec("alice", password)], [APP]))
        assert await fetch(clusters, main, "SELECT 1", password=password) == [1]


async def test_role_without_a_password_cannot_log_in(clusters: Clusters, main: str) -> None:
    await clusters.configure(main, Desired([RoleSpec("alice", None)], [APP]))
    with pytest.raises(asyncpg.PostgresError, match="alice"):
        await connect(clusters.socket(main))


async def test_names_with_quotes_and_umlauts_work(clusters: Clusters, main: str) -> None:
    role, database = (
        RoleSpec('Wei\u00df "1"; --', "p"),
        DatabaseSpec('da\'ta "b"', 'Wei\u00df "1"; --'),
    )
    desired = Desired([ALICE, role], [APP, database])
    await clusters.configure(main, desired)
    options = {"user": role.name, "password": "p", "database": database.name}
    await execute(clusters, main, "CREATE TABLE t ()", **options)
    await clusters.configure(main, DESIRED)
    assert await fetch(clusters, main, "SELECT rolname FROM pg_roles WHERE rolcanlogin") == [
        "cloud_admin",
        "alice",
    ]


async def test_removed_objects_of_the_api_are_dropped_and_those_of_sql_stay(
    clusters: Clusters, main: str
) -> None:
    more = Desired([ALICE, RoleSpec("bob", "b")], [APP, DatabaseSpec("extra", "bob")])
    await clusters.configure(main, more)
    await execute(clusters, main, "CREATE ROLE by_sql", "CREATE DATABASE by_sql")
    await execute(clusters, main, "GRANT ALL ON SCHEMA public TO bob")
    await execute(clusters, main, "CREATE TABLE of_bob ()", user="bob", password="b")
    async with session(clusters, main, database="extra", user="bob", password="b"):
        await clusters.configure(main, DESIRED)
    databases = await fetch(clusters, main, "SELECT datname FROM pg_database ORDER BY 1")
    assert databases == ["app", "by_sql", "postgres", "template0", "template1"]
    roles = "SELECT rolname FROM pg_roles WHERE rolname !~ '^pg_' ORDER BY 1"
    assert await fetch(clusters, main, roles) == [
        "alice",
        "by_sql",
        "cloud_admin",
        "neon_superuser",
    ]
    owner = "SELECT tableowner FROM pg_tables WHERE tablename = 'of_bob'"
    assert await fetch(clusters, main, owner) == ["alice"], "the owner of the database has it now"


async def test_database_in_use_is_renamed_with_its_data(clusters: Clusters, main: str) -> None:
    await execute(clusters, main, "CREATE TABLE t AS SELECT 1 AS n")
    renamed = Desired([ALICE], [DatabaseSpec("other", "alice")], renamed={"app": "other"})
    async with session(clusters, main):
        await clusters.configure(main, renamed)
    assert await fetch(clusters, main, "SELECT n FROM t", database="other") == [1]
    await clusters.configure(main, renamed)


async def test_database_gets_another_owner(clusters: Clusters, main: str) -> None:
    roles = [ALICE, RoleSpec("bob", "b")]
    await clusters.configure(main, Desired(roles, [DatabaseSpec("app", "bob")]))
    await execute(clusters, main, "CREATE TABLE t ()", user="bob", password="b")


async def test_setting_applies_at_once_or_after_a_restart(clusters: Clusters, main: str) -> None:
    await clusters.configure(main, Desired([ALICE], [APP], {"work_mem": "7MB"}))
    assert await fetch(clusters, main, "SHOW work_mem") == ["7MB"]
    await clusters.configure(main, Desired([ALICE], [APP], {"max_connections": "30"}))
    assert await fetch(clusters, main, "SHOW max_connections") == ["30"]
    assert await fetch(clusters, main, "SHOW work_mem") == ["4MB"]
    await clusters.configure(main, DESIRED)
    assert await fetch(clusters, main, "SHOW max_connections") == ["104"]


async def test_refused_setting_is_an_error_and_the_server_continues(
    clusters: Clusters, main: str
) -> None:
    for name, value, reason in (
        ("work_mem", "a lot", "work_mem = 'a lot'"),
        ("archive_command", "true", "'archive_command' is not permitted"),
        ("max_connections", "many", "max_connections"),
        ("shared_preload_libraries", "timescaledb", "timescaledb"),
    ):
        with pytest.raises(ClusterError, match=reason):
            await clusters.configure(main, Desired([ALICE], [APP], {name: value}))
        assert clusters.is_running(main)
    await clusters.configure(main, Desired([ALICE], [APP], {"work_mem": "8MB"}))
    assert await fetch(clusters, main, "SHOW work_mem") == ["8MB"]


async def test_owner_that_does_not_exist_is_an_error_of_postgres(
    clusters: Clusters, main: str
) -> None:
    with pytest.raises(ClusterError, match='role "nobody" does not exist'):
        await clusters.configure(main, Desired([ALICE], [APP, DatabaseSpec("b", "nobody")]))
    await clusters.configure(main, DESIRED)


async def test_administrator_connects_although_clients_use_all_connections(
    clusters: Clusters, main: str
) -> None:
    await clusters.configure(main, Desired([ALICE], [APP], {"max_connections": "10"}))
    async with AsyncExitStack() as stack:
        with pytest.raises(asyncpg.TooManyConnectionsError):
            while True:
                await stack.enter_async_context(session(clusters, main))
        copies = [clusters.copy(main, f"br-{number}") for number in range(6)]
        await asyncio.gather(*copies, clusters.activity(main))
    assert len(clusters.ids()) == 7


async def test_copy_of_a_running_server_reads_no_link_in_place_of_its_settings(
    clusters: Clusters, main: str, temporary_directory: Path, tmp_path: Path
) -> None:
    """The settings are written again, for the account of the servers."""
    secret = tmp_path / "secret"
    [directory] = await data_directories(temporary_directory)
    settings = temporary_directory / directory / SETTINGS
    await asyncio.to_thread(secret.write_text, "of another account")
    await asyncio.to_thread(settings.unlink)
    await asyncio.to_thread(settings.symlink_to, secret)
    with pytest.raises(ClusterError, match=r"not a regular file|symbolic links"):
        await clusters.copy(main, "br-copy")
    assert await asyncio.to_thread(settings.is_symlink)


async def test_variables_of_the_environment_change_nothing(
    clusters: Clusters, main: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "PGHOST": "nowhere.invalid",
        "PGSSLMODE": "verify-full",
        "PGTARGETSESSIONATTRS": "standby",
        "PGOPTIONS": "-c search_path=nowhere",
        "PGPASSWORD": "wrong",
        "PGDATA": "/nowhere",
    }.items():
        monkeypatch.setenv(name, value)
    await clusters.configure(main, Desired([ALICE, RoleSpec("bob", "b")], [APP]))
    assert "PostgreSQL database dump" in await clusters.dump_schema(main, "app")


async def test_data_of_a_version_that_is_not_installed_are_refused(
    installation: Installation, tmp_path: Path
) -> None:
    await asyncio.to_thread((tmp_path / "PG_VERSION").write_text, "9\n")
    with pytest.raises(ClusterError, match="The data are of Postgres 9, which is not installed"):
        await Cluster(tmp_path, machine(installation, tmp_path)).start()


@pytest.mark.parametrize("link", [False, True])
def test_damaged_version_is_an_error_without_the_content_of_the_file(
    installation: Installation, tmp_path: Path, link: bool
) -> None:
    file, version = tmp_path / "file", tmp_path / "PG_VERSION"
    file.write_text("root:secret\n")
    if link:
        version.symlink_to(file)
    else:
        file.rename(version)
    with pytest.raises(ClusterError, match=r"the version of .* is unknown") as caught:
        Cluster(tmp_path, machine(installation, tmp_path)).installation()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", ["damaged", "link", "fifo"])
def test_damaged_files_of_a_data_directory_are_named_or_count_as_unknown(
    installation: Installation, tmp_path: Path, kind: str
) -> None:
    for name in (APPLIED, CHANGED, PASSWORDS):
        if kind == "damaged":
            (tmp_path / name).write_text('{"roles": ')
        elif kind == "link":
            (tmp_path / name).symlink_to("elsewhere")
        else:
            os.mkfifo(tmp_path / name)
    (tmp_path / "elsewhere").write_text("{}")
    cluster = Cluster(tmp_path, machine(installation, tmp_path))
    with pytest.raises(ClusterError, match=f"/{APPLIED}' is damaged .*: delete it. The next start"):
        cluster.applied_settings()
    assert cluster.stored_change() is None
    assert cluster.password("alice", DESIRED) is None


def machine(installation: Installation, directory: Path) -> Machine:
    return Machine(
        {installation.major: installation},
        None,
        directory,
        durable=False,
        extensions=TrustedExtensions(directory / "extensions", None),
    )


def test_only_durable_clusters_are_vacuumed_in_the_background() -> None:
    assert default_settings(17, durable=True)["autovacuum"] == "on"
    assert default_settings(17, durable=False)["autovacuum"] == "off"
    assert "io_method" not in default_settings(17, durable=True)
    assert default_settings(18, durable=True)["io_method"] == "sync"


PROTECTED = {
    "template": ["ALTER DATABASE d2 IS_TEMPLATE true"],
    "closed": ["ALTER DATABASE d2 ALLOW_CONNECTIONS false"],
    "prepared": ["BEGIN", "CREATE TABLE t ()", "PREPARE TRANSACTION 'p'"],
    "subscription": [
        (
            "CREATE SUBSCRIPTION s CONNECTION 'host=/nowhere' PUBLICATION p"
            " WITH (connect = false, slot_name = 's')"
        ),
    ],
}


@pytest.mark.parametrize("protection", PROTECTED)
async def test_protected_database_is_dropped_with_its_roles(
    each_clusters: Clusters, protection: str
) -> None:
    clusters, id = each_clusters, "br-main"
    more = Desired(
        [ALICE, RoleSpec("bob", "b")],
        [APP, DatabaseSpec("d2", "bob")],
        {"max_prepared_transactions": "2"},
    )
    await clusters.start(id, more)
    in_d2 = {"database": "d2", "user": "bob", "password": "b"}
    await execute(clusters, id, "CREATE TABLE of_bob ()", **in_d2)
    if protection in ("prepared", "subscription"):
        async with administrator(clusters, id, "d2") as connection:
            for statement in PROTECTED[protection]:
                await connection.execute(statement)
    else:
        await execute(clusters, id, *PROTECTED[protection], user="bob", password="b")
    await clusters.configure(id, Desired([ALICE], [APP], more.settings))
    assert await fetch(clusters, id, "SELECT 1 FROM pg_database WHERE datname = 'd2'") == []
    assert await fetch(clusters, id, "SELECT 1 FROM pg_roles WHERE rolname = 'bob'") == []


async def test_role_with_objects_in_a_closed_database_is_dropped(each_clusters: Clusters) -> None:
    clusters, id = each_clusters, "br-main"
    more = Desired([ALICE, RoleSpec("bob", "b")], [APP])
    await clusters.start(id, more)
    await execute(clusters, id, "CREATE DATABASE closed", "CREATE DATABASE model")
    for database in ("closed", "model"):
        await execute(clusters, id, "GRANT ALL ON SCHEMA public TO bob", database=database)
        in_database = {"database": database, "user": "bob", "password": "b"}
        await execute(clusters, id, "CREATE TABLE of_bob ()", **in_database)
    await execute(clusters, id, "ALTER DATABASE closed ALLOW_CONNECTIONS false")
    await execute(clusters, id, "ALTER DATABASE model IS_TEMPLATE true")
    await clusters.configure(id, DESIRED)
    assert await fetch(clusters, id, "SELECT 1 FROM pg_roles WHERE rolname = 'bob'") == []
    query = "SELECT datallowconn FROM pg_database WHERE datname = 'closed'"
    assert await fetch(clusters, id, query) == [False], "the database is left as it was"


async def test_role_that_owns_a_database_of_sql_is_not_dropped(each_clusters: Clusters) -> None:
    clusters, id = each_clusters, "br-main"
    await clusters.start(id, Desired([ALICE, RoleSpec("bob", "b")], [APP]))
    await execute(clusters, id, "CREATE DATABASE a_shop", user="bob", password="b")
    in_shop = {"database": "a_shop", "user": "bob", "password": "b"}
    await execute(clusters, id, "CREATE TABLE goods AS SELECT 1", **in_shop)
    with pytest.raises(ClusterError, match="'bob' was not dropped: it owns the database 'a_shop'"):
        await clusters.configure(id, DESIRED)
    assert await fetch(clusters, id, "SELECT * FROM goods", **in_shop) == [1]
    async with administrator(clusters, id, "a_shop") as connection:
        await connection.execute("ALTER DATABASE a_shop OWNER TO alice")
    await clusters.stop(id)
    await clusters.start(id, DESIRED)
    assert await fetch(clusters, id, "SELECT 1 FROM pg_roles WHERE rolname = 'bob'") == []
    assert await fetch(clusters, id, "SELECT * FROM goods", database="a_shop") == [1]


async def test_failed_drop_fails_only_its_own_operation(
    each_clusters: Clusters, caplog: pytest.LogCaptureFixture
) -> None:
    clusters, id = each_clusters, "br-main"
    settings = {"max_prepared_transactions": "2"}
    await clusters.start(id, Desired([ALICE], [APP, DatabaseSpec("d2", "alice")], settings))
    lock = ["BEGIN", "COMMENT ON DATABASE d2 IS ''", "PREPARE TRANSACTION 'p'"]
    await execute(clusters, id, *lock)
    with pytest.raises(ClusterError, match=r"the database 'd2' was not dropped: .* end it, then"):
        await clusters.configure(id, Desired([ALICE], [APP], settings))
    later = Desired([ALICE, RoleSpec("carol", "c")], [APP], settings)
    await clusters.configure(id, later)
    await clusters.stop(id)
    await clusters.copy(id, "br-copy")
    await clusters.start("br-copy", later)
    assert await fetch(clusters, "br-copy", "SELECT 1", user="carol", password="c") == [1]
    assert caplog.text.count("the database 'd2' was not dropped") == 1
    await clusters.stop("br-copy")
    await clusters.start(id, later)
    await execute(clusters, id, "ROLLBACK PREPARED 'p'")
    await clusters.stop(id)
    await clusters.start(id, later)
    assert await fetch(clusters, id, "SELECT 1 FROM pg_database WHERE datname = 'd2'") == []


async def test_uncommitted_role_of_the_same_name_fails_the_operation_soon(
    each_clusters: Clusters,
) -> None:
    clusters, id = each_clusters, "br-main"
    await clusters.start(id, DESIRED)
    more = Desired([ALICE, RoleSpec("bob", "b")], [APP])
    async with session(clusters, id) as connection:
        await connection.execute("BEGIN")
        await connection.execute("CREATE ROLE bob")
        async with asyncio.timeout(20):
            with pytest.raises(ClusterError, match=r"a transaction of a client .* end it, then"):
                await clusters.configure(id, more)
        await connection.execute("ROLLBACK")
    await clusters.configure(id, more)


async def test_clients_cannot_prevent_a_copy_with_replication_slots(
    each_clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checkpoints during the copy remove no WAL that it needs."""
    clusters, id = each_clusters, "br-main"
    await clusters.start(id, DESIRED)
    loop = asyncio.get_running_loop()

    async def write() -> None:
        async with administrator(clusters, id, "app") as connection:
            await connection.execute("CREATE TABLE during_copy ()")
            for _ in range(3):
                await connection.execute("SELECT txid_current(), pg_switch_wal()")
                await connection.execute("CHECKPOINT")

    def copy(*args: Any, **kwargs: Any) -> None:  # Any: those of copy_cluster
        copy_cluster(*args, **kwargs)
        asyncio.run_coroutine_threadsafe(write(), loop).result()

    monkeypatch.setattr(cluster, "copy_cluster", copy)
    keep = "SELECT setting FROM pg_settings WHERE name = 'wal_keep_size'"
    before = await fetch(clusters, id, keep)
    await execute(
        clusters,
        id,
        "SET ROLE neon_superuser",
        "SELECT pg_create_physical_replication_slot('s' || n) FROM generate_series(1, 10) AS n",
    )
    await clusters.copy(id, "br-copy")
    assert await fetch(clusters, id, keep) == before
    monkeypatch.undo()
    await clusters.start("br-copy", DESIRED)
    assert await fetch(clusters, "br-copy", keep) == before
    assert await fetch(clusters, "br-copy", "SELECT count(*) FROM during_copy") == [0]


async def test_server_keeps_no_wal_after_a_copy_that_was_cancelled_early(
    each_clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters, id = each_clusters, "br-main"
    await clusters.start(id, DESIRED)
    keep = "SELECT setting FROM pg_settings WHERE name = 'wal_keep_size'"
    before = await fetch(clusters, id, keep)
    waits = asyncio.Event()

    async def wait(session: AdminSession, *setting: str) -> None:
        await await_setting(session, *setting)
        waits.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(cluster, "await_setting", wait)
    copying = asyncio.create_task(clusters.copy(id, "br-copy"))
    await waits.wait()
    assert await fetch(clusters, id, keep) != before
    copying.cancel()
    await asyncio.wait([copying])
    assert await fetch(clusters, id, keep) == before
    monkeypatch.undo()
    await clusters.copy(id, "br-copy")
    assert await fetch(clusters, id, keep) == before
