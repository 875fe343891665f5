"""Migrations run once per test run, whatever the number of workers, and never block a worker."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeAlias

import pytest

from neonctl_async import NeonClient
from neonctl_local import Durations, LocalControlPlane
from tests.pytest_neonctl_async.conftest import RunSuite

RunInCloud: TypeAlias = Callable[..., Coroutine[None, None, pytest.RunResult]]

pytestmark = [
    pytest.mark.long,
    pytest.mark.process,
    pytest.mark.control_plane(durations=Durations(default=0.01)),
]

MIGRATIONS = """
    import os
    import pathlib
    import pytest

    RUNS = pathlib.Path(__file__).with_name("runs")

    @pytest.fixture(scope="session")
    def neon_migrations():
        async def migrate(uri):
            assert uri.reveal().startswith("postgresql://")
            with RUNS.open("a") as file:
                file.write(os.environ.get("PYTEST_XDIST_WORKER", "main") + "\\n")
            {body}

        return migrate

    def pytest_sessionfinish(session):
        if hasattr(session.config, "workerinput"):
            RUNS.with_name("finished").touch()
"""

SHARED_PARENT = """
    import pathlib
    import time
    import pytest

    FILE = pathlib.Path(__file__).with_name("records")

    @pytest.mark.parametrize("number", range(4))
    def test_branches_of_all_workers_have_one_parent(number, neon_branch, worker_id):
        with FILE.open("a") as file:
            file.write(f"{worker_id} {neon_branch.branch.parent_id}\\n")
        while len({line.split()[0] for line in FILE.read_text().splitlines()}) < 2:
            time.sleep(0.01)  # until the other worker has recorded itself
"""

SLOW_WORKER = """
    import pathlib
    import time

    FINISHED = pathlib.Path(__file__).with_name("finished")

    def test_of_the_fast_worker(neon_branch): ...

    def test_of_the_slow_worker(neon_branch, neon_branch_factory):
        while not FINISHED.exists():  # the end of the fast worker creates it
            time.sleep(0.01)
        assert neon_branch_factory.create().branch.parent_id == neon_branch.branch.parent_id
"""

FOUR = """
    import pytest

    @pytest.mark.parametrize("number", range(4))
    def test_it(number, neon_branch): ...
