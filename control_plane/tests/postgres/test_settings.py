"""Settings of Postgres: those of projects, of servers and of the administrator's sessions."""

import asyncio
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from neonctl_local.postgres import cluster as cluster_module
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.cluster import APPLIED, Cluster
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import DatabaseSpec, Desired, RoleSpec
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.history.bases import Moment
from neonctl_local.postgres.programs import program_environment
from neonctl_local.postgres.servers.postmaster import Postmaster, identity
from neonctl_local.postgres.settings import (
    BOUNDS,
    PERMITTED,
    fixed_settings,
    permitted,
    refusal,
    session_settings,
)
from tests.support.clusters import DESIRED, asyncpg, execute, fetch, session

SESSION_CONTEXTS: Final = ("user", "backend")
OF_A_TRANSACTION: Final = {
    "transaction_deferrable",
    "transaction_isolation",
    "transaction_read_only",
}
"""Settings that Postgres accepts in no file, and forgets at the end of a transaction."""

NAMES_NOTHING: Final = {
    "backtrace_functions": "functions of the server",
    "debug_io_direct": "kinds of files",
    "wal_consistency_checking": "parts of the server",
    "external_pid_file": "no value of the command line is its default, which is no file",
    "shared_preload_libraries": "chosen by the API, from a list",
}
"""Texts that a server is started without, and why."""

HARMLESS: Final = """
backend_flush_after commit_delay commit_siblings compute_query_id constraint_exclusion
cursor_tuple_fraction
debug_logical_replication_streaming debug_parallel_query default_statistics_target
effective_cache_size effective_io_concurrency force_parallel_mode from_collapse_limit
gin_pending_list_limit hash_mem_multiplier io_combine_limit join_collapse_limit
logical_decoding_work_mem maintenance_io_concurrency maintenance_work_mem max_parallel_workers
md5_password_warnings plan_cache_mode random_page_cost recursive_worktable_factor
seq_page_cost temp_buffers wal_compression wal_sender_timeout wal_skip_threshold work_mem
"""
"""Settings that choose a plan, limit its resources or concern sessions of other kinds."""

HARMLESS_PREFIXES: Final = (
    "cpu_",
    "enable_",
    "geqo",
    "jit",
    "min_parallel_",
    "parallel_",
    "track_",
    "vacuum_",
)
"""The first parts of the names of more such settings."""

HOSTILE_TEXTS: Final = {
    "DateStyle": "SQL, DMY",
    "TimeZone": "Asia/Tokyo",
    "application_name": "hostile",
    "client_encoding": "LATIN1",
    "createrole_self_grant": "set, inherit",
    "default_table_access_method": "heap2",
    "default_tablespace": "pg_global",
    "default_text_search_config": "pg_catalog.german",
    "lc_monetary": "POSIX",
    "lc_numeric": "POSIX",
    "lc_time": "POSIX",
    "local_preload_libraries": "missing",
    "restrict_nonsystem_relation_kind": "view, foreign-table",
    "search_path": "hostile, pg_catalog",
    "temp_tablespaces": "missing",
    "timezone_abbreviations": "India",
}
"""A value for each text. A text that a new version adds fails the tests."""

DESCRIBED: Final = (
    "SELECT name, context, vartype, boot_val, min_val, max_val, unit, enumvals FROM pg_settings"
)
CHANGED: Final = """
SELECT name FROM pg_settings WHERE context IN ('user', 'backend', 'superuser')
    AND source IN ('configuration file', 'database', 'user', 'database user')
UNION ALL SELECT 'role ' || current_user
"""
"""The settings of a session that a project or a database chose, and its role."""


def hostile(row: Mapping[str, Any]) -> str:
    """Return a value that changes a setting: the smallest one, or another than the default."""
    if row["vartype"] == "bool":
        return "off" if row["boot_val"] == "on" else "on"
    if row["vartype"] == "enum":
        return str(min(row["enumvals"], key=row["boot_val"].__eq__))
    if row["vartype"] == "string":
        return HOSTILE_TEXTS[row["name"]]
    if row["name"] == "vacuum_buffer_usage_limit":  # has a gap between 0 and 128
        return "128"
    smallest = float(row["min_val"])  # 0 and -1 are no timeouts
    return "1" if smallest in {-1, 0, float(row["boot_val"])} else str(row["min_val"])


@asynccontextmanager
async def opened(
    installation: Installation, account: ServerAccount | None
) -> AsyncGenerator[Clusters]:
    """Clusters with history, one of which runs."""
    versions = {installation.major: installation}
    clusters = Clusters(versions, account, directory=None, durable=False, history=True)
    await clusters.open()
    try:
        await clusters.initialize("br-main", installation.major)
        await clusters.start("br-main", DESIRED)
        yield clusters
    finally:
        await clusters.close()


