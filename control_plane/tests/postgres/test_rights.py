"""The rights with which the administrator's work calls what a role of a branch wrote."""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from neonctl_local.postgres import admin
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import DatabaseSpec, Desired, RoleSpec, SqlChanges
from neonctl_local.postgres.copying import remove
from neonctl_local.postgres.history.bases import Moment
from tests.support.clusters import ALICE, DESIRED, administrator, asyncpg, execute, fetch, session
from tests.support.until import until

pytestmark = pytest.mark.postgres

HERE = Path(__file__).parent
MAIN = "br-main"
BOB = RoleSpec("bob", "password-of-bob")
WITHOUT_ALICE = Desired([BOB], [DatabaseSpec("renamed", "bob")], renamed={"app": "renamed"})

WITHOUT_SQL = {"open", "close", "claim", "load", "keep", "delete"}
"""Methods of Clusters that only change files and processes."""

UNUSED = {"enabled in replicas", "foreign table"}
"""Places that no role can reach, because they need a superuser or a server elsewhere."""


async def copy_schema(clusters: Clusters) -> None:
    """Copy the schema of a running and of a stopped server. The copy is used like its source."""
    await clusters.copy_schema(MAIN, "br-schema")
    await clusters.start("br-schema", DESIRED)
    assert await fetch(clusters, "br-schema", "SELECT FROM public.calls") == []
    dump = await clusters.dump_schema("br-schema", "app")
    assert dump == await clusters.dump_schema(MAIN, "app")
    await clusters.stop("br-schema")
    await clusters.copy_schema("br-schema", "br-schema-2")


async def drop_roles(clusters: Clusters) -> None:
    """Give everything that alice has to another role, in a copy."""
    await clusters.copy(MAIN, "br-bob")
    await clusters.start("br-bob", DESIRED)
    await clusters.configure("br-bob", WITHOUT_ALICE)
    await clusters.configure("br-bob", Desired([BOB]))


async def use_spare(clusters: Clusters) -> None:
    """Connect to the databases of a copy that is started before it is needed."""
    await clusters.copy(MAIN, "br-source")
    await clusters.prepare("br-source", 1)
    await until(lambda: clusters.prepared("br-source") == 1)
    await clusters.copy("br-source", "br-copy")


async def pass_changes(clusters: Clusters) -> None:
    async def store(_changes: SqlChanges) -> bool:
        return True

    await clusters.pass_sql_changes(MAIN, store)


async def stop_and_start(clusters: Clusters) -> None:
    async def is_unused() -> bool:
        return True

    await clusters.stop_unused(MAIN, is_unused)
    await clusters.start(MAIN, DESIRED)
    await clusters.stop(MAIN)
    await clusters.changed_at(MAIN)
    await clusters.start(MAIN, DESIRED)


PATHS: dict[str, Callable[[Clusters], Awaitable[object]]] = {
    "activity": lambda clusters: clusters.activity(MAIN),
    "changed_at": lambda clusters: clusters.changed_at(MAIN),
    "configure": lambda clusters: clusters.configure(
        MAIN, Desired([ALICE, BOB], DESIRED.databases, {"work_mem": "5MB"})
    ),
    "describe_schema": lambda clusters: clusters.describe_schema(MAIN, "app"),
    "dump_schema": lambda clusters: clusters.dump_schema(MAIN, "app"),
    "login": lambda clusters: clusters.login(MAIN, "alice", "app"),
    "password": lambda clusters: clusters.password(MAIN, "alice", DESIRED),
    "size": lambda clusters: clusters.size(MAIN),
    "pass_sql_changes": pass_changes,
    "forget_found": lambda clusters: clusters.forget_found(MAIN, DESIRED),
    "copy": drop_roles,
    "prepare": use_spare,
    "copied_at": lambda clusters: clusters.copied_at("br-copy"),
    "copy_schema": copy_schema,
    "check_moment": lambda clusters: clusters.check_moment(MAIN, Moment(at=datetime.now(UTC))),
    "copy_past": lambda clusters: clusters.copy_past(MAIN, "br-past", Moment(at=datetime.now(UTC))),
    "keep_history": lambda clusters: clusters.keep_history({MAIN: 0.0}),
    "limit_history": lambda clusters: clusters.limit_history(0),
    "stop": stop_and_start,
    "stop_unused": stop_and_start,
    "start": stop_and_start,
    "initialize": lambda clusters: clusters.initialize(MAIN, 18),
    "rename": lambda clusters: clusters.rename("br-past", "br-renamed"),
}
"""What the administrator does, by the method of Clusters."""


@pytest.fixture
async def clusters(each_clusters: Clusters, temporary_directory: Path) -> AsyncIterator[Clusters]:
    """Clusters with ``br-main``, whose server runs."""
    await each_clusters.start(MAIN, DESIRED)
    yield each_clusters
    await asyncio.to_thread(remove, temporary_directory / "proofs")


