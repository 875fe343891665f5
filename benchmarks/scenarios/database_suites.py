"""Test suites: the time of a run, and the time until the first query of a test.

The first suite has 200 tests, each with a database, on one worker and on two. The second one has 19
tests with Django, which share a migrated database that an earlier run has kept.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
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
ROWS = 1_000
ONE_WORKER = "neonctl-async, one worker"
RUNNING_SERVER = "a running server"
DJANGO_TESTS = 19


class Suite(NamedTuple):
    """The number of tests and of their workers."""

    tests: int
    workers: int


class Times(NamedTuple):
    """The time of the whole run, and the times from setup to first query, in seconds."""

    run: float
    first_queries: list[float]


def run(size: RunSize) -> list[Row]:
    """Measure the suites."""
    suite = Suite(size.pick(full=200, quick=10), workers=2)
    rounds = size.pick(full=3, quick=1)
    with PostgresServer(newest_installation()) as server:
        # initdb per test takes too long for all rounds of the first suite.
        fast = [name for name in PROVIDERS if name != INITDB]
        values = measure(suite, server, fast, rounds)
        values[INITDB] = [run_suite(INITDB, suite, server)]
        lone = measure(suite._replace(workers=1), server, [OURS, PYTEST_POSTGRESQL], rounds)
        django = measure_django(server, rounds)
    name = f"{suite.tests} tests with a database each"
    alone = durations(lone)
    return [
        make_row(
            name, "whole run, one worker", "s", alone, targets=[Target(0.9, PYTEST_POSTGRESQL)]
        ),
        make_row(
            name,
            "whole run, two workers",
            "s",
            {**durations(values), ONE_WORKER: alone[OURS]},
            targets=[Target(0.65, PYTEST_POSTGRESQL), Target(0.65, ONE_WORKER)],
        ),
        make_row(name, "first query of a test", "s", first_queries(values), targets=[Target(0.06)]),
        make_row(
            f"{DJANGO_TESTS} tests with Django",
            "whole run, one worker",
            "s",
            django,
            targets=[Target(1.3, RUNNING_SERVER)],
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


def durations(values: dict[str, list[Times]]) -> dict[str, list[float]]:
    """Return the times of the whole runs."""
    return {client: [times.run for times in runs] for client, runs in values.items()}


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
        fill.write_text(FILL.format(rows=ROWS))
        options = [f"--tests={suite.tests}", f"--rows={ROWS}"]
        if provider == PYTEST_POSTGRESQL:
            options += [f"--postgresql-port={server.port}", f"--postgresql-user={USER}"]
            options += [f"--postgresql-load={fill}"]
        plugins = ["measuring", PROVIDERS[provider]]
        command = [
            *(*options, f"--server-port={server.port}", f"--times={times}"),
            *(f"-n{suite.workers}", str(SUITES / "test_database_per_test.py")),
            *(word for plugin in plugins for word in ("-p", f"benchmarks.suites.{plugin}")),
        ]
        duration = run_pytest(provider, command)
        return Times(duration, [float(line) for line in times.read_text().split()])


def measure_django(server: PostgresServer, rounds: int) -> dict[str, list[float]]:
    """Run the suite with Django in rounds, after a run of each that migrates the database."""
    ways = {OURS: ["-o", "neon_django=true"], RUNNING_SERVER: ["--reuse-db"]}
    values: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, options in ways.items():
            # Without conftest.py, whose migrations are those of the other suites.
            command = ["--ds=benchmarks.suites.django_settings", "--noconftest", *options]
            command.append(str(SUITES / "test_django.py"))
            duration = run_pytest(name, command, {"BENCHMARK_PORT": f"{server.port}"})
            if number:
                values[name].append(duration)
    return values


def run_pytest(
    client: str, options: list[str], variables: Mapping[str, str] = MappingProxyType({})
) -> float:
    """Run pytest with the settings of the suites. Return its time."""
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(SUITES / "pytest.ini"), *options]
    started = time.perf_counter()
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    duration = time.perf_counter() - started
    if done.returncode:
        raise RuntimeError(f"the suite of {client} has failed:\n{done.stdout}")
    return duration
