"""Both meanings of ``failed`` on the local control plane: final, and before a hidden retry."""

import pytest

from neonctl_async import NeonClient, OperationFailedError, PollPolicy
from neonctl_async.types import BranchCreated, EndpointSpec
from neonctl_local import Durations, LocalControlPlane
from tests.support.clock import now

pytestmark = pytest.mark.virtual_time

AT_ONCE = pytest.mark.control_plane(durations=Durations(default=0))
COMPUTE = [EndpointSpec(type="read_write")]


@pytest.fixture
async def project_id(neon: NeonClient) -> str:
    return (await neon.projects.create(wait=True)).project.id


def client_of(control_plane: LocalControlPlane, grace: float) -> NeonClient:
    return NeonClient(
        control_plane.api_key,
        base_url=control_plane.base_url,
        polling=PollPolicy(failed_grace=grace),
    )


@pytest.mark.parametrize("grace", [0.0, 1.0, 7.0])
async def test_final_failure_is_reported_after_the_grace(
    control_plane: LocalControlPlane, project_id: str, grace: float
) -> None:
    await control_plane.fail_next("create_branch")
    started = now()
    async with client_of(control_plane, grace) as neon:
        with pytest.raises(OperationFailedError):
            await neon.branches.create(project_id, wait=True)
    assert grace <= now() - started <= grace + 0.5


@pytest.mark.parametrize("endpoints", [[], COMPUTE])
async def test_hidden_retry_within_the_grace_is_a_success(
    control_plane: LocalControlPlane,
    neon: NeonClient,
    project_id: str,
    endpoints: list[EndpointSpec],
) -> None:
    await control_plane.fail_next("create_branch", retry_after=0.9, show_retry_at=False)
    created = await neon.branches.create(project_id, endpoints=endpoints, wait=True)
    assert {operation.status for operation in created.operations} == {"finished"}
    assert created.operations[0].failures_count == 1


async def test_hidden_retry_after_the_grace_is_a_failure(
    control_plane: LocalControlPlane, project_id: str
) -> None:
    for grace, is_success in ((2.0, False), (12.0, True)):
        await control_plane.fail_next("create_branch", retry_after=10, show_retry_at=False)
        async with client_of(control_plane, grace) as neon:
            [operation] = (await neon.branches.create(project_id)).operations
            [done] = await neon.operations.wait(operation, raise_on_failure=False)
            assert (done.status == "finished") is is_success
            await neon.operations.wait_for_project(project_id)


@AT_ONCE
@pytest.mark.parametrize("late", [False, True])
async def test_announced_failure_is_polled_again(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str, *, late: bool
) -> None:
    await control_plane.fail_next("create_branch", retry_after=0.5, show_retry_at=False)
    created = await neon.branches.create(project_id, wait=not late)
    assert isinstance(created, BranchCreated)
    [done] = await neon.operations.wait(created)
    assert done.status == "finished"


async def test_wait_for_a_project_includes_a_hidden_retry(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await control_plane.fail_next("create_branch", retry_after=0.9, show_retry_at=False)
    await neon.branches.create(project_id)
    [done] = await neon.operations.wait_for_project(project_id)
    assert (done.status, done.failures_count) == ("finished", 1)


async def test_fail_fast_and_as_completed_include_a_hidden_retry(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await control_plane.fail_next("create_branch", times=2, retry_after=0.9, show_retry_at=False)
    created = [await neon.branches.create(project_id, name="first")]
    await neon.operations.wait(created, fail_fast=True)
    second = await neon.branches.create(project_id, name="second")
    seen = [operation.status async for operation in neon.operations.as_completed(second)]
    assert seen == ["finished"]
