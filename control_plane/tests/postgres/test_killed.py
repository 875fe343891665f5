"""Servers, control planes and guardians that are killed."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import DatabaseSpec, Desired
from neonctl_local.postgres.servers.scheduling import in_thread
from tests.support.clusters import (
    ALICE,
    DESIRED,
    LEDGER,
    connect,
    execute,
    fetch,
    files,
    first_process,
    servers,
    session,
)
from tests.support.until import until

pytestmark = pytest.mark.postgres

PROGRAM = """
import asyncio, sys
from pathlib import Path
from neonctl_local.postgres.account import server_account
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.binaries import find_installations
from tests.support.clusters import DESIRED, LEDGER, execute

async def main(bin, directory):
    installations = find_installations(Path(bin))
    directory = Path(directory) if directory else None
    clusters = Clusters(installations, server_account(), directory=directory, durable=False)
    await clusters.open()
    await clusters.initialize("br-main", next(iter(installations)))
    await clusters.start("br-main", DESIRED)
    await execute(clusters, "br-main", LEDGER)
    await clusters.copy("br-main", "br-copy")
    await clusters.start("br-copy", DESIRED)
    await clusters.copy("br-main", "br-source")
    await clusters.prepare("br-source", 1)
    print(clusters._guard.pid, flush=True)
    number = 0
    while True:
        number += 1
        await clusters.copy("br-copy", f"br-{number % 3}")
        await clusters.start(f"br-{number % 3}", DESIRED)

