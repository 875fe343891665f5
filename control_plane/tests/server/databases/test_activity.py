"""The suspension of computes after their idle time, and what branches show of their data."""

import asyncio
from typing import Any

import pytest
from psycopg import AsyncConnection
from psycopg.errors import AdminShutdown

from control_plane.tests.server.conftest import Plane
from neonctl_local import BackgroundIntervals
from neonctl_local.engine import databases
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.server.databases import watching
from neonctl_local.server.tenants.cluster_work import ClusterWork
from neonctl_local.storage.transactions import Transaction
from tests.support.databases import READ_WRITE, execute
from tests.support.until import until

suspended_soon = pytest.mark.control_plane(intervals=BackgroundIntervals(suspend_after=0.3))


async def suspended(plane: Plane) -> None:
    endpoint_id = plane.project.endpoints[0].id
    await plane.neon.endpoints.wait_for(plane.project_id, endpoint_id, "idle")


@pytest.mark.fact("connections-7", "connections-17")
@pytest.mark.postgres
@suspended_soon
async def test_idle_session_ends_when_its_compute_is_suspended(plane: Plane) -> None:
    connection = await AsyncConnection.connect(plane.uri)
    await suspended(plane)
    with pytest.raises(AdminShutdown, match="due to administrator command"):
        await connection.execute("SELECT 1")
    await connection.close()
    assert await execute(plane.uri, "SELECT 1") == 1


@pytest.mark.fact("connections-17")
@pytest.mark.postgres
@pytest.mark.control_plane(intervals=BackgroundIntervals(suspend_after=1))
async def test_open_transaction_keeps_a_compute_awake(plane: Plane) -> None:
    async with await AsyncConnection.connect(plane.uri) as connection:
        await connection.execute("SELECT 1")  # under load, more than 0.3 s after the start
        await asyncio.sleep(2)
        await connection.execute("SELECT 1")
    await suspended(plane)


@pytest.mark.postgres
@suspended_soon
async def test_slow_check_suspends_no_compute_that_it_found_busy(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_activity = ClusterWork.note_activity

    async def slow(work: ClusterWork, branch_id: str) -> None:
        await note_activity(work, branch_id)
        await asyncio.sleep(0.4)

    async with await AsyncConnection.connect(plane.uri) as connection:
        await connection.execute("SELECT 1")
        monkeypatch.setattr(ClusterWork, "note_activity", slow)
        await asyncio.sleep(1.5)
        await connection.execute("SELECT 1")
    await suspended(plane)


@pytest.mark.postgres
@suspended_soon
async def test_failed_check_of_a_server_does_not_keep_other_computes_awake(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await plane.neon.branches.create(plane.project_id, endpoints=[READ_WRITE], wait=True)
    note_activity = ClusterWork.note_activity

    async def fail(work: ClusterWork, branch_id: str) -> None:
        if branch_id == other.branch.id:
            raise OSError("too many open files")
        await note_activity(work, branch_id)

    monkeypatch.setattr(ClusterWork, "note_activity", fail)
    assert await execute(plane.uri, "SELECT 1") == 1  # starts the compute, if it is suspended
    await suspended(plane)


@pytest.mark.postgres
async def test_server_that_comes_into_use_during_a_sweep_is_not_stopped(
    plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    unused_servers = databases.unused_servers

    def late(tx: Transaction, ids: set[str]) -> set[str]:
        nonlocal reads
        reads += 1
        return ids if reads == 1 else unused_servers(tx, ids)

    async with await AsyncConnection.connect(plane.uri) as connection:
        monkeypatch.setattr(databases, "unused_servers", late)
        monkeypatch.setattr(watching, "FULL_EVERY", 1)
        await until(lambda: reads > 2)
        await connection.execute("SELECT 1")


@pytest.mark.postgres
@suspended_soon
async def test_branch_shows_the_size_of_its_data(plane: Plane) -> None:
    await execute(plane.uri, "CREATE TABLE t AS SELECT generate_series(1, 10000)", "SELECT 1")
    await suspended(plane)
    branch = await plane.neon.branches.get(plane.project_id, plane.root_id)
    assert branch.logical_size is not None
    assert branch.logical_size > 1_000_000


async def test_failed_check_is_logged_and_repeated(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "ACTIVITY_INTERVAL", 0.001)
    sweeps = 0

    async def sweep() -> None:
        nonlocal sweeps
        sweeps += 1
        if sweeps == 1:
            raise ClusterError("a server did not stop")

    watch = asyncio.create_task(watching.ActivityWatch([], sweep).run())
    await until(lambda: sweeps > 1)
    watch.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watch
    assert "a server did not stop" in caplog.text


class Checked:
    """The state of a tenant with two idle servers, whose checks wait for those of all others."""

    def __init__(self, barrier: asyncio.Barrier) -> None:
        self.database = self.databases = self
        self.barrier = barrier
        self.checked: list[str] = []

    def now(self) -> int:
        return 0

    async def read(self, _function: object) -> dict[str, int | None]:
        return {"br-one": 0, "br-two": 0, "br-never": None}

    async def run(self, _function: object, _checked_at: int) -> bool:
        return False

    async def note_activity(self, branch_id: str) -> None:
        await self.barrier.wait()
        self.checked.append(branch_id)


async def test_slow_check_of_one_server_does_not_delay_that_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watching, "ACTIVITY_INTERVAL", 0.001)
    barrier = asyncio.Barrier(4)
    states: list[Any] = [Checked(barrier), Checked(barrier)]
    watch = asyncio.create_task(watching.ActivityWatch(states, _nothing).run())
    await until(lambda: all({"br-one", "br-two"} <= {*state.checked} for state in states))
    watch.cancel()
    await asyncio.wait([watch])


async def _nothing() -> None:
    pass
