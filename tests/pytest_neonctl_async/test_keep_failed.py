"""``--neon-keep-failed`` keeps the databases of failed tests, and shows how to connect."""

import configparser
import os
import re
import signal
import stat
import time
from pathlib import Path

import psycopg
import pytest

from tests.pytest_neonctl_async.conftest import RunSuite
from tests.support.postgres import skip_without_postgres

pytestmark = pytest.mark.long

SUITE = """
    import psycopg
    import pytest
    from pytest_neonctl_async import failed

    @pytest.fixture
    def connection(neon_branch):
        with psycopg.connect(neon_branch.connection_uri.psycopg, autocommit=True) as connection:
            connection.execute("CREATE TABLE people AS SELECT 'Ada' AS name")
            yield connection
            connection.execute("DROP TABLE people")

    @pytest.fixture(autouse=True)
    def one_database_is_enough(monkeypatch):
        monkeypatch.setattr(failed, "LIMIT", 1)

    def test_passes(connection): ...

    def test_fails(connection):
        connection.execute("INSERT INTO people VALUES ('Grace')")
        assert False

    def test_fails_too(connection):
        assert False

    def test_passes_too(connection): ...
"""


PARAMETERS = """
    import pytest

    @pytest.fixture(scope="session", params=["first", "second"])
    def neon_migrations():
        return lambda uri: None

    def test_fails(neon_branch):
        assert False
"""


@pytest.mark.postgres
@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_database_of_a_failed_test_is_kept_as_it_was(
    run_suite: RunSuite,
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    workers: str,
) -> None:
    skip_without_postgres()
    pytester.makepyfile(SUITE)
    run = run_suite("-o", "neon_postgres=true", "--neon-keep-failed", workers)
    run.assert_outcomes(passed=2, failed=2)
    run.stdout.fnmatch_lines("neon_branch is not kept: 1 databases are kept already")
    output = run.stdout.str()
    pids = re.findall(r"exist for an hour: kill (\d+) deletes them", output)
    [pid] = map(int, pids)
    try:
        [file] = map(
            Path,
            re.findall(
                r"^neon_branch: PGSERVICEFILE=(\S+) psql service=failed", output, re.MULTILINE
            ),
        )
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        services = configparser.ConfigParser(interpolation=None)
        services.read(file)
        assert services["failed"]["password"] not in output
        monkeypatch.setenv("PGSERVICEFILE", str(file))
        with psycopg.connect(service="failed") as connection:
            rows = connection.execute("SELECT name FROM people ORDER BY name").fetchall()
        assert rows == [("Ada",), ("Grace",)]
    finally:
        os.kill(pid, signal.SIGTERM)
    while file.parent.exists():
        time.sleep(0.05)


@pytest.mark.postgres
def test_databases_of_all_parameters_are_kept(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    skip_without_postgres()
    pytester.makepyfile(PARAMETERS)
    run = run_suite("-o", "neon_postgres=true", "--neon-keep-failed")
    run.assert_outcomes(failed=2)
    files = re.findall(r"^neon_branch: PGSERVICEFILE=(\S+) ", run.stdout.str(), re.MULTILINE)
    [pid] = re.findall(r"exist for an hour: kill (\d+) deletes them", run.stdout.str())
    os.kill(int(pid), signal.SIGTERM)
    assert len(set(files)) == 2
    while Path(files[0]).parent.exists():
        time.sleep(0.05)


@pytest.mark.process
def test_run_without_failures_keeps_nothing(run_suite: RunSuite, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(neon_branch): ...\ndef test_fails(neon_branch): assert False")
    run = run_suite("--neon-keep-failed")
    run.assert_outcomes(passed=1, failed=1)
    run.stdout.no_fnmatch_line("*exist for an hour*")


@pytest.mark.process
@pytest.mark.usefixtures("project_id")
def test_databases_at_neon_are_not_kept(run_suite: RunSuite, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(neon_branch): ...")
    run = run_suite("--neon-keep-failed", "--neon-cloud")
    run.stderr.fnmatch_lines("*--neon-keep-failed keeps local databases: leave out --neon-cloud*")
