"""Copies of clusters without rows."""

import asyncio
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import DatabaseSpec, Desired
from neonctl_local.postgres.emptying import forget_rows
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.history.bases import Moment
from tests.support.clusters import ALICE, administrator, asyncpg, execute, fetch, files, session

pytestmark = pytest.mark.postgres

SECRET = "value-of-a-row-that-no-copy-has"
MAIN = "br-main"
SETTINGS = {
    "max_prepared_transactions": "2",
    "shared_preload_libraries": "pg_stat_statements",  # it stores the text of statements
    "wal_keep_size": "64MB",
}
DESIRED = Desired([ALICE], [DatabaseSpec("app", "alice")], SETTINGS)

COPIED = f"CREATE TABLE t AS SELECT '{SECRET}'::text AS short"
SCHEMA = """
CREATE TABLE t (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    short text UNIQUE,
    long text,
    parent int REFERENCES t
);
ALTER TABLE t ALTER long SET STORAGE EXTERNAL;
CREATE TABLE child () INHERITS (t);
CREATE UNLOGGED TABLE unlogged (short text);
CREATE TABLE parts (short text PRIMARY KEY) PARTITION BY RANGE (short);
CREATE TABLE part PARTITION OF parts DEFAULT;
CREATE TABLE of_parts (short text REFERENCES parts);
CREATE STATISTICS values_of_t (mcv) ON short, long FROM child;
CREATE SEQUENCE counter START 5;
CREATE MATERIALIZED VIEW stored AS SELECT short FROM ONLY t;
CREATE UNIQUE INDEX ON stored (lower(short)) WHERE short IS NOT NULL;
CREATE FUNCTION short() RETURNS text STABLE LANGUAGE sql AS 'SELECT short FROM ONLY public.t';
CREATE EXTENSION hstore;
"""

ROWS = [
    "INSERT INTO t (short, long, parent) VALUES ($1, repeat($1, 500), 1)",
    "INSERT INTO child (id, short, long) SELECT n, $1, $1 FROM generate_series(2, 40) AS n",
    "INSERT INTO unlogged VALUES ($1)",
    "INSERT INTO parts VALUES ($1)",
    "INSERT INTO of_parts VALUES ($1)",
    "SELECT lo_from_bytea(0, convert_to($1, 'UTF8'))",
]
DERIVED = [
    "CREATE DATABASE closed",
    "CREATE DATABASE example",
    "CREATE DATABASE half_deleted",
    "ALTER TABLE unlogged ADD value text DEFAULT short()",
    "REFRESH MATERIALIZED VIEW stored",
    "SELECT nextval('counter')",
    "ANALYZE",
]

TABLES = """
SELECT relname::text FROM pg_class WHERE relkind = 'r' AND oid >= 16384 AND query_to_xml(
    format('SELECT FROM ONLY %s LIMIT 1', oid::regclass), true, true, ''
)::text LIKE '%<row%'
"""
"""The tables that have rows."""


@pytest.fixture
async def clusters(each_clusters: Clusters) -> Clusters:
    """Clusters with ``br-main``, whose databases have rows. Its server runs."""
    clusters = each_clusters
    await clusters.start(MAIN, DESIRED)
    await execute(clusters, MAIN, SCHEMA)
    async with session(clusters, MAIN) as connection:
        for statement in ROWS:
            await connection.fetch(statement, SECRET)
        for statement in DERIVED:
            await connection.execute(statement)
    for name in ("closed", "example"):
        await execute(clusters, MAIN, COPIED, database=name)
    await execute(
        clusters,
        MAIN,
        "ALTER DATABASE closed ALLOW_CONNECTIONS false",
        "ALTER DATABASE example IS_TEMPLATE true",
    )
    return clusters


async def test_copy_of_a_schema_has_no_value_of_a_row_in_any_file(
    clusters: Clusters, temporary_directory: Path
) -> None:
    """A role can read the files as a base backup, and those of a history as a restored branch."""
    [password] = await files(temporary_directory, "*/data/clusters/*.password")
    main = Path(password).stem
    async with session(clusters, MAIN) as connection, session(clusters, MAIN) as other:
        prepared = f"BEGIN; INSERT INTO unlogged VALUES ('{SECRET}'); PREPARE TRANSACTION 'it''s'"
        await connection.execute(prepared)
        await other.execute(f"BEGIN; {COPIED.replace('TABLE t', 'TABLE uncommitted')}")
        await clusters.copy_schema(MAIN, "br-of-running")
    await execute(clusters, MAIN, "ROLLBACK PREPARED 'it''s'")
    await clusters.stop(MAIN)
    await clusters.copy_schema(MAIN, "br-of-stopped")
    for copy in ("br-of-running", "br-of-stopped"):
        await clusters.start(copy, DESIRED)
        await execute(clusters, copy, "CREATE TABLE later ()")
        await clusters.copy_past(copy, f"{copy}-past", Moment(at=datetime(2026, 1, 1, tzinfo=UTC)))
        await clusters.stop(copy)
    found = await asyncio.to_thread(_files_with, SECRET.encode(), temporary_directory)
    assert {path.relative_to(temporary_directory).parts[3] for path in found} >= {main}
    assert [path for path in found if main not in str(path)] == []


