import asyncio
import os
import signal
from pathlib import Path

import pytest

from neonctl_local.postgres.clusters import Clusters
from neonctl_local.postgres.configuration import Desired, RoleSpec
from tests.support.clusters import DESIRED, LEDGER, data_directories, execute, fetch, servers
from tests.support.until import until

pytestmark = pytest.mark.postgres


@pytest.fixture
async def stopped(clusters: Clusters, main: str) -> str:
    """The id of a stopped cluster with rows and two prepared copies."""
    await execute(clusters, main, LEDGER)
    await clusters.stop(main)
    await clusters.prepare(main, 2)
    await until(lambda: clusters.prepared(main) == 2)
    return main


async def test_more_copies_are_made_when_none_is_ready(
    clusters: Clusters, stopped: str, temporary_directory: Path
) -> None:
    before = await data_directories(temporary_directory)
    for number in range(3):
        await clusters.copy(stopped, f"br-{number}")
        await clusters.start(f"br-{number}", DESIRED)
        assert await fetch(clusters, f"br-{number}", "SELECT count(*) FROM accounts") == [10]
    await until(lambda: clusters.prepared(stopped) == 2)
    assert len(await data_directories(temporary_directory)) == len(before) + 3


async def test_deleted_copy_is_restored_and_taken_again(
    clusters: Clusters, stopped: str, temporary_directory: Path
) -> None:
    before = await data_directories(temporary_directory)
    for _ in range(5):
        await clusters.copy(stopped, "br-copy")
        await clusters.start("br-copy", DESIRED)
        assert await fetch(clusters, "br-copy", "SELECT count(*) FROM accounts") == [10]
        await execute(clusters, "br-copy", "DELETE FROM accounts")
        await clusters.delete("br-copy")
    await until(lambda: clusters.prepared(stopped) == 2)
    assert await data_directories(temporary_directory) == before


async def test_copy_of_an_older_source_is_not_taken_again(
    clusters: Clusters, stopped: str
) -> None:
    await clusters.copy(stopped, "br-copy")
    await clusters.start(stopped, DESIRED)
    await execute(clusters, stopped, "DELETE FROM accounts")
    await clusters.stop(stopped)
    await clusters.delete("br-copy")
    for name in ("br-1", "br-2", "br-3"):
        await clusters.copy(stopped, name)
        await clusters.start(name, DESIRED)
        assert await fetch(clusters, name, "SELECT count(*) FROM accounts") == [0]


async def test_killed_copy_is_restored(
    clusters: Clusters, stopped: str, temporary_directory: Path
) -> None:
    for pid in await servers(temporary_directory):
        os.kill(pid, signal.SIGKILL)
    await clusters.copy(stopped, "br-copy")
    await clusters.start("br-copy", DESIRED)
    await execute(clusters, "br-copy", "DELETE FROM accounts")
    for pid in await servers(temporary_directory):
        os.kill(pid, signal.SIGKILL)
    await clusters.delete("br-copy")
    for name in ("br-1", "br-2", "br-3"):
        await clusters.copy(stopped, name)
        await clusters.start(name, DESIRED)
        assert await fetch(clusters, name, "SELECT count(*) FROM accounts") == [10]


async def test_prepared_copy_has_the_system_catalogs_of_its_databases_in_its_cache(
    clusters: Clusters, stopped: str
) -> None:
    assert clusters.prepared(stopped) == 2
    caches = await asyncio.to_thread(list, clusters.root.glob("clusters/*/base/*/pg_internal.init"))
    names = {path.parent.name for path in caches}
    assert len(names) >= 2, "Postgres writes the file at the first connection to a database"
    for name in names:
        assert len([path for path in caches if path.parent.name == name]) >= 2


async def test_prepared_copies_are_independent(clusters: Clusters, stopped: str) -> None:
    for name in ("br-1", "br-2", "br-3"):
        await clusters.copy(stopped, name)
        await clusters.start(name, DESIRED)
        await execute(clusters, name, "DELETE FROM accounts")
    await clusters.start(stopped, DESIRED)
    assert await fetch(clusters, stopped, "SELECT count(*) FROM accounts") == [10]


async def test_started_source_has_no_prepared_copies_until_it_stops(
    clusters: Clusters, stopped: str
) -> None:
    await clusters.start(stopped, DESIRED)
    assert clusters.prepared(stopped) == 0
    await execute(clusters, stopped, "DELETE FROM accounts")
    await clusters.copy(stopped, "br-copy")
    await clusters.start("br-copy", DESIRED)
    assert await fetch(clusters, "br-copy", "SELECT count(*) FROM accounts") == [0]
    await clusters.stop(stopped)
    await until(lambda: clusters.prepared(stopped) == 2)
    await clusters.copy(stopped, "br-new")
    await clusters.start("br-new", DESIRED)
    assert await fetch(clusters, "br-new", "SELECT count(*) FROM accounts") == [0]


async def test_configuration_of_a_prepared_copy_may_differ(
    clusters: Clusters, stopped: str
) -> None:
    await clusters.copy(stopped, "br-copy")
    await clusters.start("br-copy", Desired([RoleSpec("alice", "new")], DESIRED.databases))
    assert await fetch(clusters, "br-copy", "SELECT 1", password="new") == [1]


@pytest.mark.parametrize("change", ["delete", "rename", "prepare"])
async def test_copies_that_nobody_wants_any_more_are_removed(
    clusters: Clusters, stopped: str, temporary_directory: Path, change: str
) -> None:
    if change == "delete":
        await clusters.delete(stopped)
    elif change == "rename":
        await clusters.rename(stopped, "br-renamed")
    else:
        await clusters.prepare(stopped, 0)
    kept = len(clusters.ids())

    async def is_clean() -> bool:
        directories = await data_directories(temporary_directory)
        return len(directories) == kept and await servers(temporary_directory) == []

    await until(is_clean)


async def test_source_that_changes_while_its_copy_is_made_is_copied_again(
    clusters: Clusters, main: str
) -> None:
    await execute(clusters, main, LEDGER)
    await clusters.stop(main)
    for _ in range(3):
        await clusters.prepare(main, 1)
        await asyncio.sleep(0.005)
        await clusters.start(main, DESIRED)
        await execute(
            clusters, main, "DELETE FROM accounts WHERE id = (SELECT max(id) FROM accounts)"
        )
        await clusters.stop(main)
    await until(lambda: clusters.prepared(main) == 1)
    await clusters.copy(main, "br-copy")
    await clusters.start("br-copy", DESIRED)
    assert await fetch(clusters, "br-copy", "SELECT count(*) FROM accounts") == [7]
