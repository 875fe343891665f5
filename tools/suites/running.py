"""The suites: where their tests come from, how they run, and how their results are read."""

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple
from xml.etree import ElementTree as ET

from neonctl_async.types import ConnectionUri
from neonctl_local.postgres.binaries import Installation

ROOT: Final = Path(__file__).parents[2]
OBJECTS: Final = Path(__file__).parent / "objects.sql"
QUERY_MODES: Final = ("simple", "extended", "prepared")
LIMIT: Final = 3600.0
"""Seconds after which a program is killed."""

DJANGO_APPS: Final = (
    *("aggregation", "aggregation_regress", "annotations", "backends", "basic", "bulk_create"),
    *("constraints", "custom_columns", "custom_lookups", "custom_pk", "datatypes", "dates"),
    *("datetimes", "db_functions", "db_typecasts", "db_utils", "defer", "delete"),
    *("distinct_on_fields", "expressions", "expressions_case", "expressions_window", "fixtures"),
    *("force_insert_update", "foreign_object", "from_db_value", "get_or_create", "indexes"),
    *("inspectdb", "introspection", "lookup", "migrations", "model_fields", "model_indexes"),
    *("multiple_database", "null_queries", "ordering", "postgres_tests", "prefetch_related"),
    *("queries", "raw_query", "schema", "select_for_update", "select_related", "serializers"),
    *("timezones", "transaction_hooks", "transactions", "update", "validation"),
)
"""The tests of Django that use the database most."""


class Outcome(NamedTuple):
    """The number of tests, and the names of those that failed."""

    tests: int
    failed: set[str]


class Place(NamedTuple):
    """A database, and the log of the programs that a suite runs in it."""

    uri: ConnectionUri
    installation: Installation
    log: Path


class Suite(NamedTuple):
    """A suite. ``package`` is the distribution whose source has the tests, None for our own."""

    package: str | None
    run: Callable[[Path, Place], Outcome]


def fetch(suite: Suite, folder: Path) -> Path:
    """Download the source of the installed version of a suite, and return its directory."""
    if suite.package is None:
        return folder
    requirement = f"{suite.package}=={version(suite.package)}"
    status = execute(
        *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"),
        *("--dest", str(folder), requirement),
        log=folder / "pip.log",
    )
    archives = list(folder.glob(f"{suite.package.lower()}-*.tar.gz"))
    if status or not archives:
        raise RuntimeError(f"{requirement} cannot be downloaded: see {folder / 'pip.log'}")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    return folder / archives[0].name.removesuffix(".tar.gz")


