"""The disk space of deleted branches: it is bounded, and a full disk takes it back."""

import asyncio
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from neonctl_async import NeonClient, NotFoundError, OperationFailedError
from neonctl_async.types import BranchCreated, ProjectCreated
from neonctl_local.server.databases import activity, opening
from tests.support.databases import READ_WRITE, databases, execute, uri_of
from tests.support.until import until

pytestmark = [pytest.mark.postgres, pytest.mark.usefixtures("require_postgres")]

MEBIBYTE = 1 << 20


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 160 MB. The test is skipped where it cannot be mounted."""
    if sys.platform != "linux":
        pytest.skip("needs the tmpfs of Linux")
    directory = Path(tempfile.mkdtemp(prefix="neonctl-test-"))
    directory.chmod(0o711)
    mount = ["mount", "-t", "tmpfs", "-o", "size=160m,mode=711", "none", str(directory)]
    try:
        mounted = subprocess.run(mount, check=False, capture_output=True, text=True)
        if mounted.returncode:
            pytest.skip(f"a tmpfs cannot be mounted: {mounted.stderr.strip()}")
        yield directory
        subprocess.run(["umount", str(directory)], check=True)
    finally:
        directory.rmdir()


@pytest.fixture(autouse=True)
def frequent_sweeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "FULL_EVERY", 1)


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
        assert created
        async for branch in neon.branches.list(project.project.id):
            if not branch.default:
                await neon.branches.delete(project.project.id, branch.id, wait=True)
        for _ in created:
            uri = uri_of(await create(neon, project))
            assert await execute(uri, "SELECT 1") == 1


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
