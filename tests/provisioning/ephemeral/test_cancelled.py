"""No cancellation leaves an ephemeral branch behind."""

import asyncio

import anyio
import pytest

from neonctl_async import (
    NeonClient,
)
from neonctl_async.local import Fault, InjectedFault, LocalControlPlane
from neonctl_async.local.server.faults import When
from tests.provisioning.ephemeral.blocks import CREATE, DELETE, enter, names, sent
from tests.support.until import until


async def test_a_cancelled_block_is_cleaned_up(neon: NeonClient, project_id: str) -> None:
    within = asyncio.Event()

    async def use() -> None:
        async with neon.branches.ephemeral(project_id):
            within.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(use())
    await within.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(neon, project_id) == ["main"]


@pytest.fixture
def busy(control_plane: LocalControlPlane) -> InjectedFault:
    """A platform that is busy as the branch is to be deleted, for a moment."""
    return control_plane.inject(
        Fault(route=DELETE, status=503, times=1, headers={"Retry-After": "0.2"})
    )


async def test_a_timeout_does_not_cut_the_deletion_short(
    neon: NeonClient, project_id: str, busy: InjectedFault
) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as timeout:
            async with neon.branches.ephemeral(project_id):
                timeout.reschedule(asyncio.get_running_loop().time() + 0.1)
    assert busy.fired == 1
    assert await names(neon, project_id) == ["main"]


async def test_a_sibling_that_fails_does_not_cut_the_deletion_short(
    neon: NeonClient, project_id: str, busy: InjectedFault
) -> None:
    async def fail() -> None:
        await until(lambda: busy.fired == 1)
        raise RuntimeError("mine")

    with pytest.raises(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(enter(neon, project_id))
    assert await names(neon, project_id) == ["main"]


async def test_cancelled_again_and_again_it_is_deleted_all_the_same(
    neon: NeonClient, project_id: str, busy: InjectedFault
) -> None:
    task = asyncio.create_task(enter(neon, project_id))
    await until(lambda: busy.fired == 1)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(neon, project_id) == ["main"]


async def test_a_scope_that_is_cancelled_does_not_cut_the_deletion_short(
    neon: NeonClient, project_id: str, busy: InjectedFault
) -> None:
    with anyio.CancelScope() as scope:
        async with neon.branches.ephemeral(project_id):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert busy.fired == 1
    assert await names(neon, project_id) == ["main"]


async def test_cancelled_before_it_is_ready_it_is_deleted(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await control_plane.fail_next("create_branch", retry_after=3600)
    task = asyncio.create_task(enter(neon, project_id))
    await until(lambda: control_plane.requests[-1].path.endswith("/operations"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(neon, project_id) == ["main"]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_cancelled_while_it_is_created_it_is_deleted(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str, when: When
) -> None:
    slow = control_plane.inject(Fault(route=CREATE, delay=0.2, when=when))
    task = asyncio.create_task(enter(neon, project_id))
    await until(lambda: slow.fired == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sent(control_plane, "DELETE") == 1
    assert await names(neon, project_id) == ["main"]


async def test_a_creation_refused_to_one_who_was_cancelled_leaves_nothing_to_do(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    slow = control_plane.inject(Fault(route=CREATE, delay=0.1, status=409))
    task = asyncio.create_task(enter(neon, project_id))
    await until(lambda: slow.fired == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (sent(control_plane, "DELETE"), sent(control_plane, "GET")) == (0, 0)