def execute(
    *command: str, log: Path, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> int:
    """Run a program, with its output in a log. Return its exit status."""
    with log.open("ab") as output:
        return subprocess.run(  # noqa: S603 - the programs are those of this module
            [*command],
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            timeout=LIMIT,
            check=False,
        ).returncode


def django(source: Path, place: Place) -> Outcome:
    """Run the tests of Django that use the database."""
    execute(
        *(sys.executable, "runtests.py", "--settings", "tools.suites.django_settings"),
        *("--parallel", "1", "--noinput", *DJANGO_APPS),
        log=place.log,
        cwd=source / "tests",
        env={"PYTHONPATH": f"{source}:{ROOT}", "SUITE_URI": place.uri.reveal()},
    )
    text = place.log.read_text(errors="replace")
    ran = re.search(r"^Ran (\d+) tests?", text, re.MULTILINE)
    if ran is None:
        raise RuntimeError(f"the tests of Django did not run to their end: see {place.log}")
    failed = re.findall(r"^(?:ERROR|FAIL): (\S+ \([\w.]+\))", text, re.MULTILINE)
    return Outcome(int(ran[1]), {*failed})


def sqlalchemy(source: Path, place: Place) -> Outcome:
    """Run the tests of SQLAlchemy's dialect for PostgreSQL, and those for every dialect."""
    return pytest(
        *(
            "--dburi",
            place.uri.sqlalchemy("psycopg"),
            "test/dialect/postgresql",
            "test/dialect/test_suite.py",
        ),
        log=place.log,
        cwd=source,
    )


def asyncpg(source: Path, place: Place) -> Outcome:
    """Run the tests of asyncpg."""
    # Beside its source, Python would import asyncpg from there, where it is not compiled.
    tests = source / "tests"
    return pytest(
        *("--ignore", "test__sourcecode.py", "."),
        log=place.log,
        cwd=tests,
        env=variables(place.uri),
    )


def dumps(source: Path, place: Place) -> Outcome:
    """Dump a database with every kind of object, restore it into another one, and compare both."""
    archive, texts = source / f"{place.log.stem}.dump", source / place.log.stem
    # The direct and the pooled connections reach the same server.
    copy = f"copy_{place.uri.database}"
    first, second = f"{texts}-1.sql", f"{texts}-2.sql"
    steps = {
        "create": ("psql", "-X", "-1", "-v", "ON_ERROR_STOP=1", "-f", str(OBJECTS)),
        "dump": ("pg_dump", "-Fc", "--schema=kinds", "--blobs", "-f", str(archive)),
        "create a database": ("createdb", copy),
        "create its extension": ("psql", "-X", "-d", copy, "-c", "CREATE EXTENSION pg_trgm"),
        "restore": ("pg_restore", "--exit-on-error", "-d", copy, str(archive)),
        "dump again": ("pg_dump", "--schema=kinds", "--blobs", "-f", first),
        "dump the copy": (
            "pg_dump",
            "--schema=kinds",
            "--blobs",
            "-d",
            copy,
            "-f",
            second,
        ),
    }
    failed = {name for name, command in steps.items() if run_program(place, *command)}
    if not failed and _without_key(Path(first)) != _without_key(Path(second)):
        failed.add("compare")
    return Outcome(len(steps) + 1, failed)


def pgbench(source: Path, place: Place) -> Outcome:
    """Run pgbench with eight clients in each of its query modes. No transaction may fail."""
    del source  # All suites have the same parameters.
    steps = {
        "initialize": ("-i", "-q"),
        **{mode: ("-c", "8", "-j", "2", "-T", "10", "-M", mode) for mode in QUERY_MODES},
    }
    failed = {
        name for name, options in steps.items() if run_program(place, "pgbench", "-n", *options)
    }
    return Outcome(len(steps), failed)


def run_program(place: Place, program: str, *arguments: str) -> int:
    """Run a program of Postgres with the database of a place. Return its exit status."""
    command = str(place.installation.program(program))
    return execute(command, *arguments, log=place.log, env=variables(place.uri))


def variables(uri: ConnectionUri) -> dict[str, str]:
    """Return the variables with which libpq and asyncpg connect."""
    return {
        "PGHOST": uri.host,
        "PGPORT": str(uri.port),
        "PGUSER": uri.role,
        "PGPASSWORD": uri.password.reveal(),
        "PGDATABASE": uri.database,
        "PGSSLMODE": "disable" if "sslmode=disable" in uri.reveal() else "require",
    }


def _without_key(path: Path) -> list[str]:
    """Return the lines of a dump, without the random key that newer versions of pg_dump write."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not re.match(r"\\(un)?restrict ", line)]


def pytest(*arguments: str, log: Path, cwd: Path, env: Mapping[str, str] | None = None) -> Outcome:
    """Run pytest with the settings of a suite, and without the plugins of this project."""
    report = log.with_suffix(".xml")
    execute(
        *(sys.executable, "-m", "pytest", "-p", "no:randomly", "-p", "no:neonctl-async"),
        *("-p", "no:anyio", "-p", "no:asyncio", "-p", "no:pytest_postgresql", "-p", "no:django"),
        *("--timeout=60", "-q", f"--junitxml={report}", *arguments),
        log=log,
        cwd=cwd,
        env=env,
    )
    if not report.exists():
        raise RuntimeError(f"pytest did not run to its end: see {log}")
    cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 - pytest wrote it
    failed = {
        f"{case.get('classname')}.{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }
    return Outcome(len(cases), failed)


SUITES: Final = {
    "django": Suite("Django", django),
    "sqlalchemy": Suite("SQLAlchemy", sqlalchemy),
    "asyncpg": Suite("asyncpg", asyncpg),
    "pg_dump": Suite(None, dumps),
    "pgbench": Suite(None, pgbench),
}
