"""The first database of a new control plane, with an empty cache and with a warm one."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.databases import INITDB
from benchmarks.servers.postgres import PostgresServer, newest_installation
from benchmarks.servers.queries import execute

COMMAND = [sys.executable, "-m", "benchmarks.harness.first_database"]
WHOLE_PROCESS = "neonctl-async, with the start of Python"
ROOT = Path(__file__).parents[2]


def run(size: RunSize) -> list[Row]:
    """Measure fresh processes in rounds."""
    empty: dict[str, list[float]] = {OURS: [], WHOLE_PROCESS: [], INITDB: []}
    warm: dict[str, list[float]] = {OURS: [], WHOLE_PROCESS: [], INITDB: []}
    for _ in range(size.pick(full=5, quick=1)):
        # Servers do not run as root: their account must be able to enter the directory.
        with tempfile.TemporaryDirectory(dir="/tmp") as cache:
            Path(cache).chmod(0o711)
            for values in (empty, warm):
                within, whole = first_database(cache)
                values[OURS].append(within)
                values[WHOLE_PROCESS].append(whole)
                values[INITDB].append(by_hand())
    scenario = "new control plane"
    return [
        make_row(
            scenario,
            f"first query of its first project, {name}",
            "s",
            values,
            targets=[Target(limit)],
        )
        for name, values, limit in (("empty cache", empty, 3.0), ("warm cache", warm, 0.6))
    ]


def first_database(cache: str) -> tuple[float, float]:
    """Return the time that a fresh process reports, and the time of the whole process."""
    started = time.perf_counter()
    output = subprocess.run(
        COMMAND,
        cwd=ROOT,
        env=os.environ | {"XDG_CACHE_HOME": cache},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
    return float(output), time.perf_counter() - started


def by_hand() -> float:
    """Return the time of ``initdb``, the start of a server, and a query."""
    started = time.perf_counter()
    with PostgresServer(newest_installation()) as server:
        asyncio.run(execute(server.uri(), "SELECT 1"))
        return time.perf_counter() - started
