"""First starts of copies that are interrupted at the worst moment."""

import asyncio
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from neonctl_local.postgres import cluster
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.copying import copy_cluster
from neonctl_local.postgres.programs import program_environment, run_program
from neonctl_local.postgres.servers.guardian import end_servers
from neonctl_local.postgres.servers.postmaster import identity
from tests.support.clusters import DESIRED, PASSWORD, data_directories, execute, fetch

pytestmark = pytest.mark.postgres

ROWS = 200_000
COUNT = "SELECT count(*) FROM t"


@pytest.fixture
async def busy(
    each_installation: Installation,
    account: ServerAccount | None,
    temporary_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Clusters whose running servers write much WAL during each copy, and the data of a copy."""
    major = each_installation.major
    clusters = Clusters({major: each_installation}, account, directory=None, durable=False)

    def copy_while_busy(source: Path, target: Path, **options: Any) -> None:
        copy_cluster(source, target, **options)
        socket = clusters.socket("br-main")
        assert socket is not None
        with psycopg.connect(
            host=str(socket.parent),
            port=int(socket.suffix.removeprefix(".")),
            user="alice",
            password=PASSWORD,
            dbname="app",
        ) as connection:
            connection.execute(f"INSERT INTO t SELECT generate_series(1, {ROWS})".encode())

    await clusters.open()
    try:
        await clusters.initialize("br-main", major)
        await clusters.start("br-main", DESIRED)
        await execute(clusters, "br-main", "CREATE TABLE t (n int)")
        before = set(await data_directories(temporary_directory))
        with monkeypatch.context() as patched:
            patched.setattr(cluster, "copy_cluster", copy_while_busy)
            await clusters.copy("br-main", "br-copy")
        [new] = set(await data_directories(temporary_directory)) - before
        yield clusters, temporary_directory / new
    finally:
        await clusters.close()


def interrupt_first_start(
    data: Path, installation: Installation, account: ServerAccount | None, number: signal.Signals
) -> None:
    """Start a server, and end it when it has renamed the label and has not yet read the WAL."""
    user, group, extra_groups = identity(account)
    server = subprocess.Popen(
        [
            installation.program("postgres"),
            "-D",
            data,
            "-c",
            f"unix_socket_directories={data}",
            "-c",
            "fsync=off",
        ],
        cwd=data,
        env=program_environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        user=user,
        group=group,
        extra_groups=extra_groups,
    )
    while not (data / "backup_label.old").exists():
        assert server.poll() is None, "the server did not rename the label"
    server.send_signal(number)
    server.wait()
    end_servers(data)
    output = run_program([installation.program("pg_controldata"), data], timeout=100).output
    found = re.search(r"Backup start location: +(\S+)", output)
    assert found is not None
    assert found[1] != "0/0", "the interruption was too late"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_interrupted_first_start_is_repeated(
    busy: tuple[Clusters, Path],
    each_installation: Installation,
    account: ServerAccount | None,
    number: signal.Signals,
) -> None:
    clusters, data = busy
    await asyncio.to_thread(interrupt_first_start, data, each_installation, account, number)
    await clusters.copy("br-copy", "br-copy-of-it")
    for id in ("br-copy", "br-copy-of-it"):
        await clusters.start(id, DESIRED)
        assert await fetch(clusters, id, COUNT) == [ROWS]


async def test_label_of_a_finished_start_is_never_put_back(busy: tuple[Clusters, Path]) -> None:
    clusters, data = busy
    label = await asyncio.to_thread((data / "backup_label").read_text)
    await clusters.start("br-copy", DESIRED)
    await execute(clusters, "br-copy", "INSERT INTO t VALUES (0)")
    await clusters.stop("br-copy")
    # Earlier versions kept the renamed label.
    await asyncio.to_thread((data / "backup_label.old").write_text, label)
    await clusters.start("br-copy", DESIRED)
    assert await fetch(clusters, "br-copy", COUNT) == [ROWS + 1]