@pytest.fixture
async def proofs(clusters: Clusters, temporary_directory: Path) -> Path:
    """The directory where each place has a file that a superuser reached. Only witness() writes."""
    directory = temporary_directory / "proofs"
    await asyncio.to_thread(_make_open, directory)
    async with administrator(clusters, MAIN, "app") as connection:
        await connection.execute(
            "CREATE FOREIGN DATA WRAPPER far; CREATE SERVER far FOREIGN DATA WRAPPER far;"
            "GRANT USAGE ON FOREIGN SERVER far TO alice"
        )
    await execute(clusters, MAIN, "CREATE ROLE reader", "GRANT reader TO alice")
    await execute(clusters, MAIN, await _read("hostile.sql", DIRECTORY=str(directory)))
    sources = await asyncio.to_thread(_sources)
    names = sorted(set(re.findall(r"\b([a-z_0-9]+)\(", sources)))
    await execute(clusters, MAIN, await _read("shadows.sql", NAMES=f"{{{','.join(names)}}}"))
    return directory


async def test_nothing_that_a_role_wrote_is_called_by_the_administrator(
    clusters: Clusters, proofs: Path
) -> None:
    written = await _read("hostile.sql")
    places = set(re.findall(r"(?:seen|note|witness)\('([a-z ]+)'", written))
    called = await fetch(clusters, MAIN, "SELECT DISTINCT place::text FROM public.calls")
    assert set(called) == places - UNUSED
    methods = inspect.getmembers(Clusters, inspect.iscoroutinefunction)
    assert {name for name, _ in methods if name[0] != "_"} == PATHS.keys() | WITHOUT_SQL
    await execute(clusters, MAIN, "DELETE FROM public.calls")
    for path in PATHS.values():
        await path(clusters)
    assert await asyncio.to_thread(_names, proofs) == []
    assert await fetch(clusters, MAIN, "SELECT place FROM public.calls") == []


async def test_scripts_of_extensions_call_nothing_in_the_schema_of_a_role(
    clusters: Clusters, proofs: Path
) -> None:
    """The script of an extension runs with the rights of a superuser, in a schema of its user."""
    await execute(
        clusters,
        MAIN,
        "CREATE EXTENSION cube SCHEMA public",
        "CREATE DOMAIN shadows.checked AS text CHECK (public.seen(VALUE, 1) = 1)",
        "CREATE TYPE shadows.cube AS (a shadows.checked)",
        "CREATE FUNCTION shadows.cube_is_point(shadows.cube) RETURNS bool RETURN true",
        "CREATE FUNCTION shadows.cube_dim(shadows.cube) RETURNS int RETURN 1",
        "CREATE FUNCTION shadows.cube_distance(shadows.cube, shadows.cube) RETURNS float8"
        " RETURN 1.0",
    )
    async with session(clusters, MAIN) as connection:
        await connection.execute("SET search_path = pg_catalog")
        rows = await connection.fetch(
            "SELECT name::text, version::text FROM pg_available_extension_versions"
            " WHERE (trusted OR NOT superuser) AND name NOT IN ('plpgsql', 'cube')"
        )
        assert {"refint", "hstore", "bloom"} <= {row["name"] for row in rows}
        created: set[str] = set()
        for name, version in rows:
            for statement in (
                f'CREATE EXTENSION "{name}" SCHEMA shadows VERSION "{version}"',
                f'ALTER EXTENSION "{name}" UPDATE',
                f'DROP EXTENSION "{name}" CASCADE',
            ):
                try:
                    await connection.execute(statement)
                except asyncpg.PostgresError:
                    continue
                created.add(name)
    assert created >= {"refint", "hstore"}
    assert await asyncio.to_thread(_names, proofs) == []


async def test_objects_of_a_deleted_role_do_not_become_those_of_the_administrator(
    clusters: Clusters,
) -> None:
    """The database ``postgres`` belongs to the administrator, and every role can connect to it."""
    objects = "SELECT count(*) FROM pg_largeobject_metadata"
    await execute(clusters, MAIN, "SELECT lo_create(0)", database="postgres")
    await clusters.configure(MAIN, Desired([BOB], [DatabaseSpec("app", "bob")]))
    options = {"database": "postgres", "user": "bob", "password": BOB.password}
    assert await fetch(clusters, MAIN, objects, **options) == [0]


async def _read(name: str, **variables: str) -> str:
    text = await asyncio.to_thread(_text, HERE / name)
    for variable, value in variables.items():
        text = text.replace(f"${variable}", value)
    return text


def _text(path: str | Path) -> str:
    return Path(path).read_text(encoding="utf-8")


def _sources() -> str:
    """Return all that sends SQL in sessions of the administrator."""
    package = Path(admin.__file__).parent
    return "".join(_text(file) for kind in ("*.py", "*.sql") for file in package.rglob(kind))


def _make_open(directory: Path) -> None:
    directory.mkdir()
    directory.chmod(0o777)


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())
