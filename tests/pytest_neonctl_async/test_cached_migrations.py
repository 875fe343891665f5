"""Cached migrations run again only if one of their files has changed."""

import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.pytest_neonctl_async.conftest import RunSuite
from tests.support.postgres import copy_cache, skip_without_postgres

pytestmark = [pytest.mark.postgres, pytest.mark.long]

CONFTEST = """
    import pathlib
    import time
    import psycopg
    import pytest
    from pytest_neonctl_async import CachedMigrations

    HERE = pathlib.Path(__file__).parent

    def migrate(uri):
        with (HERE / "runs").open("a") as file:
            file.write("run\\n")
        with psycopg.connect(uri.psycopg) as connection:
            for file in sorted((HERE / "migrations").iterdir()):
                connection.execute(file.read_text())
        while (HERE / "held").exists():
            time.sleep(0.01)

    @pytest.fixture(scope="session")
    def neon_migrations():
        return CachedMigrations(migrate, ["migrations"])
"""

SUITE = """
    import psycopg
    import pytest

    @pytest.mark.parametrize("number", range(4))
    def test_branch_has_the_migrated_rows(number, neon_branch):
        with psycopg.connect(neon_branch.connection_uri.psycopg) as connection:
            assert connection.execute("SELECT name FROM people").fetchall() == [("Ada",)]
            connection.execute("DELETE FROM people")
"""

PARAMETERS = """
    import psycopg
    import pytest
    from pytest_neonctl_async import CachedMigrations

    @pytest.fixture(scope="session", params=["Ada", "Grace"])
    def name(request):
        return request.param

    @pytest.fixture(scope="session")
    def neon_migrations(name):
        def migrate(uri):
            with psycopg.connect(uri.psycopg) as connection:
                connection.execute(f"CREATE TABLE people AS SELECT '{{name}}' AS name")

        return {migrations}

    def test_branch_has_the_rows_of_its_parameter(name, neon_branch):
        with psycopg.connect(neon_branch.connection_uri.psycopg) as connection:
            assert connection.execute("SELECT name FROM people").fetchall() == [(name,)]
"""

FAILING = """
    import pathlib

    def fail(uri):
        with (pathlib.Path(__file__).parent / "runs").open("a") as file:
            file.write("run\\n")
        raise RuntimeError("no such table")
"""

