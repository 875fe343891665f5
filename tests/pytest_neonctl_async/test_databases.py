"""With ``neon_postgres``, each branch is a database that starts with the migrated data."""

import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from neonctl_local.postgres.binaries import find_installations
from neonctl_local.postgres.errors import PostgresUnavailableError
from tests.pytest_neonctl_async.conftest import RunSuite
from tests.support.databases import databases

pytestmark = [pytest.mark.postgres, pytest.mark.scale]

CONFTEST = """
    import asyncpg
    import pytest

    @pytest.fixture(scope="session")
    def neon_migrations():
        async def migrate(uri):
            connection = await asyncpg.connect(uri.asyncpg)
            await connection.execute("CREATE TABLE people AS SELECT 'Ada' AS name")
            await connection.close()

        return migrate

    @pytest.fixture
    def names():
        async def names(uri, *statements):
            connection = await asyncpg.connect(uri)
            for statement in statements:
                await connection.execute(statement)
            rows = await connection.fetch("SELECT name FROM people ORDER BY name")
            await connection.close()
            return [row["name"] for row in rows]

        return names
"""

EVERYWHERE = """
    import asyncpg
    import psycopg
    import pytest

    INSERT = "INSERT INTO people VALUES ('Grace')"

    @pytest.mark.parametrize("number", range(4))
    async def test_branch_starts_with_the_migrated_data(number, neon_branch, names):
        uri = neon_branch.connection_uri.reveal()
        assert await names(uri) == ["Ada"]
        assert await names(uri, INSERT) == ["Ada", "Grace"]

    def test_without_a_loop(neon_branch):
        with psycopg.connect(neon_branch.connection_uri.reveal()) as connection:
            assert connection.execute("SELECT name FROM people").fetchall() == [("Ada",)]

    async def test_child_starts_with_the_data_of_its_parent(
        neon_branch, neon_branch_factory, names
    ):
        await names(neon_branch.connection_uri.reveal(), INSERT)
        child = await neon_branch_factory(parent_id=neon_branch.branch.id)
        other = await neon_branch_factory()
        assert await names(child.connection_uri.reveal()) == ["Ada", "Grace"]
        assert await names(other.connection_uri.reveal()) == ["Ada"]

    async def test_uri_works_after_a_reset_from_the_parent(neon_client, neon_branch, names):
        uri = neon_branch.connection_uri.reveal()
        await names(uri, INSERT)
        branch = neon_branch.branch
        await neon_client.branches.restore(
            branch.project_id, branch.id, source_branch_id=branch.parent_id, wait=True
        )
        assert await names(uri) == ["Ada"]

    async def test_changes_a_password(neon_client, neon_branch, names):
        branch = neon_branch.branch
        [role, *_] = neon_branch.roles
        await neon_client.roles.reset_password(branch.project_id, branch.id, role.name, wait=True)
        with pytest.raises(asyncpg.InvalidPasswordError):
            await names(neon_branch.connection_uri.reveal())
        uri = await neon_client.projects.connection_uri(
            branch.project_id,
            branch_id=branch.id,
            database_name=neon_branch.databases[0].name,
            role_name=role.name,
        )
        assert await names(uri.reveal()) == ["Ada"]

    async def test_password_of_the_next_test_is_the_original_one(neon_branch, names):
        assert await names(neon_branch.connection_uri.reveal()) == ["Ada"]
"""

