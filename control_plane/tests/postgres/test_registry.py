import asyncio
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.directories import Directories
from neonctl_local.postgres.errors import ClusterError
from tests.support.clusters import DESIRED, LEDGER, data_directories, execute, fetch, files

pytestmark = pytest.mark.postgres


async def test_cluster_is_deleted_although_the_disk_is_full(
    clusters: Clusters, main: str, temporary_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assign = Directories.assign

    def full(directories: Directories, changes: Mapping[str, Path | None]) -> None:
        if list(temporary_directory.glob("*/data/clusters/*")):
            raise ClusterError("'clusters.json' cannot be written: No space left on device")
        assign(directories, changes)

    monkeypatch.setattr(Directories, "assign", full)
    with pytest.raises(ClusterError, match="No space left"):
        await clusters.copy(main, "br-copy")
    assert clusters.ids() == {main}
    assert len(await data_directories(temporary_directory)) == 1
    await clusters.delete(main)
    assert clusters.ids() == set()


async def test_cancelled_replacement_keeps_the_old_or_the_new_data(
    installation: Installation,
    account: ServerAccount | None,
    open_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = open_directory / "data"
    clusters = Clusters({installation.major: installation}, account, directory=root, durable=False)
    await clusters.open()
    await clusters.initialize("br-main", installation.major)
    await clusters.start("br-main", DESIRED)
    await execute(clusters, "br-main", LEDGER)
    await clusters.stop("br-main")
    await clusters.copy("br-main", "br-copy")
    writing = threading.Event()
    assign = Directories.assign

    def slow(directories: Directories, changes: Mapping[str, Path | None]) -> None:
        writing.set()
        time.sleep(0.05)
        assign(directories, changes)

    monkeypatch.setattr(Directories, "assign", slow)
    copying = asyncio.create_task(clusters.copy("br-main", "br-copy"))
    await asyncio.to_thread(writing.wait, 10)
    copying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await copying
    await clusters.close()
    again = Clusters({installation.major: installation}, account, directory=root, durable=False)
    await again.open()
    assert again.ids() == {"br-main", "br-copy"}
    assert len(await files(root, "clusters/*")) == 2 * 2, "data, and a password"
    await again.start("br-copy", DESIRED)
    assert await fetch(again, "br-copy", "SELECT count(*) FROM accounts") == [10]
    await again.close()
