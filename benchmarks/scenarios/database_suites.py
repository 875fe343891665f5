"""Test suites with a database per test: the time of a run, and the time until a first query.

The first suite has 200 tests without other work, on one worker and on two. The tests of the second
suite take 0.3 s each, as tests of an application do: meanwhile the plugin prepares branches.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.results import OURS, PYTEST_POSTGRESQL, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.databases import BY_HAND, FILL, INITDB
from benchmarks.servers.postgres import USER, PostgresServer, newest_installation

ROOT = Path(__file__).parents[2]
SUITES = ROOT / "benchmarks/suites"
PROVIDERS = {
    OURS: "with_neonctl_async",
    BY_HAND: "with_create_database",
    PYTEST_POSTGRESQL: "with_pytest_postgresql",
    INITDB: "with_initdb",
}
WORK = 0.3


class Suite(NamedTuple):
    """A suite: the number of tests, their workers and rows, and the duration of each in seconds."""

    tests: int
    workers: int
    rows: int
    work: float


class Times(NamedTuple):
    """The time of the whole run, and the times from setup to first query, in seconds."""

    run: float
    first_queries: list[float]


def run(size: RunSize) -> list[Row]:
    """Measure both suites, the first one also on one worker."""
    suite = Suite(size.pick(full=200, quick=10), workers=2, rows=1_000, work=0.0)
    working = Suite(size.pick(full=30, quick=5), workers=1, rows=100_000, work=WORK)
    with PostgresServer(newest_installation()) as server:
        # initdb per test takes too long for all rounds of the first suite.
        fast = [name for name in PROVIDERS if name != INITDB]
        values = measure(suite, server, fast, size.pick(full=3, quick=1))
        values[INITDB] = [run_suite(INITDB, suite, server)]
        alone = suite._replace(workers=1)
        lone = measure(alone, server, [OURS, PYTEST_POSTGRESQL], size.pick(full=3, quick=1))
        prepared = measure(working, server, [*PROVIDERS], 1)
    name = f"{suite.tests} tests with a database each"
    return [
        *(
            make_row(
                name,
                f"whole run, {workers}",
                "s",
                {client: [times.run for times in runs] for client, runs in measured.items()},
                targets=[Target(0.9, PYTEST_POSTGRESQL)],
            )
            for workers, measured in (("one worker", lone), ("two workers", values))
        ),
        make_row(name, "first query of a test", "s", first_queries(values), targets=[Target(0.06)]),
        make_row(
            f"{working.tests} tests of {WORK} s, {working.rows:,} rows each",
            "first query of a test",
            "s",
            first_queries(prepared),
            targets=[Target(0.02)],
        ),
    ]


def measure(
    suite: Suite, server: PostgresServer, providers: list[str], rounds: int
) -> dict[str, list[Times]]:
    """Run the suite with each provider, in rounds."""
    values: dict[str, list[Times]] = {name: [] for name in providers}
    for number in range(rounds):
        for name in providers if number % 2 else reversed(providers):
            values[name].append(run_suite(name, suite, server))
    return values


def first_queries(values: dict[str, list[Times]]) -> dict[str, list[float]]:
    """Return the times until the first query of all tests of all rounds."""
    return {
        name: [query for times in runs for query in times.first_queries]
        for name, runs in values.items()
    }


def run_suite(provider: str, suite: Suite, server: PostgresServer) -> Times:
    """Run the suite with one provider."""
    with tempfile.TemporaryDirectory() as directory:
        times, fill = Path(directory, "times"), Path(directory, "fill.sql")
        fill.write_text(FILL.format(rows=suite.rows))
        options = [f"--tests={suite.tests}", f"--rows={suite.rows}", f"--work={suite.work}"]
        if provider == PYTEST_POSTGRESQL:
            options += [f"--postgresql-port={server.port}", f"--postgresql-user={USER}"]
            options += [f"--postgresql-load={fill}"]
        plugins = ["measuring", PROVIDERS[provider]]
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-n", str(suite.workers), *options),
            *("-c", str(SUITES / "pytest.ini"), f"--server-port={server.port}"),
            *(f"--times={times}", str(SUITES / "test_database_per_test.py")),
            *(word for plugin in plugins for word in ("-p", f"benchmarks.suites.{plugin}")),
        ]
        started = time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        duration = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"the suite of {provider} has failed:\n{done.stdout}")
        return Times(duration, [float(line) for line in times.read_text().split()])