async def test_copy_of_a_schema_works_as_a_new_database(clusters: Clusters) -> None:
    await clusters.stop(MAIN)
    await clusters.copy_schema(MAIN, "br-copy")
    await clusters.start("br-copy", DESIRED)
    names = "SELECT datname::text FROM pg_database WHERE NOT datallowconn ORDER BY datname"
    assert await fetch(clusters, "br-copy", names) == ["closed", "template0"]
    assert await fetch(clusters, "br-copy", TABLES) == []
    assert await fetch(clusters, "br-copy", TABLES, database="example") == []
    counts = "SELECT n_live_tup FROM pg_stat_user_tables WHERE n_live_tup + n_tup_ins > 0"
    assert await fetch(clusters, "br-copy", counts) == []
    assert await fetch(clusters, "br-copy", "SELECT nextval('counter')") == [5]
    added = "INSERT INTO t (short, parent) VALUES ('first', 1) RETURNING id"
    assert await fetch(clusters, "br-copy", added) == [1]
    assert await fetch(clusters, "br-copy", "SELECT value FROM unlogged") == []
    with pytest.raises(asyncpg.UniqueViolationError):
        await execute(clusters, "br-copy", added)
    with pytest.raises(asyncpg.ForeignKeyViolationError):
        await execute(clusters, "br-copy", "INSERT INTO of_parts VALUES ('unknown')")
    with pytest.raises(asyncpg.ObjectNotInPrerequisiteStateError, match="has not been populated"):
        await execute(clusters, "br-copy", "SELECT FROM stored")
    await execute(clusters, "br-copy", "REFRESH MATERIALIZED VIEW stored", "ANALYZE")
    found = "SELECT short FROM stored WHERE lower(short) = 'first'"
    assert await fetch(clusters, "br-copy", found) == ["first"]


async def test_rows_of_an_extension_stay_except_for_those_that_users_added(
    clusters: Clusters,
) -> None:
    """PostGIS has such a table, spatial_ref_sys. A dump of data has the rows of a condition."""
    async with administrator(clusters, MAIN, "app") as connection:
        await connection.execute(
            "CREATE TABLE public.reference AS SELECT generate_series(1, 4) AS n;"
            "GRANT SELECT ON public.reference TO alice;"
            "ALTER EXTENSION hstore ADD TABLE public.reference;"
            "UPDATE pg_extension SET extconfig = ARRAY['public.reference'::regclass::oid],"
            " extcondition = ARRAY['WHERE n > 2'] WHERE extname = 'hstore'"
        )
    await clusters.copy_schema(MAIN, "br-copy")
    await clusters.start("br-copy", DESIRED)
    assert await fetch(clusters, "br-copy", "SELECT n FROM reference ORDER BY n") == [1, 2]


async def test_database_whose_deletion_was_interrupted_is_not_copied(clusters: Clusters) -> None:
    async with administrator(clusters, MAIN, "postgres") as connection:
        await connection.execute(
            "UPDATE pg_database SET datconnlimit = -2 WHERE datname = 'half_deleted'"
        )
    await clusters.copy_schema(MAIN, "br-copy")
    await clusters.start("br-copy", DESIRED)
    names = "SELECT datname::text FROM pg_database WHERE datname ~ 'e' ORDER BY datname"
    expected = ["closed", "example", "postgres", "template0", "template1"]
    assert await fetch(clusters, "br-copy", names) == expected


@pytest.mark.parametrize("link", ["base", "base/5", "pg_stat", "pg_wal"])
def test_removal_of_rows_follows_no_link_of_the_account_of_the_servers(
    tmp_path: Path, link: str
) -> None:
    data, other = tmp_path / "data", tmp_path / "other"
    for directory in (other, other / "5", data / "base" / "5", data / "pg_stat", data / "pg_wal"):
        directory.mkdir(parents=True)
    files = [directory / name for directory in (other, other / "5") for name in (".profile", "7")]
    for file in files:
        file.touch()
    shutil.rmtree(data / link)
    (data / link).symlink_to(other)
    with pytest.raises(ClusterError, match=r"the rows in '.*/data' were not removed"):
        forget_rows(data, ["base/5/100"], "000000010000000000000002")
    assert [file for file in files if not file.exists()] == []


def _files_with(text: bytes, directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file() and text in path.read_bytes()]
