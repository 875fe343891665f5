"""Data that were lost or mixed up: the start is refused or reports it, and removes nothing."""

import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from msgspec import UNSET, UnsetType

from neonctl_local import LocalControlPlane
from neonctl_local.postgres.directories import INDEX, OWNER
from neonctl_local.server.databases import watching
from tests.support.databases import READ_WRITE, client, databases, execute, uri_of
from tests.support.until import until

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]


class Kept(NamedTuple):
    """A project with a row, in a data file."""

    project_id: str
    key: str


async def create(data: Path, pg_version: int | UnsetType = UNSET) -> Kept:
    """Create a data file with two branches."""
    async with databases(data=data) as (control_plane, neon):
        project = await neon.projects.create(name="test", pg_version=pg_version, wait=True)
        await execute(uri_of(project), "CREATE TABLE kept AS SELECT 42 AS answer", "SELECT 1")
        await neon.branches.create(project.project.id, endpoints=[READ_WRITE], wait=True)
        return Kept(project.project.id, control_plane.api_key)


async def answer(data: Path, kept: Kept) -> object:
    """Return the row of the project at a later start."""
    async with (
        LocalControlPlane(data=data, postgres=True) as control_plane,
        client(control_plane, kept.key) as neon,
    ):
        uri = await neon.projects.connection_uri(
            kept.project_id, database_name="neondb", role_name="neondb_owner"
        )
        return await execute(uri.reveal(), "SELECT answer FROM kept")


async def refusal(data: Path) -> str:
    """Return the error of a start, which creates and removes no file."""
    before = await asyncio.to_thread(files, data.parent)
    with pytest.raises(RuntimeError) as caught:
        async with LocalControlPlane(data=data, postgres=True):
            pass
    assert await asyncio.to_thread(files, data.parent) == before
    return str(caught.value)


def files(directory: Path) -> set[Path]:
    """Return the directories of clusters, and the files that describe them."""
    patterns = ("*.d", f"*/{INDEX}", f"*/{OWNER}", "*/clusters/*", "*/clusters/*/PG_VERSION")
    return {path for pattern in patterns for path in directory.glob(pattern)}


def directory_of(data: Path) -> Path:
    """Return the directory of the clusters of a data file."""
    return data.with_name(f"{data.name}.d")


def copy(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-a", source, target], check=True)


def lose_index(directory: Path) -> None:
    (directory / INDEX).unlink()


def lose_names(directory: Path) -> None:
    (directory / INDEX).write_text("{}", encoding="utf-8")


def lose_directory(directory: Path) -> None:
    shutil.rmtree(directory)


def lose_content(directory: Path) -> None:
    lose_directory(directory)
    directory.mkdir()


NO_INDEX = r"^There is no '.*/data\.db\.d/clusters\.json', and the data of 2 branches"
NO_NAME = r"clusters\.json' does not name '.*/clusters/[0-9a-f]{16}', and the data of 2 branches"


@pytest.mark.parametrize(
    ("lose", "message", "pg_version"),
    [
        (lose_index, NO_INDEX, 18),
        pytest.param(lose_index, NO_INDEX, 15, marks=pytest.mark.long),
        pytest.param(lose_names, NO_NAME, 18, marks=pytest.mark.long),
        (lose_directory, NO_INDEX, 15),
        pytest.param(lose_content, NO_INDEX, 18, marks=pytest.mark.long),
    ],
)
async def test_start_without_the_data_of_branches_is_refused_until_they_are_restored(
    open_directory: Path,
    installed: frozenset[int],
    lose: Callable[[Path], None],
    message: str,
    pg_version: int,
) -> None:
    if pg_version not in installed:
        pytest.skip(f"Postgres {pg_version} is not installed")
    data, backup = open_directory / "data.db", open_directory / "backup"
    kept = await create(data, pg_version=pg_version)
    directory = directory_of(data)
    await asyncio.to_thread(copy, directory, backup)
    await asyncio.to_thread(lose, directory)
    error = await refusal(data)
    assert re.search(message, error), error
    assert re.search(r"missing \(br-[\w-]+, br-[\w-]+\): restore the directory '", error), error
    await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)
    await asyncio.to_thread(backup.rename, directory)
    assert await answer(data, kept) == 42


@pytest.mark.long
async def test_copied_data_file_needs_a_copy_of_its_directory(open_directory: Path) -> None:
    data, other = open_directory / "data.db", open_directory / "copy.db"
    kept = await create(data)
    await asyncio.to_thread(shutil.copy2, data, other)
    assert "There is no" in await refusal(other)
    await asyncio.to_thread(copy, directory_of(data), directory_of(other))
    assert await answer(other, kept) == 42
    assert await answer(data, kept) == 42


@pytest.mark.parametrize("emulated", [False, True])
async def test_new_data_file_does_not_delete_the_databases_of_a_missing_one(
    open_directory: Path, *, emulated: bool
) -> None:
    data, moved = open_directory / "data.db", open_directory / "moved.db"
    kept = await create(data)
    await asyncio.to_thread(data.rename, moved)
    if emulated:  # a start without real databases creates the new file
        async with LocalControlPlane(data=data):
            pass
    assert "has the databases of another data file" in await refusal(data)
    await asyncio.to_thread(moved.replace, data)
    assert await answer(data, kept) == 42


