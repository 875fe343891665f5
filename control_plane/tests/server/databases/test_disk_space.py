"""The disk space of deleted branches: it is bounded, and a full disk takes it back."""

import asyncio
import logging
from pathlib import Path

import pytest
from psycopg import AsyncConnection, OperationalError
from psycopg.errors import DiskFull

from control_plane.tests.full_disk import fill_disk
from neonctl_async import NeonClient, NotFoundError, OperationFailedError
from neonctl_async.types import BranchCreated, ProjectCreated
from neonctl_local import LocalControlPlane
from neonctl_local.server.databases import opening, watching
from tests.support.databases import READ_WRITE, client, databases, execute, uri_of
from tests.support.until import until

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]

MEBIBYTE = 1 << 20


@pytest.fixture(autouse=True)
def frequent_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "FULL_EVERY", 1)


async def create(neon: NeonClient, project: ProjectCreated) -> BranchCreated:
    return await neon.branches.create(project.project.id, endpoints=[READ_WRITE], wait=True)


async def cluster_count(data: Path) -> int:
    directories = await asyncio.to_thread(lambda: list(data.glob("*/clusters/*/PG_VERSION")))
    return len(directories)


async def test_new_branch_takes_the_space_of_deleted_ones_on_a_full_disk(small_disk: Path) -> None:
    async with databases(data=small_disk / "data.db") as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        created: list[BranchCreated] = []
        with pytest.raises(OperationFailedError, match="Delete branches that you do not need"):
            for _ in range(10):
                created.append(await create(neon, project))  # noqa: PERF401 - the list is used after the error
        assert len(created) > 1
        async for branch in neon.branches.list(project.project.id):
            if not branch.default:
                await neon.branches.delete(project.project.id, branch.id, wait=True)
        for _ in created[1:]:  # the reserve, which the full disk has used up, is filled again
            uri = uri_of(await create(neon, project))
            assert await execute(uri, "SELECT 1") == 1


@pytest.mark.long
@pytest.mark.parametrize(("pg_version", "history"), [(18, True), (15, True), (15, False)])
async def test_branch_that_filled_the_disk_is_deleted_without_many_warnings(
    small_disk: Path,
    installed: frozenset[int],
    pg_version: int,
    caplog: pytest.LogCaptureFixture,
    *,
    history: bool,
) -> None:
    if pg_version not in installed:
        pytest.skip(f"Postgres {pg_version} is not installed")
    async with databases(data=small_disk / "data.db", history=history) as (_, neon):
        project = await neon.projects.create(name="test", pg_version=pg_version, wait=True)
        branch = await create(neon, project)
        with pytest.raises((DiskFull, OperationalError)):
            await fill_with_sql(uri_of(branch))
        await asyncio.to_thread(fill_disk, small_disk / "rest")
        await asyncio.sleep(5 * watching.ACTIVITY_INTERVAL)  # for checks that fail
        await asyncio.to_thread(fill_disk, small_disk / "rest")  # a server that ends frees space
        await delete_for_good(neon, branch)
        assert await execute(uri_of(await create(neon, project)), "SELECT 1") == 1
    check_log(caplog, most=2)  # the server that ended freed space in between


@pytest.mark.long
async def test_control_plane_starts_on_a_full_disk_and_deletes_a_branch(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data, rest = small_disk / "data.db", small_disk / "rest"
    async with databases(data=data) as (control_plane, neon):
        key = control_plane.api_key
        project = await neon.projects.create(name="test", wait=True)
        branch = await create(neon, project)
    await asyncio.to_thread(fill_disk, rest)
    async with (
        LocalControlPlane(data=data, postgres=True) as control_plane,
        client(control_plane, key) as neon,
    ):
        await control_plane.create_api_key("of the command")
        await asyncio.to_thread(fill_disk, rest)
        await delete_for_good(neon, branch)
        assert await cluster_count(small_disk) == 1
    check_log(caplog, most=1)


async def delete_for_good(neon: NeonClient, created: BranchCreated) -> None:
    branch = created.branch
    await neon.branches.delete(branch.project_id, branch.id, hard_delete=True, wait=True)


def check_log(caplog: pytest.LogCaptureFixture, most: int) -> None:
    """Check that the log has a warning each time the disk becomes full, and no traceback."""
    assert not [record for record in caplog.records if record.exc_info], caplog.text
    full = [text for text in map(logging.LogRecord.getMessage, caplog.records) if "is full" in text]
    assert 1 <= len(full) <= most, full


async def fill_with_sql(uri: str) -> None:
    """Insert rows until there is an error."""
    rows = "repeat(md5(random()::text), 30) FROM generate_series(1, 1000)"
    async with await AsyncConnection.connect(uri, autocommit=True) as connection:
        await connection.execute("CREATE TABLE filling (text text)")
        for _ in range(1000):
            await connection.execute(f"INSERT INTO filling SELECT {rows}")


async def test_deleted_branches_beyond_the_bound_are_deleted_for_good_oldest_first(
    monkeypatch: pytest.MonkeyPatch, open_directory: Path
) -> None:
    monkeypatch.setattr(opening, "KEPT_BYTES", 80 * MEBIBYTE)  # two clusters of less than 40 MB
    async with databases(data=open_directory / "data.db") as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        branches = [(await create(neon, project)).branch.id for _ in range(4)]
        for branch_id in branches:
            await neon.branches.delete(project.project.id, branch_id, wait=True)

        async def is_bounded() -> bool:
            return await cluster_count(open_directory) <= 3

        await until(is_bounded)
        with pytest.raises(NotFoundError):
            await neon.branches.recover(project.project.id, branches[0])
        recovered = await neon.branches.recover(project.project.id, branches[-1])
        assert recovered.branch.id == branches[-1]


async def test_deleted_project_beyond_the_bound_cannot_be_recovered(
    monkeypatch: pytest.MonkeyPatch, open_directory: Path
) -> None:
    async with databases(data=open_directory / "data.db") as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        assert await cluster_count(open_directory) == 1
        await neon.projects.delete(project.project.id)
        monkeypatch.setattr(opening, "KEPT_BYTES", 0)

        async def is_empty() -> bool:
            return await cluster_count(open_directory) == 0

        await until(is_empty)
        with pytest.raises(NotFoundError):
            await neon.projects.recover(project.project.id)


async def test_child_of_a_branch_that_is_deleted_for_good_is_deleted_as_well(
    open_directory: Path,
) -> None:
    async with databases(data=open_directory / "data.db") as (_, neon):
        project = await neon.projects.create(name="test", wait=True)
        parent = await create(neon, project)
        child = await neon.branches.create(
            project.project.id, parent_id=parent.branch.id, wait=True
        )
        await neon.branches.delete(project.project.id, child.branch.id, wait=True)
        await neon.branches.delete(
            project.project.id, parent.branch.id, hard_delete=True, wait=True
        )

        async def is_one() -> bool:
            return await cluster_count(open_directory) == 1

        await until(is_one)
