"""A full disk: reads succeed, and writes fail with 507 until there is space again."""

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from control_plane.tests.client import Client, Http, serve
from control_plane.tests.full_disk import fill_disk
from control_plane.tests.storage.limits import largest_file
from neonctl_local import Durations, LocalControlPlane, ManualClock
from neonctl_local.engine import accounts
from neonctl_local.errors import ApiError
from neonctl_local.server.routes import FAULTS_PATH
from neonctl_local.settings import Rules
from neonctl_local.storage import full_disk
from neonctl_local.storage.database import Database


async def fill(api: Client) -> list[str]:
    """Create projects until the disk is full. Return the ids of those that were created."""
    created: list[str] = []
    for _ in range(2000):
        reply = await api.send("POST", "/projects", {"project": {}})
        if reply.status == 507:
            assert "nothing was changed" in reply.message
            return created
        assert reply.status == 201, reply.content
        created.append(reply.json["project"]["id"])
    raise AssertionError("the disk was never full")


async def listed(api: Client) -> list[str]:
    """Return the ids of all projects, oldest first."""
    projects = (await api.get("/projects?limit=400"))["projects"]
    return [project["id"] for project in reversed(projects)]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
async def test_reads_succeed_and_writes_fail_until_there_is_space(tmp_path: Path) -> None:
    data, clock = tmp_path / "data.db", ManualClock()
    async with serve(data=data, clock=clock) as api:
        with largest_file(1 << 20):
            created = await fill(api)
            assert await listed(api) == created
            # The idle computes are due for their suspension, and the key was used again.
            clock.advance(3600)
            for project_id in created[:3]:
                assert (await api.get(f"/projects/{project_id}"))["project"]["id"] == project_id
                statuses = {op["status"] for op in await api.operations(project_id)}
                assert statuses == {"finished"}
            await api.expect_error(507, "is full", "POST", "/projects", {"project": {}})
            await api.expect_error(507, "'data.db'", "DELETE", f"/projects/{created[0]}")
            assert await listed(api) == created
            assert len(await api.get("/api_keys")) == 1
        assert (await api.send("POST", "/projects", {"project": {}})).status == 201
        assert "suspend_compute" in await api.actions(created[0])
    async with serve(api.key, data=data, clock=clock) as api:
        assert (await listed(api))[:-1] == created


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
async def test_either_all_failures_are_planned_or_none(tmp_path: Path) -> None:
    small, large = ({"action": "create_branch", "error": "x" * size} for size in (1, 900_000))
    async with (
        serve(data=tmp_path / "data.db") as api,
        Http(api.base_url.removesuffix("/api/v2"), api.key) as local,
    ):
        with largest_file(1 << 20):
            reply = await local.send("POST", FAULTS_PATH, {"failures": [small, large]})
        assert reply.status == 507
        assert await api.control_plane.planned_failures() == []


async def test_full_file_is_reported_like_a_full_disk(tmp_path: Path) -> None:
    database = Database(tmp_path / "data.db", ManualClock(), Rules(durations=Durations()))
    await database.open()
    try:
        await database.run(lambda tx: tx.execute("PRAGMA max_page_count = 1"))
        with pytest.raises(ApiError, match="database or disk is full") as error:
            for number in range(5000):
                await database.run(accounts.create_user, "a" * 900, f"{number}@example.com")
        assert error.value.status == 507
        await database.run(lambda tx: tx.execute("PRAGMA max_page_count = 100000"))
        await database.run(accounts.create_user, "a" * 900, "next@example.com")
    finally:
        await database.close()


def test_other_errors_of_sqlite_are_not_a_full_disk() -> None:
    with (
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(sqlite3.OperationalError) as error,
        full_disk.reported(None),
    ):
        connection.execute("SELECT * FROM missing")
    assert not full_disk.is_full(error.value)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
async def test_first_start_on_a_full_disk_fails_and_a_later_start_serves_reads(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data.db"
    with largest_file(1 << 14), pytest.raises(RuntimeError, match=r"data\.db: the disk is full"):
        await LocalControlPlane(data=data).start()
    async with serve(data=data) as api:
        created = (await api.project())["project"]["id"]
    with largest_file(1 << 15):
        async with serve(api.key, data=data) as api:
            assert await listed(api) == [created]
            await api.expect_error(507, "is full", "POST", "/projects", {"project": {}})


async def create_objects(api: Client) -> list[str]:
    """Create objects of each kind. Return their paths, in the order of their deletion."""
    project = await api.project()
    path = f"/projects/{project['project']['id']}"
    branch = f"{path}/branches/{project['branch']['id']}"
    database = {"database": {"name": "more", "owner_name": "neondb_owner"}}
    await api.request("POST", f"{branch}/databases", database)
    await api.request("POST", f"{branch}/roles", {"role": {"name": "more"}})
    snapshot = (await api.request("POST", f"{branch}/snapshot"))["snapshot"]["id"]
    child = (await api.request("POST", f"{path}/branches", {}))["branch"]["id"]
    return [
        f"{branch}/databases/more",
        f"{branch}/roles/more",
        f"{path}/snapshots/{snapshot}",
        f"{path}/branches/{child}?hard_delete=true",
        path,
    ]


def space_of(file: Path) -> int:
    """Return the disk space of a file in bytes, also of a sparse one."""
    return file.stat().st_blocks * 512


@pytest.mark.process
async def test_deletions_spend_the_reserve_of_a_full_disk(
    small_disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data, reserved, rest = (small_disk / name for name in ("data.db", "data.db.reserve", "rest"))
    async with serve(data=data, durations=Durations(default=0)) as api:
        paths, others = await create_objects(api), await create_objects(api)
        assert await asyncio.to_thread(space_of, reserved) == full_disk.RESERVE_SIZE
        await asyncio.to_thread(fill_disk, rest)
        for _ in range(3):
            await api.expect_error(507, "is full", "POST", "/projects", {"project": {}})
        for path in paths:
            assert (await api.send("DELETE", path)).status in {200, 202, 204}, path
            await asyncio.to_thread(fill_disk, rest)
            await api.expect_error(507, "is full", "POST", "/projects", {"project": {}})
    async with serve(api.key, data=data, durations=Durations(default=0)) as api:
        await asyncio.to_thread(fill_disk, rest)
        for path in others:
            assert (await api.send("DELETE", path)).status in {200, 202, 204}, path
        await asyncio.to_thread(rest.unlink)
        await api.project()
        assert await asyncio.to_thread(space_of, reserved) == full_disk.RESERVE_SIZE
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 2, caplog.text


def test_reserve_leaves_space_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = full_disk.Reserve(tmp_path / "data.db")
    free = [2 * full_disk.RESERVE_SIZE - 1]

    def disk_usage(_directory: Path) -> SimpleNamespace:
        return SimpleNamespace(free=free[0])

    monkeypatch.setattr("shutil.disk_usage", disk_usage)
    assert (kept.fill(), kept.spend()) == (False, False)
    free[0] += 1
    assert kept.fill()
    steps = 0
    while kept.spend():
        steps += 1
    assert steps == 4
    kept.take_back(full_disk.RESERVE_SIZE)
    free[0] = full_disk.RESERVE_SIZE - 1
    assert (kept.size(), kept.fill()) == (full_disk.RESERVE_SIZE, False), "the disk is still full"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes of files")
def test_reserve_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    assert full_disk.Reserve(tmp_path / "data.db").fill()
    assert (tmp_path / "data.db.reserve").stat().st_mode & 0o777 == 0o600