@pytest.mark.long
async def test_moved_directory_and_data_file_let_the_server_start_without_databases(
    open_directory: Path,
) -> None:
    data = open_directory / "data.db"
    await create(data)
    moved = open_directory / "moved.db"
    await asyncio.to_thread(data.rename, moved)
    await asyncio.to_thread(directory_of(data).rename, directory_of(moved))
    await create(data)


@pytest.mark.long
async def test_data_file_without_databases_gets_them_at_a_later_start(open_directory: Path) -> None:
    data = open_directory / "data.db"
    async with LocalControlPlane(data=data) as control_plane:
        key = control_plane.api_key
    async with (
        LocalControlPlane(data=data, postgres=True) as control_plane,
        client(control_plane, key) as neon,
    ):
        project = await neon.projects.create(name="test", wait=True)
        assert await execute(uri_of(project), "SELECT 1") == 1


@pytest.mark.long
async def test_deleted_branches_are_not_missed(open_directory: Path) -> None:
    data = open_directory / "data.db"
    async with databases(data=data) as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        project_id = project.project.id
        child = await neon.branches.create(project_id, endpoints=[READ_WRITE], wait=True)
        await neon.branches.delete(project_id, child.branch.id, hard_delete=True, wait=True)
    await asyncio.to_thread(lose_index, directory_of(data))
    assert f"missing ({project.branch.id}): restore" in await refusal(data)


async def test_databases_that_an_older_data_file_never_had_are_kept_for_the_newer_one(
    open_directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    data, older, newer = (open_directory / name for name in ("data.db", "older.db", "newer.db"))
    async with LocalControlPlane(data=data, postgres=True) as control_plane:
        first_key = control_plane.api_key
    await asyncio.to_thread(shutil.copy2, data, older)
    async with (
        LocalControlPlane(data=data, postgres=True) as control_plane,
        client(control_plane, first_key) as neon,
    ):
        project = await neon.projects.create(name="test", wait=True)
        await execute(uri_of(project), "CREATE TABLE kept AS SELECT 42 AS answer", "SELECT 1")
        deleted = await neon.branches.create(project.project.id, wait=True)
        await neon.branches.delete(project.project.id, deleted.branch.id, wait=True)
    assert "never had" not in caplog.text
    await asyncio.to_thread(data.rename, newer)
    await asyncio.to_thread(older.rename, data)

    monkeypatch.setattr(watching, "FULL_EVERY", 1)
    clusters = directory_of(data) / "clusters"
    before = await asyncio.to_thread(lambda: set(clusters.glob("*/PG_VERSION")))
    assert len(before) == 2
    async with (
        LocalControlPlane(data=data, postgres=True) as control_plane,
        client(control_plane, first_key) as neon,
    ):
        assert "has never had 2 of the branches and snapshots" in caplog.text
        assert f"{clusters}/" in caplog.text
        other = await neon.projects.create(name="other", wait=True)  # changes the index
        gone = await neon.branches.create(other.project.id, wait=True)
        await neon.branches.delete(other.project.id, gone.branch.id, hard_delete=True, wait=True)

        async def is_swept() -> bool:  # with the branch that this data file had
            return len(await asyncio.to_thread(lambda: set(clusters.glob("*/PG_VERSION")))) == 3

        await until(is_swept)
    assert await asyncio.to_thread(lambda: set(clusters.glob("*/PG_VERSION"))) > before
    await asyncio.to_thread(newer.replace, data)
    assert await answer(data, Kept(project.project.id, first_key)) == 42


@pytest.mark.long
async def test_databases_of_tenants_in_memory_end_with_the_server(
    open_directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = open_directory / "data.db"
    async with databases(data=data) as (control_plane, neon):
        tenant = await control_plane.add_tenant()
        async with client(control_plane, tenant.api_key) as other:
            await neon.projects.create(name="a", wait=True)
            await other.projects.create(name="b", wait=True)
    async with LocalControlPlane(data=data, postgres=True):
        pass
    clusters = directory_of(data) / "clusters"
    assert len(await asyncio.to_thread(lambda: list(clusters.glob("*/PG_VERSION")))) == 1
    assert "never had" not in caplog.text


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize(
    "created", ["data.db", "data.db.d", "data.db.d/clusters", "data.db.d/owner"]
)
async def test_killed_first_start_is_followed_by_one_that_succeeds(
    open_directory: Path, created: str
) -> None:
    data = open_directory / "data.db"
    command = ("-m", "neonctl_local", "--postgres", "--port", "0", "--data", str(data))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    async def is_created() -> bool:
        return await asyncio.to_thread((open_directory / created).exists)

    try:
        await until(is_created)
    finally:
        process.kill()
        await process.wait()
    async with LocalControlPlane(data=data, postgres=True) as control_plane:
        key = await control_plane.create_api_key("later")
        async with client(control_plane, key) as neon:
            project = await neon.projects.create(name="test", wait=True)
            assert await execute(uri_of(project), "SELECT 1") == 1
