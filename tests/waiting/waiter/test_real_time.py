"""Waits in real time, on the loop that ``--loop`` selects."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from neonctl_async import NeonClient, OperationFailedError, OperationRef, WaitTimeoutError
from neonctl_local import Durations, LocalControlPlane

SECONDS = 0.05


@pytest.fixture
async def control_plane() -> AsyncIterator[LocalControlPlane]:
    durations = Durations(default=SECONDS, by_action={"suspend_compute": 1000.0})
    async with LocalControlPlane(durations=durations) as control_plane:
        yield control_plane


@pytest.fixture
async def neon(control_plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
        yield neon


async def start_endless_operation(neon: NeonClient) -> OperationRef:
    created = await neon.projects.create(wait=True)
    suspended = await neon.endpoints.suspend(created.project.id, created.endpoints[0].id)
    return suspended.operations[0].ref


async def test_many_waits_finish(neon: NeonClient) -> None:
    created = await asyncio.gather(*(neon.projects.create(wait=True) for _ in range(20)))
    statuses = {operation.status for one in created for operation in one.operations}
    assert statuses == {"finished"}


async def test_as_completed_yields_each_operation_once(neon: NeonClient) -> None:
    created = await asyncio.gather(*(neon.projects.create() for _ in range(5)))
    done = [operation.id async for operation in neon.operations.as_completed(created)]
    assert sorted(done) == sorted(operation.id for one in created for operation in one.operations)


async def test_failure_is_raised(control_plane: LocalControlPlane, neon: NeonClient) -> None:
    await control_plane.fail_next("create_timeline")
    with pytest.raises(OperationFailedError):
        await neon.projects.create(wait=True)


async def test_timeout_of_one_wait_leaves_others_running(neon: NeonClient) -> None:
    pending = await start_endless_operation(neon)
    other = asyncio.create_task(neon.projects.create(wait=True))
    with pytest.raises(WaitTimeoutError) as error:
        await neon.operations.wait(pending, timeout=SECONDS)
    assert [operation.id for operation in error.value.pending] == [pending.id]
    assert {operation.status for operation in (await other).operations} == {"finished"}


async def test_cancelled_wait_leaves_no_task(neon: NeonClient) -> None:
    pending = await start_endless_operation(neon)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(SECONDS):
            await neon.operations.wait(pending)