def find(clusters: Clusters, id: str = "br-main") -> Cluster:
    return clusters._registry.get(id)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - sessions of the administrator are not public


async def rows(clusters: Clusters, *, load: bool = False) -> list[Mapping[str, Any]]:
    """Return all settings of the server, with those of all its libraries if these are loaded."""
    async with find(clusters).session() as administrator:
        if load:
            installation = await asyncio.to_thread(find(clusters).installation)
            for name in await asyncio.to_thread(libraries, installation):
                try:
                    await administrator.execute(f"LOAD '{name}'")
                except asyncpg.PostgresError:  # needs to be preloaded, or is no library of it
                    continue
        return list(await administrator.fetch(DESCRIBED))


def libraries(installation: Installation) -> list[str]:
    lib = installation.directory.parent / "lib"
    return sorted({path.stem for place in (lib, lib / "postgresql") for path in place.glob("*.so")})


@pytest.mark.postgres
async def test_project_may_choose_settings_of_sessions_and_sizes_but_no_other_text(
    each_installation: Installation, account: ServerAccount | None, temporary_directory: Path
) -> None:
    assert temporary_directory
    async with opened(each_installation, account) as clusters:
        found = await rows(clusters, load=True)
    assert len(found) > 350
    assert any("." in row["name"] for row in found)
    refused = OF_A_TRANSACTION | {"local_preload_libraries", "transaction_timeout"}
    for row in found:
        name, in_session = row["name"], row["context"] in SESSION_CONTEXTS
        reason = refusal(name, "1")
        if "." not in name and in_session:
            assert (reason is not None) == (name in refused), name
        elif reason is None:
            assert row["context"] in {*SESSION_CONTEXTS, "sighup", "postmaster", "superuser"}, name
            assert row["vartype"] != "string", name
        else:
            assert f"the setting {name!r} is not permitted: " in reason


@pytest.mark.postgres
async def test_permitted_settings_take_effect(
    each_installation: Installation, account: ServerAccount | None, temporary_directory: Path
) -> None:
    assert temporary_directory
    settings = {
        "autovacuum_naptime": "2min",
        "datestyle": "German, DMY",
        "deadlock_timeout": "3s",
        "max_connections": "30",
        "pg_stat_statements.max": "200",
        "search_path": "app, public",
        "statement_timeout": "1min",
        "work_mem": "7MB",
        "app.tenant": "it's a \\ text",
        "pg_trgm.similarity_threshold": "0.5",
    }
    assert permitted(settings) == settings
    async with opened(each_installation, account) as clusters:
        await clusters.configure("br-main", msgspec.structs.replace(DESIRED, settings=settings))
        for name, value in settings.items():
            assert await fetch(clusters, "br-main", f"SHOW {name}") == [value]


@pytest.mark.postgres
@pytest.mark.long
async def test_server_starts_with_the_greatest_values_together(
    each_installation: Installation, account: ServerAccount | None, temporary_directory: Path
) -> None:
    assert temporary_directory
    settings = {"shared_preload_libraries": "pg_stat_statements"}
    async with opened(each_installation, account) as clusters:
        await clusters.configure("br-main", msgspec.structs.replace(DESIRED, settings=settings))
        for row in await rows(clusters):
            if row["name"] in PERMITTED and row["context"] not in SESSION_CONTEXTS:
                settings[row["name"]] = greatest(row)
        assert len(settings) > 50
        assert all(refusal(name, value) is None for name, value in permitted(settings).items())
        assert permitted(settings).keys() == settings.keys() - {"shared_preload_libraries"}
        await clusters.configure("br-main", msgspec.structs.replace(DESIRED, settings=settings))
        for name in ("max_connections", "shared_buffers", "wal_buffers"):
            assert await fetch(clusters, "br-main", f"SHOW {name}") == [settings[name]]


def greatest(row: Mapping[str, Any]) -> str:
    """Return the greatest value that a project may choose."""
    name = row["name"]
    if row["vartype"] == "bool":
        return "on"
    if row["vartype"] == "enum":
        return str(row["enumvals"][0])
    if name in BOUNDS:
        unit, bound = BOUNDS[name]
        assert unit == (row["unit"] or "")
        assert refusal(name, row["max_val"]) is not None
        return bound
    reserves = row["context"] == "postmaster" and not name.endswith("_max_age")
    assert not reserves or float(row["max_val"]) <= 262_143, f"{name} needs a bound"
    return str(row["max_val"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("shared_buffers", "64GB"),
        ("Shared_Buffers", "262145"),
        ("shared_buffers", "2097153 kB"),
        ("shared_buffers", "1TB"),
        ("shared_buffers", "0x7fffffff"),
        ("max_connections", " +1001"),
        ("max_connections", "1e5"),
        ("track_activity_query_size", "65kB"),
    ],
)
def test_size_beyond_its_bound_is_refused(name: str, value: str) -> None:
    expected = f"expected at most {BOUNDS[name.lower()][1]}"
    assert expected in str(refusal(name, value))


