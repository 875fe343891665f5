"""Schemas as text: dumps by pg_dump, and tables as JSON."""

import asyncio
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Final
from uuid import uuid4

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.admin import end_blocked_dump
from neonctl_local.postgres.cluster import Cluster
from neonctl_local.postgres.errors import ClusterBusyError, ClusterError
from neonctl_local.postgres.programs import program_environment
from neonctl_local.postgres.servers.postmaster import identity
from neonctl_local.postgres.servers.scheduling import in_thread, wait_for_end

_TABLES: Final = (
    resources.files("neonctl_local.postgres").joinpath("tables.sql").read_text(encoding="utf-8")
)
TIME: Final = 300.0
"""How long one program may take, in seconds."""

# A pool of its own: a dump that waits for a lock occupies its thread until the control plane ends
# the dump, for which it needs a thread of the loop's pool.
_THREADS: Final = ThreadPoolExecutor(8, "neonctl-dumps")

_LOOK_TIME: Final = 1.0
"""How often to check whether pg_dump is waiting for a lock, in seconds."""

_RESTRICTED: Final = re.compile(r"(?:--.*\n|\n)*\\restrict (\w+)\n")
"""The start of a dump by newer versions of pg_dump. It contains a random key for psql."""


async def dump_schema(cluster: Cluster, database: str, account: ServerAccount | None) -> str:
    """Return the schema of a running server's database, as pg_dump writes it.

    The random keys of newer versions of pg_dump are removed.
    """
    output = await _dump(cluster, database, account)
    if found := _RESTRICTED.match(output):
        for command in ("restrict", "unrestrict"):
            output = output.replace(f"\\{command} {found[1]}\n", "", 1)
    return output


async def describe_tables(cluster: Cluster, database: str) -> str:
    """Return the tables of a running server's database, as JSON in the format of Neon's API."""
    async with cluster.session(database) as session:
        return str(await session.fetchval(_TABLES))


async def _dump(cluster: Cluster, database: str, account: ServerAccount | None) -> str:
    """Run pg_dump as the administrator, and return its output. A cancellation kills pg_dump.

    Raise ClusterBusyError if pg_dump waits too long for a lock. pg_dump's own time limit covers
    only table locks.
    """
    command, variables = await in_thread(cluster.client_program, "pg_dump", database)
    name = f"pg_dump-{uuid4().hex}"
    started: list[subprocess.Popen[bytes]] = []
    work = _THREADS.submit(
        _communicate,
        [*command, "--schema-only"],
        program_environment() | variables | {"PGAPPNAME": name},
        account,
        started,
    )
    running = asyncio.wrap_future(work)
    try:
        return await _output(running, cluster, name)
    except BaseException:
        work.cancel()  # if no thread was free yet
        for process in started:
            process.kill()
        await wait_for_end(running)
        raise


async def _output(running: asyncio.Future[str], cluster: Cluster, name: str) -> str:
    while (await asyncio.wait([running], timeout=_LOOK_TIME))[1]:
        async with cluster.session() as session:
            if await end_blocked_dump(session, name):
                raise ClusterBusyError("the schema")
    return running.result()


def _communicate(
    command: list[str],
    variables: dict[str, str],
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
            stdin=subprocess.DEVNULL,
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
            output, errors = process.communicate(timeout=TIME)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise ClusterError(f"{name} did not finish within {TIME:g} seconds") from error
    if process.returncode != 0:
        lines = errors.decode(errors="replace").strip().splitlines()
        reason = " ".join(" ".join(lines[-3:]).split())
        raise ClusterError(f"{name} failed with status {process.returncode}: {reason}")
    return output.decode(errors="replace")