"""


@pytest.fixture
def run_in_cloud(run_suite: RunSuite, pytester: pytest.Pytester) -> RunInCloud:
    """Runs a test file with ``--neon-cloud`` and migrations that execute ``body``."""

    async def run(source: str, body: str, *options: str) -> pytest.RunResult:
        await asyncio.to_thread(pytester.makeconftest, MIGRATIONS.format(body=body))
        await asyncio.to_thread(pytester.makepyfile, source)
        return await asyncio.to_thread(run_suite, "--neon-cloud", *options)

    return run


async def lines(pytester: pytest.Pytester, name: str) -> list[str]:
    text = await asyncio.to_thread((pytester.path / name).read_text)
    return text.splitlines()


async def branch_count(neon: NeonClient, project_id: str) -> int:
    return await neon.branches.count(project_id)


@pytest.mark.scale
async def test_one_worker_migrates_the_parent_of_all_branches(
    run_in_cloud: RunInCloud, pytester: pytest.Pytester, neon: NeonClient, project_id: str
) -> None:
    run = await run_in_cloud(SHARED_PARENT, "pass", "-n2")
    run.assert_outcomes(passed=4)
    assert len(await lines(pytester, "runs")) == 1
    records = [line.split() for line in await lines(pytester, "records")]
    assert {worker for worker, _ in records} == {"gw0", "gw1"}
    assert len({parent for _, parent in records}) == 1
    assert await branch_count(neon, project_id) == 1
    assert not any(line.startswith("neon: ") for line in run.outlines)


@pytest.mark.scale
async def test_worker_that_finishes_first_deletes_nothing_that_others_use(
    run_in_cloud: RunInCloud, neon: NeonClient, project_id: str
) -> None:
    run = await run_in_cloud(SLOW_WORKER, "pass", "-n2")
    run.assert_outcomes(passed=2)
    assert await branch_count(neon, project_id) == 1


@pytest.mark.scale
async def test_failed_migrations_are_the_error_of_every_worker(
    run_in_cloud: RunInCloud, pytester: pytest.Pytester, neon: NeonClient, project_id: str
) -> None:
    run = await run_in_cloud(FOUR, "raise ValueError('no such table')", "-n2", "-l")
    run.assert_outcomes(errors=4)
    run.stdout.fnmatch_lines("*uri = ConnectionUri('[*][*]*')")
    error = "could not be prepared: ValueError: no such table"
    assert sum(line.startswith("E  ") and error in line for line in run.outlines) == 4
    assert f"neon: the databases of this test run {error}" in run.outlines
    assert len(await lines(pytester, "runs")) == 1
    assert await branch_count(neon, project_id) == 1


@pytest.mark.scale
async def test_worker_that_dies_while_it_migrates_does_not_block_the_others(
    run_in_cloud: RunInCloud, pytester: pytest.Pytester, neon: NeonClient, project_id: str
) -> None:
    die_once = "len(RUNS.read_text().splitlines()) > 1 or os._exit(1)"
    run = await run_in_cloud(FOUR, die_once, "-n2")
    run.assert_outcomes(passed=3, failed=1)
    assert len(await lines(pytester, "runs")) == 2
    assert await branch_count(neon, project_id) == 1


@pytest.mark.scale
async def test_migrations_that_kill_their_workers_are_given_up(
    run_in_cloud: RunInCloud, pytester: pytest.Pytester, neon: NeonClient, project_id: str
) -> None:
    run = await run_in_cloud(FOUR, "os._exit(1)", "-n2")
    run.assert_outcomes(failed=2, errors=2)
    run.stdout.fnmatch_lines("E   2 processes ended while they prepared the databases*")
    assert len(await lines(pytester, "runs")) == 2
    assert await branch_count(neon, project_id) == 1


async def test_traceback_of_failed_migrations_is_shown_once_and_without_passwords(
    run_in_cloud: RunInCloud, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert project_id
    monkeypatch.setenv("CI", "true")  # pytest then shows whole messages in its summary
    body = "raise ValueError(f'cannot connect to {uri.reveal()}')"
    run = await run_in_cloud(FOUR, body, "-n0")
    run.assert_outcomes(errors=4)
    output = run.stdout.str()
    assert output.count("Traceback (most recent call last)") == 1
    assert output.count("in migrate") == 1
    assert "raise ValueError" in output
    assert "neonctl_async/" not in output.partition("Traceback")[2]
    assert "::test_it[0] - ValueError: cannot connect to " in output
    assert "neon: the databases of this test run could not be prepared: ValueError: " in output
    assert "cannot connect to postgresql://neondb_owner:********@" in output
    assert "npg_" not in output
    assert len(run.outlines) < 50


async def test_later_tests_report_failed_migrations_in_one_line_at_no_cost(
    run_in_cloud: RunInCloud, pytester: pytest.Pytester, project_id: str
) -> None:
    assert project_id
    body = """class Long(Exception):
                def __str__(self):
                    with RUNS.with_name("formatted").open("a") as file:
                        file.write("once\\n")
                    return "no such table\\n[SQL: SELECT 1]"
            raise Long"""
    run = await run_in_cloud(FOUR, body, "-n0")
    run.assert_outcomes(errors=4)
    assert run.stdout.str().count("[SQL: SELECT 1]") == 1
    assert sum(line.endswith("Long: no such table") for line in run.outlines) >= 4
    # pytest itself would format the error, with its traceback, several times per test.
    assert len(await lines(pytester, "formatted")) < 4


async def test_migrations_run_without_workers_too(
    run_in_cloud: RunInCloud, pytester: pytest.Pytester, neon: NeonClient, project_id: str
) -> None:
    run = await run_in_cloud(FOUR, "pass", "-n0")
    run.assert_outcomes(passed=4)
    assert len(await lines(pytester, "runs")) == 1
    assert await branch_count(neon, project_id) == 1


@pytest.mark.scale
@pytest.mark.usefixtures("interruptible")
async def test_ctrl_c_interrupts_migrations_and_leaves_no_branch_behind(
    run_in_cloud: RunInCloud, neon: NeonClient, project_id: str
) -> None:
    interrupt = (
        "import asyncio, signal; os.kill(os.getpid(), signal.SIGINT); await asyncio.sleep(60)"
    )
    run = await run_in_cloud(FOUR, interrupt)
    assert run.ret == pytest.ExitCode.INTERRUPTED
    assert await branch_count(neon, project_id) == 1


async def test_collection_starts_nothing(
    run_in_cloud: RunInCloud,
    pytester: pytest.Pytester,
    control_plane: LocalControlPlane,
    project_id: str,
) -> None:
    assert project_id
    before = control_plane.requests_served
    run = await run_in_cloud(FOUR, "pass", "--collect-only")
    assert run.ret == pytest.ExitCode.OK
    assert not await asyncio.to_thread((pytester.path / "runs").exists)
    assert control_plane.requests_served == before


async def test_migrations_need_databases(run_suite: RunSuite, pytester: pytest.Pytester) -> None:
    await asyncio.to_thread(pytester.makeconftest, MIGRATIONS.format(body="pass"))
    await asyncio.to_thread(pytester.makepyfile, FOUR)
    run = await asyncio.to_thread(run_suite)
    run.assert_outcomes(errors=4)
    run.stdout.fnmatch_lines("*neon_migrations needs databases: set neon_postgres = true*")
    run.stdout.no_fnmatch_line("*plugin.py*")
    run.stdout.no_fnmatch_line("*During handling*")


async def test_migrations_that_are_not_a_function_are_refused(
    run_suite: RunSuite, pytester: pytest.Pytester
) -> None:
    forgotten = MIGRATIONS.format(body="pass").replace("return migrate", "")
    await asyncio.to_thread(pytester.makeconftest, forgotten)
    await asyncio.to_thread(pytester.makepyfile, FOUR)
    run = await asyncio.to_thread(run_suite)
    run.assert_outcomes(errors=4)
    run.stdout.fnmatch_lines("*neon_migrations returned None: expected a function that gets a *")
    run.stdout.no_fnmatch_line("*plugin.py*")
    run.stdout.no_fnmatch_line("*During handling*")
