"""The cost of history: branches of the past, transactions of writers, and disk space."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.harness.results import OURS, Row, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.scenarios.database_proxy import pgbench
from benchmarks.servers.local_control_plane import local_control_plane
from benchmarks.servers.queries import connected, fetch_number
from neonctl_async import EndpointSpec, NeonClient, RateBudget

PRESENT = "neonctl-async, of the present"
WITHOUT = "neonctl-async, without history"
SCALE = 10
"""A million rows, 150 MB."""
CLIENTS = 4
_SETTLE_SECONDS = 6.0
"""The time after which copies of the data that are due were made."""


class Subject(NamedTuple):
    """A project of a control plane whose databases are in a directory."""

    neon: NeonClient
    project_id: str
    uri: str
    directory: Path


async def run(size: RunSize) -> list[Row]:
    """Run pgbench with and without history, and create branches of both."""
    rounds, seconds = size.pick(full=9, quick=2), size.pick(full=30, quick=3)
    times: dict[str, list[float]] = {}
    transactions: dict[str, list[float]] = {}
    disk: dict[str, list[float]] = {}
    for name, arguments in ((OURS, ["--history"]), (WITHOUT, [])):
        async with subject(*arguments) as tested:
            started = datetime.now(UTC)
            transactions[name], disk[name] = await write(tested, seconds)
            middle = started + (datetime.now(UTC) - started) / 2
            if name == OURS:
                times[OURS] = [await branch(tested, middle) for _ in range(rounds)]
            present = PRESENT if name == OURS else WITHOUT
            times[present] = [await branch(tested) for _ in range(rounds)]
    scenario = f"history: pgbench -c {CLIENTS} for {seconds} s"
    return [
        make_row("history: a branch of a database of 150 MB", "first query", "s", times),
        make_row(scenario, "time per transaction", "ms", transactions),
        make_row(scenario, "disk per MB of WAL", "MB", disk),
    ]


@asynccontextmanager
async def subject(*arguments: str) -> AsyncGenerator[Subject]:
    """Run a control plane with the tables of pgbench in its first project."""
    with TemporaryDirectory(prefix="bench-", dir="/tmp") as folder:
        directory = Path(folder)
        # The account of the servers must be able to enter it.
        await asyncio.to_thread(directory.chmod, 0o711)
        data = directory / "plane.db"
        async with (
            local_control_plane("--data", str(data), *arguments) as process,
            NeonClient(
                process.api_key, base_url=process.base_url, budget=RateBudget.unlimited()
            ) as neon,
        ):
            created = await neon.projects.create(name="history", wait=True)
            uri = created.connection_uri.reveal()
            await asyncio.to_thread(pgbench, uri, "-i", "-q", "-s", str(SCALE))
            await asyncio.sleep(_SETTLE_SECONDS)
            yield Subject(neon, created.project.id, uri, directory / "plane.db.d")


async def write(subject: Subject, seconds: int) -> tuple[list[float], list[float]]:
    """Run pgbench. Return the milliseconds per transaction, and the disk space per byte of WAL."""
    disk, wal = await measure(subject)
    options = ("-c", str(CLIENTS), "-j", "2", "-T", str(seconds))
    seconds_each = await asyncio.to_thread(pgbench, subject.uri, *options)
    await asyncio.sleep(_SETTLE_SECONDS)
    disk_after, wal_after = await measure(subject)
    return [seconds_each * 1e3], [(disk_after - disk) / (wal_after - wal)]


async def measure(subject: Subject) -> tuple[int, int]:
    """Return the disk space of all clusters and the position of the WAL, in bytes."""
    async with connected(subject.uri) as connection:
        await connection.execute("SELECT 1")
        wal = await connection.fetchval("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")
    return await asyncio.to_thread(disk_space, subject.directory), int(wal)


def disk_space(directory: Path) -> int:
    """Return the bytes of all files. A file with two names counts once."""
    status = [path.lstat() for path in directory.rglob("*")]
    return sum({each.st_ino: each.st_blocks * 512 for each in status}.values())


async def branch(subject: Subject, at: datetime | None = None) -> float:
    """Return the seconds from the request for a branch to its first query, and delete it."""
    neon, project_id = subject.neon, subject.project_id
    started = time.perf_counter()
    endpoints = [EndpointSpec(type="read_write")]
    if at is None:
        created = await neon.branches.create(project_id, endpoints=endpoints)
    else:
        created = await neon.branches.create(project_id, endpoints=endpoints, parent_timestamp=at)
    tables = "SELECT count(*) FROM pgbench_branches"
    assert await fetch_number(created.connection_uri.reveal(), tables) == SCALE
    elapsed = time.perf_counter() - started
    await neon.operations.wait(created)
    await neon.branches.delete(project_id, created.branch.id, hard_delete=True, wait=True)
    return elapsed