DATABASES = ("-o", "neon_postgres=true", "-p", "no:cacheprovider")


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a suite with cached migrations, and a cache that only this test uses."""
    skip_without_postgres()
    monkeypatch.setenv("XDG_CACHE_HOME", copy_cache(pytester.path))
    pytester.mkdir("migrations")
    (pytester.path / "migrations" / "1.sql").write_text("CREATE TABLE people AS SELECT 'Ada' name")
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(SUITE)
    return pytester.path


def runs(suite: Path) -> int:
    return (suite / "runs").read_text().count("run")


def entries(suite: Path) -> list[Path]:
    """Return everything in the cache except locks."""
    migrated = suite / "cache" / "neonctl-async" / "postgres" / "migrated"
    return [path for path in migrated.iterdir() if path.suffix != ".lock"]


def break_lock(entry: Path) -> Path:
    """Replace the lock of an entry by a directory, so that the entry cannot be used."""
    lock = entry.with_name(f"{entry.name.partition('-')[0]}.lock")
    lock.unlink()
    lock.mkdir()
    return lock


def summary(run: pytest.RunResult) -> list[str]:
    """Return the lines that the plugin adds to the summary of a run."""
    return [line for line in run.outlines if line.startswith("neon: ")]


def test_later_runs_apply_no_migration(
    run_suite: RunSuite, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_suite(*DATABASES, "-n2").assert_outcomes(passed=4)
    (suite / "below").mkdir()
    monkeypatch.chdir(suite / "below")  # relative files are relative to the root directory
    run_suite(*DATABASES, "-c", str(suite / "tox.ini"), str(suite)).assert_outcomes(passed=4)
    assert runs(suite) == 1
    assert len(entries(suite)) == 1


def test_changed_byte_and_option_run_the_migrations_again(run_suite: RunSuite, suite: Path) -> None:
    run_suite(*DATABASES).assert_outcomes(passed=4)
    with (suite / "migrations" / "1.sql").open("a") as file:
        file.write(";")
    run_suite(*DATABASES).assert_outcomes(passed=4)
    assert (runs(suite), len(entries(suite))) == (2, 2)
    run_suite(*DATABASES, "--neon-rebuild").assert_outcomes(passed=4)
    assert (runs(suite), len(entries(suite))) == (3, 2)


@pytest.mark.parametrize("migrations", ["migrate", "CachedMigrations(migrate, [], [name])"])
def test_parameters_of_migrations_have_databases_of_their_own(
    run_suite: RunSuite, pytester: pytest.Pytester, suite: Path, migrations: str
) -> None:
    (suite / "conftest.py").unlink()
    pytester.makepyfile(PARAMETERS.format(migrations=migrations))
    for _ in range(2):
        run_suite(*DATABASES).assert_outcomes(passed=2)


def test_failed_migrations_of_one_parameter_fail_only_its_own_tests(
    run_suite: RunSuite, pytester: pytest.Pytester, suite: Path
) -> None:
    (suite / "conftest.py").unlink()
    parameters = PARAMETERS.format(migrations="fail if name == 'Ada' else migrate")
    pytester.makepyfile(textwrap.dedent(FAILING) + textwrap.dedent(parameters))
    run = run_suite(*DATABASES)
    run.assert_outcomes(errors=1, passed=1)
    assert runs(suite) == 1
    [line] = summary(run)
    assert line.endswith("RuntimeError: no such table")


def test_summary_has_a_line_for_each_parameter_whose_database_is_not_kept(
    run_suite: RunSuite, pytester: pytest.Pytester, suite: Path
) -> None:
    (suite / "conftest.py").unlink()
    pytester.makepyfile(PARAMETERS.format(migrations="CachedMigrations(migrate, [], [name])"))
    run_suite(*DATABASES).assert_outcomes(passed=2)
    for entry in entries(suite):
        break_lock(entry)
    run = run_suite(*DATABASES)
    run.assert_outcomes(passed=2)
    assert len(summary(run)) == 2


def test_migrations_that_exit_run_once(
    run_suite: RunSuite, pytester: pytest.Pytester, suite: Path
) -> None:
    exiting = FAILING.replace('RuntimeError("no such table")', "SystemExit(1)")
    fixture = "import pytest\nneon_migrations = pytest.fixture(scope='session')(lambda: fail)"
    pytester.makeconftest(f"{textwrap.dedent(exiting)}\n{fixture}")
    run = run_suite(*DATABASES)
    run.assert_outcomes(errors=4)
    assert runs(suite) == 1
    [line] = summary(run)
    assert line.endswith(": SystemExit: 1")


def test_failed_migrations_are_not_kept(run_suite: RunSuite, suite: Path) -> None:
    (suite / "migrations" / "2.sql").write_text("CREATE TALBE")
    run_suite(*DATABASES).assert_outcomes(errors=4)
    assert entries(suite) == []


def test_summary_says_why_the_migrated_database_is_not_kept(
    run_suite: RunSuite, suite: Path
) -> None:
    run_suite(*DATABASES).assert_outcomes(passed=4)
    [entry] = entries(suite)
    lock = break_lock(entry)
    run = run_suite(*DATABASES, "-n2")
    run.assert_outcomes(passed=4)
    [line] = summary(run)
    assert line == (
        "neon: the migrated database is not kept for later runs: [Errno 21] Is a directory: "
        f"{str(lock)!r}"
    )


def test_two_runs_at_once_migrate_once(suite: Path) -> None:
    (suite / "held").touch()
    command = (sys.executable, "-m", "pytest", *DATABASES)
    with (
        subprocess.Popen(command, cwd=suite, stdout=subprocess.DEVNULL) as first,
        subprocess.Popen(command, cwd=suite, stdout=subprocess.DEVNULL) as second,
    ):
        wait_for(suite / "runs")
        time.sleep(1.0)  # the other run has time to make the mistake
        (suite / "held").unlink()
    assert (first.returncode, second.returncode) == (0, 0)
    assert runs(suite) == 1


def test_killed_run_leaves_nothing_half(run_suite: RunSuite, suite: Path) -> None:
    (suite / "held").touch()
    command = (sys.executable, "-m", "pytest", *DATABASES)
    with subprocess.Popen(command, cwd=suite, stdout=subprocess.DEVNULL) as run:
        wait_for(suite / "runs")
        run.send_signal(signal.SIGKILL)
    assert entries(suite) == []
    (suite / "held").unlink()
    run_suite(*DATABASES).assert_outcomes(passed=4)
    assert (runs(suite), len(entries(suite))) == (2, 1)


def test_missing_file_is_one_clear_error(run_suite: RunSuite, suite: Path) -> None:
    (suite / "migrations").rename(suite / "other")
    run = run_suite(*DATABASES)
    run.assert_outcomes(errors=4)
    run.stdout.fnmatch_lines("*the file 'migrations' of CachedMigrations does not exist*")
    run.stdout.no_fnmatch_line("*plugin.py*")


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.02)


DISABLING = """
    import logging.config
    import os
    import pytest
    from pytest_neonctl_async import CachedMigrations

    logging.getLogger("shop")

    def migrate(uri):
        logging.config.dictConfig({"version": 1})  # as the fileConfig() of Alembic's env.py
        os.environ["MIGRATED"] = "1"
        os.chdir("/")

    @pytest.fixture(scope="session")
    def neon_migrations():
        return CachedMigrations(migrate, [])
"""

LOGGING = """
    import logging
    import os
    import pathlib
    import pytest

    @pytest.mark.parametrize("number", range(4))
    def test_logs(number, neon_branch, caplog):
        logging.getLogger("shop").warning("sold out")
        assert caplog.messages == ["sold out"]
        assert "MIGRATED" not in os.environ
        assert pathlib.Path("tox.ini").exists()
"""


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_suite_passes_on_a_cold_cache_as_on_a_warm_one(
    run_suite: RunSuite, suite: Path, pytester: pytest.Pytester, workers: str
) -> None:
    pytester.makeconftest(DISABLING)
    for file in suite.glob("test_*.py"):
        file.write_text(textwrap.dedent(LOGGING))
    for option in ((), ("--neon-rebuild",), ()):
        run_suite(*DATABASES, workers, *option).assert_outcomes(passed=4)