RESETS = """
    import psycopg
    import pytest

    NAMES = {"database_name": "neondb", "role_name": "neondb_owner"}

    async def test_changes_the_parent(neon_client, neon_project, names):
        uri = await neon_client.projects.connection_uri(neon_project.id, **NAMES)
        assert await names(uri.reveal(), "DELETE FROM people") == []
        root = await neon_client.branches.default(neon_project.id)
        await neon_client.roles.reset_password(neon_project.id, root.id, "neondb_owner", wait=True)

    def test_idle_transaction_may_stay_at_a_breakpoint(neon_branch):
        with psycopg.connect(neon_branch.connection_uri.reveal()) as connection:
            timeout = connection.execute("SHOW idle_in_transaction_session_timeout")
            assert timeout.fetchone() == ("0",)

    async def test_parent_is_as_before(neon_client, neon_project, neon_branch, names):
        assert await names(neon_branch.connection_uri.reveal()) == ["Ada"]
        uri = await neon_client.projects.connection_uri(neon_project.id, **NAMES)
        assert await names(uri.reveal()) == ["Ada"]

    async def test_deletes_the_project(neon_client, neon_project, neon_branch):
        await neon_client.projects.delete(neon_project.id)
        await neon_client.projects.create(name="other", wait=True)

    async def test_project_exists_again(neon_client, neon_project, neon_branch, names):
        assert await names(neon_branch.connection_uri.reveal()) == ["Ada"]
        [project] = await neon_client.projects.list().collect()
        assert project.id == neon_project.id

    async def test_new_project_of_a_test_is_empty(neon_client):
        created = await neon_client.projects.create(name="mine", wait=True)
        import asyncpg
        connection = await asyncpg.connect(created.connection_uri.reveal())
        assert await connection.fetchval("SELECT to_regclass('people')") is None
        await connection.close()

    async def test_faults_work(neon_client, neon_control_plane, neon_project):
        await neon_control_plane.fail_next("create_branch", error="no room")
        created = await neon_client.branches.create(neon_project.id)
        with pytest.raises(Exception, match="no room"):
            await neon_client.operations.wait(created)
"""

MISBEHAVES = """
    import asyncio, os
    import pytest

    pytestmark = pytest.mark.asyncio

    async def test_raises(neon_branch):
        raise RuntimeError("a failing test")

    async def test_is_cancelled(neon_branch_factory):
        asyncio.current_task().cancel()
        await neon_branch_factory()

    async def test_leaves_a_connection_open(neon_branch):
        import psycopg
        connection = psycopg.connect(neon_branch.connection_uri.reveal())
        connection.execute("SELECT 1")
        connection.pgconn.finish  # the connection stays open until the end of the process
        globals()["kept"] = connection

    async def test_kills_its_worker(neon_branch):
        os._exit(1)

    async def test_runs_after_it(neon_branch, names):
        assert await names(neon_branch.connection_uri.reveal()) == ["Ada"]
"""

WAITS_IN_A_TEST = """
    import pathlib, time

    def test_it(neon_branch):
        pathlib.Path("ready").touch()
        time.sleep(60)
"""

WAITS_IN_MIGRATIONS = """
    import pathlib, time
    import psycopg
    import pytest

    @pytest.fixture(scope="session")
    def neon_migrations():
        def migrate(uri):
            with psycopg.connect(uri.psycopg) as connection:
                pathlib.Path("ready").touch()
                connection.execute("SELECT pg_sleep(60)")

        return migrate

    def test_it(neon_branch): ...
"""


@pytest.fixture(autouse=True)
def skip_without_postgres() -> None:
    try:
        find_installations()
    except PostgresUnavailableError as error:
        pytest.skip(str(error))


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory for temporary files of the test run. It is empty after the test."""
    path = Path(tempfile.mkdtemp(prefix="neon", dir="/tmp"))
    path.chmod(0o711)
    monkeypatch.setenv("TMPDIR", str(path))
    yield path
    # The guardian of the servers may still be at work.
    wait_until(lambda: not processes(path))
    wait_until(lambda: not list(path.iterdir()))
    path.rmdir()


def processes(directory: Path) -> list[str]:
    """Return the command lines of the processes that use files in a directory."""
    found: list[str] = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # the process has just ended
            continue
        if str(directory) in line:
            found.append(line)
    return found


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest(CONFTEST)
    return pytester


@pytest.mark.usefixtures("temporary")
@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_each_test_has_a_migrated_database(
    run_suite: RunSuite, suite: pytest.Pytester, workers: str
) -> None:
    suite.makepyfile(test_everywhere=EVERYWHERE, test_resets=RESETS)
    run = run_suite("-o", "neon_postgres=true", workers, "--dist=loadfile", "--asyncio-mode=auto")
    run.assert_outcomes(passed=9 + 7)


@pytest.fixture
async def project_id(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The project that the tests run in. A local control plane with databases plays Neon."""
    async with databases() as (control_plane, neon):
        created = await neon.projects.create(name="tests", wait=True)
        monkeypatch.setenv("NEON_API_HOST", control_plane.base_url)
        monkeypatch.setenv("NEON_API_KEY", control_plane.api_key)
        monkeypatch.setenv("NEON_PROJECT_ID", created.project.id)
        yield created.project.id
        assert await neon.branches.count(created.project.id) == 1


