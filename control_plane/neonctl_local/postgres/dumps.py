"""Schemas as SQL: dumps by pg_dump, and clusters that have the schema of another one."""

import asyncio
import subprocess
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Final

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.admin import connectable_databases
from neonctl_local.postgres.cluster import Cluster
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.programs import program_environment
from neonctl_local.postgres.servers.postmaster import identity
from neonctl_local.postgres.servers.scheduling import in_thread, settle
from neonctl_local.postgres.template import ADMINISTRATOR

_TABLES: Final = (
    resources.files("neonctl_local.postgres").joinpath("tables.sql").read_text(encoding="utf-8")
)
TIME: Final = 300.0
"""The seconds that one program may take."""

_RESTRICTIONS: Final = ("\\restrict ", "\\unrestrict ")
"""Lines for psql with a random key, which newer versions of pg_dump write."""


async def dump_schema(cluster: Cluster, database: str, account: ServerAccount | None) -> str:
    """Return the schema of a database of a running server, as pg_dump writes it."""
    output = await _run(cluster, "pg_dump", ["--schema-only"], account, database=database)
    return "".join(_without(output, _RESTRICTIONS))


async def describe_tables(cluster: Cluster, database: str) -> str:
    """Return the tables of a database of a running server, as JSON in the form of Neon's API."""
    async with cluster.session(database) as session:
        return str(await session.fetchval(_TABLES))


async def copy_schema(source: Cluster, target: Cluster, account: ServerAccount | None) -> None:
    """Create the roles and schemas of ``source``, which runs, in the new cluster ``target``."""
    roles = await _run(source, "pg_dumpall", ["--roles-only"], account)
    async with source.session() as session:
        databases = list(await connectable_databases(session))
    dumps = [("postgres", "".join(_without(roles, _administrator())))]
    for database in databases:
        arguments = ["--schema-only", "--no-subscriptions"]
        arguments += ["--create"] if database != "postgres" else []
        dump = await _run(source, "pg_dump", arguments, account, database=database)
        dumps.append(("postgres", dump))
    await target.start()
    try:
        for database, text in dumps:
            await _execute(target, text, account, database)
        await in_thread(target.inherit, source)
    finally:
        await target.stop()


async def _execute(
    cluster: Cluster, statements: str, account: ServerAccount | None, database: str
) -> None:
    arguments = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1"]
    await _run(cluster, "psql", arguments, account, database=database, statements=statements)


async def _run(
    cluster: Cluster,
    program: str,
    arguments: Sequence[str],
    account: ServerAccount | None,
    *,
    database: str = "postgres",
    statements: str = "",
) -> str:
    """Run a client program as the administrator, and return its output.

    A cancellation kills the program.
    """
    command, variables = await in_thread(cluster.client_program, program, database)
    started: list[subprocess.Popen[bytes]] = []
    running = asyncio.ensure_future(
        asyncio.to_thread(
            _communicate,
            [*command, *arguments],
            program_environment() | variables,
            statements.encode(),
            account,
            started,
        )
    )
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        for process in started:
            process.kill()
        await settle(running)
        raise


def _communicate(
    command: list[str],
    variables: dict[str, str],
    statements: bytes,
    account: ServerAccount | None,
    started: list[subprocess.Popen[bytes]],
) -> str:
    name = Path(command[0]).name
    user, group, extra_groups = identity(account)
    try:
        process = subprocess.Popen(  # noqa: S603 - a program of Postgres, without a shell
            command,
            cwd="/",
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            user=user,
            group=group,
            extra_groups=extra_groups,
        )
    except OSError as error:
        raise ClusterError(f"{name} cannot be started: {error.strerror}") from error
    started.append(process)
    with process:
        try:
            output, errors = process.communicate(statements, timeout=TIME)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise ClusterError(f"{name} did not finish within {TIME:g} seconds") from error
    if process.returncode != 0:
        lines = errors.decode(errors="replace").strip().splitlines()
        reason = " ".join(" ".join(lines[-3:]).split())
        raise ClusterError(f"{name} failed with status {process.returncode}: {reason}")
    return output.decode()


def _administrator() -> tuple[str, ...]:
    """Return the starts of the lines of pg_dumpall about the role of the administrator."""
    return (f"CREATE ROLE {ADMINISTRATOR};", f"ALTER ROLE {ADMINISTRATOR} WITH ")


def _without(text: str, starts: tuple[str, ...]) -> Iterator[str]:
    return (line for line in text.splitlines(keepends=True) if not line.startswith(starts))
