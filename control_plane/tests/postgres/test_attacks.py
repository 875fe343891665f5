"""Roles of a branch that attack the machine, the other clusters and the administrator."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from psycopg import pq

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import RoleSpec
from neonctl_local.postgres.errors import ClusterError
from tests.support.clusters import (
    ALICE,
    DESIRED,
    PASSWORD,
    asyncpg,
    data_directories,
    execute,
    fetch,
    files,
    session,
)

pytestmark = pytest.mark.postgres

GRANTS = [
    "pg_execute_server_program",
    "pg_read_server_files",
    "pg_write_server_files",
    "cloud_admin",
]

ATTACKS = {
    "program": "COPY t FROM PROGRAM 'id'",
    "program as output": "COPY t TO PROGRAM 'cat'",
    "read with COPY": "COPY t FROM '/etc/passwd'",
    "read with a function": "SELECT pg_read_file('/etc/passwd')",
    "read with a large object": "SELECT lo_import('/etc/passwd')",
    "list": "SELECT pg_ls_dir('..')",
    "file_fdw": "CREATE EXTENSION file_fdw",
    "write with COPY": "COPY t TO '/tmp/neonctl-attack'",
    "write with a large object": "SELECT lo_export(lo_create(0), '/tmp/neonctl-attack')",
    "language c": "CREATE FUNCTION f(cstring) RETURNS int LANGUAGE c AS 'libc.so.6', 'system'",
    "language internal": "CREATE FUNCTION f(oid) RETURNS text LANGUAGE internal AS 'pg_read_file'",
    "new language": "CREATE LANGUAGE l HANDLER plpgsql_call_handler",
    "untrusted Perl": "CREATE EXTENSION plperlu",
    "untrusted Python": "CREATE EXTENSION plpython3u",
    "dblink": "CREATE EXTENSION dblink",
    "postgres_fdw": "CREATE EXTENSION postgres_fdw",
    "adminpack": "CREATE EXTENSION adminpack",
    "subscription": "CREATE SUBSCRIPTION s CONNECTION 'user=cloud_admin' PUBLICATION p",
    "library": "LOAD '/tmp/neonctl-attack.so'",
    "tablespace": "CREATE TABLESPACE t LOCATION '/tmp'",
    "setting": "ALTER SYSTEM SET archive_command = 'id'",
    "setting of a role": "ALTER ROLE alice SET session_preload_libraries = '/tmp/neonctl-attack'",
    "setting of the administrator": "ALTER ROLE cloud_admin SET statement_timeout = 1",
    "setting of all roles": "ALTER ROLE ALL SET statement_timeout = 1",
    "setting of the administrator's database": "ALTER DATABASE postgres SET role = 'alice'",
    "superuser": "ALTER ROLE alice SUPERUSER",
    "new superuser": "CREATE ROLE mallory SUPERUSER",
    "password of the administrator": "ALTER ROLE cloud_admin PASSWORD 'known'",
    "role of the administrator": "SET ROLE cloud_admin",
    "catalog": "UPDATE pg_authid SET rolsuper = true WHERE rolname = 'alice'",
    "catalog of members": "INSERT INTO pg_auth_members SELECT 4571, oid, 10 FROM pg_roles",
    "event trigger": "CREATE EVENT TRIGGER e ON ddl_command_end"
    " EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "foreign data wrapper": "CREATE FOREIGN DATA WRAPPER w",
    "role with a reserved name": "CREATE ROLE pg_execute_server_program",
}


@pytest.fixture
async def attacked(
    each_installation: Installation, account: ServerAccount | None, temporary_directory: Path
) -> AsyncIterator[Clusters]:
    """A control plane with the running cluster ``br-main`` of each installed version."""
    major = each_installation.major
    clusters = Clusters({major: each_installation}, account, directory=None, durable=False)
    await clusters.open()
    try:
        await clusters.initialize("br-main", major)
        await clusters.start("br-main", DESIRED)
        await execute(clusters, "br-main", "CREATE TABLE t (line text)")
        yield clusters
    finally:
        await clusters.close()
    assert await files(temporary_directory) == []


async def refused(clusters: Clusters, statement: str, id: str = "br-main") -> None:
    """Run a statement that Postgres must refuse, as alice."""
    with pytest.raises(asyncpg.PostgresError):
        await execute(clusters, id, statement)


async def escalate(clusters: Clusters, id: str = "br-main") -> None:
    """Grant alice, and a role that she creates, every role that Postgres lets her grant."""
    async with session(clusters, id) as connection:
        await connection.execute("CREATE ROLE helper CREATEROLE LOGIN")
        for role in GRANTS:
            for member in ("alice", "helper"):
                try:
                    await connection.execute(f"GRANT {role} TO {member} WITH ADMIN OPTION")
                except asyncpg.PostgresError:
                    continue


async def test_role_of_a_branch_cannot_leave_its_cluster(attacked: Clusters) -> None:
    await escalate(attacked)
    succeeded: list[str] = []
    async with session(attacked, "br-main") as connection:
        for name, statement in ATTACKS.items():
            try:
                await connection.execute(statement)
            except asyncpg.PostgresError:
                continue
            succeeded.append(name)
    assert succeeded == []
    assert await fetch(attacked, "br-main", "SELECT line FROM t") == []
    for role in GRANTS:
        await refused(attacked, f"GRANT {role} TO CURRENT_USER")


async def test_role_changes_nothing_through_views_of_the_administrator(attacked: Clusters) -> None:
    """Members of pg_write_all_data may write them, and with them the tables of the system."""
    await execute(
        attacked,
        "br-main",
        "CREATE ROLE helper NOLOGIN",
        "UPDATE pg_group SET grosysid = 4571 WHERE groname = 'helper'",
        "DELETE FROM pg_stat_database_conflicts WHERE datname = 'postgres'",
        "GRANT helper TO CURRENT_USER",
    )
    await refused(attacked, "COPY t FROM PROGRAM 'id'")
    writable = (
        "SELECT c.oid::regclass::text FROM pg_class c JOIN pg_roles r ON r.oid = relowner"
        " WHERE rolsuper AND relkind = 'v' AND pg_relation_is_updatable(c.oid, false) <> 0"
        " AND NOT EXISTS (SELECT FROM pg_rewrite WHERE ev_class = c.oid AND ev_type <> '1')"
    )
    assert await fetch(attacked, "br-main", writable) == []
    changed = "SELECT rolname FROM pg_roles WHERE rolname = 'helper' AND oid < 16384"
    assert await fetch(attacked, "br-main", changed) == []
    kept = "SELECT datname FROM pg_database WHERE datname = 'postgres'"
    assert await fetch(attacked, "br-main", kept) == ["postgres"]


@pytest.mark.long
async def test_role_that_locks_tables_of_the_system_blocks_its_own_branch_until_it_stops(
    attacked: Clusters,
) -> None:
    """Members of pg_write_all_data may lock views, and with them the tables behind."""
    await attacked.copy("br-main", "br-other")
    async with session(attacked, "br-main") as connection:
        await connection.execute("BEGIN; LOCK TABLE pg_roles")
        with pytest.raises(ClusterError):
            await attacked.activity("br-main")
        async with asyncio.timeout(8):  # while logins of the branch take longer
            await attacked.start("br-other", DESIRED)
            await attacked.activity("br-other")
            await execute(attacked, "br-other", "SELECT 1")
        await attacked.stop("br-main")
    await attacked.start("br-main", DESIRED)
    await execute(attacked, "br-main", "SELECT 1")


async def test_copy_of_the_schema_is_closed_as_well(attacked: Clusters) -> None:
    await escalate(attacked)
    await attacked.copy_schema("br-main", "br-schema")
    await attacked.start("br-schema", DESIRED)
    for role in GRANTS:
        await refused(attacked, f"GRANT {role} TO CURRENT_USER", "br-schema")
    await refused(attacked, "COPY t FROM PROGRAM 'id'", "br-schema")


async def test_application_still_creates_and_grants_roles(attacked: Clusters) -> None:
    await execute(
        attacked,
        "br-main",
        "CREATE ROLE reader LOGIN PASSWORD 'of-the-reader'",
        "GRANT SELECT ON t TO reader",
        "CREATE ROLE team",
        "GRANT team TO reader",
        "ALTER ROLE reader VALID UNTIL 'infinity'",
    )
    query = "SELECT line FROM t"
    assert await fetch(attacked, "br-main", query, user="reader", password="of-the-reader") == []


async def test_base_backup_does_not_have_the_password_of_the_administrator(
    attacked: Clusters, temporary_directory: Path
) -> None:
    passwords = await asyncio.to_thread(_passwords, temporary_directory)
    assert passwords
    replicating = msgspec.structs.replace(DESIRED, settings={"wal_level": "logical"})
    await attacked.configure("br-main", replicating)
    backup = await asyncio.to_thread(_base_backup, attacked.socket("br-main"))
    assert b"PG_VERSION" in backup
    assert not any(password in backup for password in passwords)


async def test_role_sees_no_statement_of_the_administrator(attacked: Clusters) -> None:
    """Statements contain passwords, and members of pg_monitor see those of others."""
    library = {"shared_preload_libraries": "pg_stat_statements"}
    counting = msgspec.structs.replace(DESIRED, settings=library)
    await attacked.configure("br-main", counting)
    await execute(attacked, "br-main", "CREATE EXTENSION pg_stat_statements")
    bob = RoleSpec("bob", "pässword-of-bob")
    admin = asyncio.create_task(_activity_of_the_administrator(attacked))
    await attacked.configure("br-main", msgspec.structs.replace(counting, roles=[ALICE, bob]))
    assert await admin == set()
    own = "SELECT query FROM pg_stat_statements WHERE userid = 'alice'::regrole"
    others = "SELECT query FROM pg_stat_statements WHERE userid <> 'alice'::regrole"
    assert await fetch(attacked, "br-main", own) != []
    assert await fetch(attacked, "br-main", others) == []


async def _activity_of_the_administrator(clusters: Clusters) -> set[str]:
    """Return the statements that alice sees of sessions of the administrator, for a second."""
    seen: set[str] = set()
    query = "SELECT DISTINCT query FROM pg_stat_activity WHERE usename = 'cloud_admin'"
    async with session(clusters, "br-main") as connection:
        for _ in range(200):
            seen |= {row["query"] for row in await connection.fetch(query)}
            await asyncio.sleep(0.005)
    return seen - {"", "<command string not enabled>"}


async def test_account_of_the_servers_can_read_no_password(
    attacked: Clusters, account: ServerAccount | None, temporary_directory: Path
) -> None:
    await attacked.copy("br-main", "br-copy")
    [*directories] = await data_directories(temporary_directory)
    assert len(directories) == 2
    for path, status in await asyncio.to_thread(_files_with_passwords, temporary_directory):
        assert status.st_mode & 0o077 == 0
        assert status.st_uid == os.geteuid()
        assert account is None or status.st_uid != account.uid
        assert path.parent.name == "clusters", "outside of every data directory"


def _passwords(directory: Path) -> list[bytes]:
    return [path.read_bytes() for path in directory.rglob("*password") if path.is_file()]


def _files_with_passwords(directory: Path) -> list[tuple[Path, os.stat_result]]:
    """Return the files below a directory that have the password of an administrator."""
    passwords = _passwords(directory)
    assert passwords
    paths = [path for path in directory.rglob("*") if path.is_file()]
    contents = {path: path.read_bytes() for path in paths}
    found = [path for path, text in contents.items() if any(each in text for each in passwords)]
    return [(path, path.stat()) for path in found]


def _base_backup(socket: Path | None) -> bytes:
    """Return what alice gets from the server as a base backup."""
    assert socket is not None
    place = f"host={socket.parent} port={socket.suffix.removeprefix('.')} dbname=app"
    connection = pq.PGconn.connect(
        f"{place} user=alice password={PASSWORD} replication=database".encode()
    )
    try:
        old = connection.server_version < 150000
        result = connection.exec_(b"BASE_BACKUP FAST" if old else b"BASE_BACKUP (CHECKPOINT fast)")
        assert result.status == pq.ExecStatus.COPY_OUT, result.error_message
        pieces: list[bytes] = []
        while (received := connection.get_copy_data(0))[0] > 0:
            pieces.append(bytes(received[1]))
    finally:
        connection.finish()
    return b"".join(pieces)


async def test_functions_of_a_role_are_not_called_by_the_administrator(
    attacked: Clusters,
) -> None:
    """The administrator describes the tables with json_build_object(VARIADIC "any")."""
    await execute(
        attacked,
        "br-main",
        "CREATE TABLE calls (name text)",
        "CREATE FUNCTION public.json_build_object(text, json) RETURNS json LANGUAGE plpgsql AS"
        " $$ BEGIN INSERT INTO calls VALUES (current_user); RETURN '{}'; END $$",
    )
    assert '"calls"' in await attacked.describe_schema("br-main", "app")
    assert await fetch(attacked, "br-main", "SELECT name FROM calls") == []