@pytest.mark.usefixtures("project_id")
async def test_same_tests_pass_at_neon(run_suite: RunSuite, suite: pytest.Pytester) -> None:
    await asyncio.to_thread(suite.makepyfile, EVERYWHERE)
    run = await asyncio.to_thread(run_suite, "--neon-cloud", "-n2", "--asyncio-mode=auto")
    run.assert_outcomes(passed=9)


@pytest.mark.usefixtures("temporary")
def test_misbehaving_tests_leave_nothing_behind(
    run_suite: RunSuite, suite: pytest.Pytester
) -> None:
    suite.makepyfile(MISBEHAVES)
    run = run_suite("-o", "neon_postgres=true", "-n1", "-W", "ignore::ResourceWarning")
    run.assert_outcomes(passed=2, failed=3)


@pytest.mark.usefixtures("temporary")
def test_first_failure_ends_the_run_cleanly(run_suite: RunSuite, suite: pytest.Pytester) -> None:
    suite.makepyfile(MISBEHAVES)
    run_suite("-o", "neon_postgres=true", "-x").assert_outcomes(failed=1)


@pytest.mark.usefixtures("temporary")
def test_failed_migrations_leave_nothing_behind(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    pytester.makeconftest(CONFTEST.replace("CREATE TABLE", "CREATE TALBE"))
    pytester.makepyfile(EVERYWHERE)
    run = run_suite("-o", "neon_postgres=true", "-n2")
    run.assert_outcomes(errors=9)
    error = 'could not be prepared: PostgresSyntaxError: syntax error at or near "TALBE"'
    assert sum(line.startswith("E  ") and error in line for line in run.outlines) == 9


@pytest.mark.parametrize(
    ("source", "workers", "number"),
    [
        (WAITS_IN_A_TEST, 0, signal.SIGINT),
        (WAITS_IN_A_TEST, 1, signal.SIGINT),
        (WAITS_IN_A_TEST, 1, signal.SIGKILL),
        (WAITS_IN_MIGRATIONS, 0, signal.SIGINT),
        (WAITS_IN_MIGRATIONS, 0, signal.SIGKILL),
    ],
)
@pytest.mark.usefixtures("interruptible", "temporary")
def test_ended_run_leaves_nothing_behind(
    suite: pytest.Pytester, source: str, workers: int, number: signal.Signals
) -> None:
    suite.makepyfile(source)
    options = ("-p", "no:cacheprovider", "-o", "neon_postgres=true", f"-n{workers}")
    command = (sys.executable, "-m", "pytest", *options)
    with subprocess.Popen(command, cwd=suite.path, stdout=subprocess.DEVNULL) as run:
        wait_until((suite.path / "ready").exists)
        run.send_signal(number)


def wait_until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.05)


def test_fixture_switches_databases_on(run_suite: RunSuite, suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import psycopg
        import pytest

        @pytest.fixture(scope="session")
        def neon_postgres():
            return True

        def test_it(neon_branch):
            with psycopg.connect(neon_branch.connection_uri.reveal()) as connection:
                assert connection.execute("SELECT name FROM people").fetchall() == [("Ada",)]
        """
    )
    run_suite().assert_outcomes(passed=1)


def test_missing_postgres_is_the_error_of_every_test(
    run_suite: RunSuite, pytester: pytest.Pytester, tmp_path: Path
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(EVERYWHERE)
    with (pytester.path / "tox.ini").open("a") as file:
        file.write(f"\nneon_postgres = {tmp_path}")
    run = run_suite("-n2")
    run.assert_outcomes(errors=9)
    run.stdout.fnmatch_lines(f"the local control plane did not start: *{tmp_path}*")
    run.stdout.fnmatch_lines(f"neon_postgres is set in {file.name}")
    run.stdout.no_fnmatch_line("*pytest_neonctl_async*")