@pytest.mark.parametrize("value", ["2GB", "262144", "1.5GB", " 128 MB "])
def test_size_within_its_bound_is_permitted(value: str) -> None:
    assert refusal("shared_buffers", value) is None
    assert refusal("autovacuum_work_mem", "-1") is None


@pytest.mark.postgres
@pytest.mark.long
async def test_no_start_of_a_server_has_a_command_file_or_library_of_others(
    each_installation: Installation,
    account: ServerAccount | None,
    temporary_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts: list[tuple[str, Mapping[str, str]]] = []

    class Recorded(Postmaster):
        def __init__(
            self, program: Path, data: Path, settings: Mapping[str, str], *rest: Any
        ) -> None:  # Any: handed on
            super().__init__(program, data, settings, *rest)
            self.started = (data / "postgresql.auto.conf", settings)

        async def start(self) -> None:
            file, settings = self.started
            starts.append((await asyncio.to_thread(file.read_text), settings))
            await super().start()

    monkeypatch.setattr(cluster_module, "Postmaster", Recorded)
    proof = temporary_directory / "proof"
    async with opened(each_installation, account) as clusters:
        texts = {
            row["name"]
            for row in await rows(clusters)
            if row["vartype"] == "string"
            and row["context"] not in {*SESSION_CONTEXTS, "internal"}
            and row["name"] not in NAMES_NOTHING
        }
        await execute(clusters, "br-main", "CREATE TABLE t ()")
        moment = Moment(datetime.now(UTC))
        await execute(clusters, "br-main", "CREATE TABLE later ()")
        async with find(clusters).session("app") as administrator:
            await administrator.execute(
                "CREATE SUBSCRIPTION s CONNECTION '' PUBLICATION p WITH (connect = false)"
            )
        stored = dict.fromkeys(texts, f"touch {proof}")
        await asyncio.to_thread(record_settings, find(clusters), stored)
        await clusters.copy_past("br-main", "br-past", moment)
        await clusters.start("br-past", DESIRED)
        assert await fetch(clusters, "br-past", "SELECT to_regclass('later')") == [None]
        await clusters.copy("br-main", "br-copy")
        await clusters.start("br-copy", DESIRED)
        await clusters.stop("br-main")
        await clusters.dump_schema("br-main", "app")
    assert any(settings.get("recovery_target_time") for _, settings in starts)
    assert any("max_logical_replication_workers" in settings for _, settings in starts)
    for file, settings in starts:
        assert texts - settings.keys() == set()
        assert "touch" not in " ".join([file, *settings.values()])
        assert settings["recovery_end_command"] == settings["session_preload_libraries"] == ""
    assert not await asyncio.to_thread(proof.exists)


def record_settings(cluster: Cluster, settings: dict[str, str]) -> None:
    """Record settings that no request may choose as those of the running server."""
    file = cluster.data / APPLIED
    applied = msgspec.json.decode(file.read_bytes())
    file.write_bytes(msgspec.json.encode(applied | {"settings": settings}))


@pytest.mark.postgres
@pytest.mark.long
async def test_administrator_works_whatever_a_project_or_a_database_sets(
    each_installation: Installation, account: ServerAccount | None, temporary_directory: Path
) -> None:
    assert temporary_directory
    async with opened(each_installation, account) as clusters:
        desired = await be_hostile(clusters)
        for seen in await asyncio.gather(ask(find(clusters)), ask_psql(find(clusters), account)):
            assert "role cloud_admin" in seen
            assert len(seen) > 50
            relevant = {name for name in seen if not name.startswith(HARMLESS_PREFIXES)}
            assert relevant - set(HARMLESS.split()) == {"role cloud_admin"}

        more = msgspec.structs.replace(
            desired,
            roles=[*desired.roles, RoleSpec("bob", "password of bøb")],
            databases=[*desired.databases, DatabaseSpec("second", "bob")],
        )
        await clusters.configure("br-main", more)
        await clusters.configure("br-main", desired)
        await clusters.copy("br-main", "br-copy")
        await clusters.copy_past("br-main", "br-past", Moment(datetime.now(UTC)))
        await clusters.copy_schema("br-main", "br-schema")
        for id in ("br-main", "br-copy", "br-past", "br-schema"):
            await clusters.start(id, desired)
            await clusters.activity(id)
            assert await clusters.login(id, "alice", "app")
            assert "CREATE TABLE public.t" in await clusters.dump_schema(id, "app")
            assert "line" in await clusters.describe_schema(id, "app")
            await clusters.stop(id)


async def be_hostile(clusters: Clusters) -> Desired:
    """Change every setting of sessions for the server and a database. Return what is desired."""
    found = [
        row
        for row in await rows(clusters)
        if row["context"] in SESSION_CONTEXTS
        or (row["context"] == "superuser" and row["name"] in PERMITTED)
        if row["name"] not in OF_A_TRANSACTION
    ]
    values = {row["name"]: hostile(row) for row in found}
    of_roles = {row["name"] for row in found if row["context"] == "user"}
    hidden = {"role": "alice", "session_authorization": "alice", "seed": "0.5"}
    await execute(clusters, "br-main", "CREATE TABLE t (id int DEFAULT 1, line text)")
    async with session(clusters, "br-main") as alice:
        for name, value in (values | hidden).items():
            if name in of_roles | hidden.keys():
                await alice.execute(f"ALTER DATABASE app SET {name} = {quoted(value)}")
    settings = permitted(values)
    del settings["default_table_access_method"]  # the reload checks that it exists
    assert settings.keys() >= {"idle_session_timeout", "post_auth_delay", "temp_file_limit"}
    desired = msgspec.structs.replace(DESIRED, settings=settings)
    await clusters.configure("br-main", desired)
    await clusters.stop("br-main")
    await clusters.start("br-main", desired)
    return desired


def quoted(value: str) -> str:
    """Quote a value. Lists have items."""
    return ", ".join("'" + item.replace("'", "''") + "'" for item in value.split(", "))


async def ask(cluster: Cluster) -> set[str]:
    """Return the changed settings of a session of the administrator."""
    async with cluster.session("app") as administrator:
        return {row["name"] for row in await administrator.fetch(CHANGED)}


async def ask_psql(cluster: Cluster, account: ServerAccount | None) -> set[str]:
    """Return the changed settings of a program that connects as the administrator."""
    return await asyncio.to_thread(_ask_psql, cluster, account)


def _ask_psql(cluster: Cluster, account: ServerAccount | None) -> set[str]:
    command, variables = cluster.client_program("psql", "app")
    user, group, extra_groups = identity(account)
    finished = subprocess.run(
        [*command, "--no-psqlrc", "--no-align", "--tuples-only", f"--command={CHANGED}"],
        env=program_environment() | variables,
        capture_output=True,
        text=True,
        check=True,
        user=user,
        group=group,
        extra_groups=extra_groups,
    )
    return set(finished.stdout.splitlines())


@pytest.mark.parametrize(
    ("version", "present", "absent"),
    [
        ((14, 12), "statement_timeout", "restrict_nonsystem_relation_kind"),
        ((14, 13), "restrict_nonsystem_relation_kind", "stats_fetch_consistency"),
        ((16, 3), "scram_iterations", "restrict_nonsystem_relation_kind"),
        ((16, 4), "restrict_nonsystem_relation_kind", "transaction_timeout"),
        ((17, 0), "transaction_timeout", "file_copy_method"),
        ((19, 1), "file_copy_method", "no_setting"),
    ],
)
def test_session_has_only_settings_of_its_version(
    version: tuple[int, int], present: str, absent: str
) -> None:
    settings = session_settings(version)
    assert present in settings
    assert absent not in settings


def test_output_that_describes_no_settings_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected a table, but it printed 'warning: "):
        fixed_settings("warning: no table\n")


@pytest.mark.process
def test_program_without_a_description_is_an_error_of_the_cluster(tmp_path: Path) -> None:
    program = tmp_path / "postgres"
    program.write_text("#!/bin/sh\necho nothing\n")
    program.chmod(0o755)
    with pytest.raises(ClusterError, match=r"does not describe its settings: .*'nothing"):
        Installation(tmp_path, (15, 0)).fixed_settings(None)


def test_texts_of_newer_versions_are_fixed_too() -> None:
    lines = [
        f"{name}\tsighup\tgroup\tSTRING\t{value}\t\t\tshort\tlong"
        for name, value in {
            "archive_command": "",
            "recovery_end_command": "",
            "ssl_passphrase_command": "",
            "hook_of_postgres_30": "none",
            "data_directory": "",
        }.items()
    ]
    lines += ["new_text\tuser\tgroup\tSTRING\tx\t\t\t", "size\tsighup\tgroup\tINTEGER\t1\t0\t2\t"]
    fixed = fixed_settings("\n".join(lines))
    assert fixed.pop("hook_of_postgres_30") == "none"
    assert sorted(fixed) == ["archive_command", "recovery_end_command", "ssl_passphrase_command"]


@pytest.mark.parametrize("name", ["hook_of_postgres_30", "Archive_Command", "plperl.on_init"])
def test_setting_that_nobody_listed_is_refused(name: str) -> None:
    assert name.lower() not in PERMITTED
    assert f"the setting {name!r} is not permitted" in str(refusal(name, "x"))
