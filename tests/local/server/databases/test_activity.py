"""The suspension of computes after their idle time, and what branches show of their data."""

import asyncio

import asyncpg
import pytest

from neonctl_async.local import BackgroundIntervals
from tests.local.server.databases.conftest import Plane
from tests.support.databases import execute

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.control_plane(intervals=BackgroundIntervals(suspend_after=0.3)),
]


async def suspended(plane: Plane) -> None:
    endpoint_id = plane.project.endpoints[0].id
    await plane.neon.endpoints.wait_for(plane.project_id, endpoint_id, "idle", timeout=10)


async def test_idle_session_ends_when_its_compute_is_suspended(plane: Plane) -> None:
    connection = await asyncpg.connect(plane.uri)
    ended = asyncio.Event()
    connection.add_termination_listener(lambda _: ended.set())
    await suspended(plane)
    await ended.wait()
    assert await execute(plane.uri, "SELECT 1") == 1


async def test_open_transaction_keeps_a_compute_awake(plane: Plane) -> None:
    connection = await asyncpg.connect(plane.uri)
    try:
        async with connection.transaction():
            await connection.execute("SELECT 1")
            await asyncio.sleep(1.5)
            assert await connection.fetchval("SELECT 1") == 1
    finally:
        await connection.close()
    await suspended(plane)


async def test_branch_shows_the_size_of_its_data(plane: Plane) -> None:
    await execute(plane.uri, "CREATE TABLE t AS SELECT generate_series(1, 10000)", "SELECT 1")
    await suspended(plane)
    branch = await plane.neon.branches.get(plane.project_id, plane.root_id)
    assert branch.logical_size is not None
    assert branch.logical_size > 1_000_000