asyncio.run(main(*sys.argv[1:]))
"""

Run = Callable[[Path | None], "tuple[subprocess.Popen[str], int]"]


@pytest.fixture
def run(installation: Installation, temporary_directory: Path) -> Iterator[Run]:
    """A function that starts a control plane that is always at work, and has a guardian."""
    processes: list[subprocess.Popen[str]] = []

    def start(directory: Path | None) -> "tuple[subprocess.Popen[str], int]":
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, installation.directory, str(directory or "")],
            env=os.environ | {"TMPDIR": str(temporary_directory)},
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        return process, int(process.stdout.readline())

    yield start
    for process in processes:
        process.kill()
        process.communicate()


async def test_killed_server_is_reported_and_loses_nothing(
    clusters: Clusters, main: str, temporary_directory: Path
) -> None:
    crashes: list[tuple[str, str]] = []
    clusters.on_crash = lambda id, reason: crashes.append((id, reason))
    await execute(clusters, main, LEDGER)
    before = await servers(temporary_directory)
    os.kill(await first_process(temporary_directory), signal.SIGKILL)
    await until(lambda: bool(crashes))
    assert crashes[0][0] == main
    assert "killed by signal 9" in crashes[0][1]
    assert not clusters.is_running(main)
    await clusters.start(main, DESIRED)
    assert await fetch(clusters, main, "SELECT count(*) FROM accounts") == [10]
    assert set(before).isdisjoint(await servers(temporary_directory))


async def test_busy_sessions_of_a_killed_server_end(
    clusters: Clusters, main: str, temporary_directory: Path
) -> None:
    connection = await connect(clusters.socket(main))
    endless = "SELECT count(*) FROM generate_series(1, 10000000000)"
    query = asyncio.create_task(connection.execute(endless))
    await until(lambda: _is_busy(clusters, main))
    os.kill(await first_process(temporary_directory), signal.SIGKILL)
    await until(lambda: _has_no_server(temporary_directory))
    await asyncio.wait([query])
    assert query.exception() is not None
    assert not clusters.is_running(main)


async def _is_busy(clusters: Clusters, id: str) -> bool:
    return (await clusters.activity(id)).busy


async def _has_no_server(directory: Path) -> bool:
    return await servers(directory) == []


async def test_crash_of_a_backend_ends_no_server(clusters: Clusters, main: str) -> None:
    async with session(clusters, main) as connection:
        os.kill(await connection.fetchval("SELECT pg_backend_pid()"), signal.SIGKILL)
        await until(connection.is_closed)
    await until(lambda: _accepts(clusters, main))
    assert clusters.is_running(main)


async def _accepts(clusters: Clusters, id: str) -> bool:
    try:
        return bool(await fetch(clusters, id, "SELECT 1"))
    except Exception:  # noqa: BLE001 - it recovers, and each connection fails in its own way
        return False


async def test_time_of_the_last_change_is_found_after_a_crash(
    clusters: Clusters, main: str, temporary_directory: Path
) -> None:
    await execute(clusters, main, LEDGER)
    changed = await clusters.changed_at(main)
    os.kill(await first_process(temporary_directory), signal.SIGKILL)
    await until(lambda: not clusters.is_running(main))
    assert await clusters.changed_at(main) == changed
    assert not clusters.is_running(main)


async def test_crash_while_a_session_is_being_opened_is_no_error_of_a_stop(
    clusters: Clusters, main: str, temporary_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = await first_process(temporary_directory)

    async def crash(function: Callable[[], str]) -> str:
        monkeypatch.undo()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not clusters.is_running(main))
        return await in_thread(function)

    monkeypatch.setattr("neonctl_local.postgres.cluster.in_thread", crash)
    await clusters.stop(main)
    await clusters.start(main, DESIRED)


async def test_crashed_cluster_is_copied(
    clusters: Clusters, main: str, temporary_directory: Path
) -> None:
    await execute(clusters, main, LEDGER)
    os.kill(await first_process(temporary_directory), signal.SIGKILL)
    await until(lambda: not clusters.is_running(main))
    await clusters.copy(main, "br-copy")
    await clusters.start("br-copy", DESIRED)
    assert await fetch(clusters, "br-copy", "SELECT count(*) FROM accounts") == [10]


async def test_crash_while_the_server_is_configured_is_an_error_and_repeatable(
    clusters: Clusters, main: str, temporary_directory: Path
) -> None:
    more = [DatabaseSpec(f"db-{number}", "alice") for number in range(20)]
    desired = Desired([ALICE], [*DESIRED.databases, *more])
    pid = await first_process(temporary_directory)
    configuring = asyncio.create_task(clusters.configure(main, desired))
    await asyncio.sleep(0.02)  # to create the databases takes several times as long
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait([configuring])
    assert configuring.exception() is not None
    await until(lambda: not clusters.is_running(main))
    await clusters.start(main, desired)
    databases = await fetch(clusters, main, "SELECT datname FROM pg_database")
    assert len(databases) == 24


async def test_server_that_a_waiting_call_starts_after_a_crash_is_not_ended(
    clusters: Clusters, main: str, temporary_directory: Path
) -> None:
    more = [DatabaseSpec(f"db-{number}", "alice") for number in range(20)]
    desired = Desired([ALICE], [*DESIRED.databases, *more])
    pid = await first_process(temporary_directory)
    configuring = asyncio.create_task(clusters.configure(main, desired))
    starting = asyncio.create_task(clusters.start(main, DESIRED))
    await asyncio.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait([configuring, starting])
    if starting.exception() is not None:  # the end of the process was not noticed yet
        await until(lambda: not clusters.is_running(main))
        await clusters.start(main, DESIRED)
    await clusters.configure(main, DESIRED)  # waits for the end of what the crash has left
    assert await fetch(clusters, main, "SELECT 1") == [1]


async def test_killed_control_plane_leaves_nothing_behind(
    run: Run, temporary_directory: Path
) -> None:
    process, _ = await asyncio.to_thread(run, None)
    assert await servers(temporary_directory) != []
    process.kill()
    await until(lambda: _is_empty(temporary_directory))
    assert await servers(temporary_directory) == []


async def _is_empty(directory: Path) -> bool:
    return await files(directory) == []


async def test_next_control_plane_removes_what_a_control_plane_and_its_guardian_left(
    run: Run,
    installation: Installation,
    account: ServerAccount | None,
    temporary_directory: Path,
) -> None:
    process, guardian = await asyncio.to_thread(run, None)
    process.send_signal(signal.SIGSTOP)  # it would start another guardian
    os.kill(guardian, signal.SIGKILL)
    process.kill()
    await asyncio.to_thread(process.wait)
    assert await servers(temporary_directory) != []
    another = Clusters({installation.major: installation}, account, directory=None, durable=False)
    await another.open()
    await another.close()
    assert await servers(temporary_directory) == []
    assert await files(temporary_directory) == []


async def test_kept_data_survive_a_killed_control_plane(
    run: Run,
    installation: Installation,
    account: ServerAccount | None,
    open_directory: Path,
) -> None:
    data = open_directory / "data"
    process, _ = await asyncio.to_thread(run, data)
    process.kill()
    clusters = Clusters({installation.major: installation}, account, directory=data, durable=False)
    await clusters.open()
    try:
        assert await servers(open_directory) == []
        assert {"br-main", "br-copy", "br-source"} <= clusters.ids()
        names = await files(data, "clusters/*")
        assert len(names) == 2 * len(clusters.ids()), "data, and a password"
        for id in clusters.ids():
            await clusters.start(id, DESIRED)
            assert await fetch(clusters, id, "SELECT count(*) FROM accounts") == [10]
    finally:
        await clusters.close()
    assert await servers(open_directory) == []
