"""A test suite in which each test has a branch of its own, gone when the test is.

    pytest examples/pytest_suite
    pytest examples/pytest_suite --neon-cloud    # on the platform

The fixtures come with neonctl-async; pytest-asyncio or anyio runs the tests. Offline, they run on a
local control plane, and no key is needed. With --neon-cloud they run in the project NEON_PROJECT_ID
with the key NEON_API_KEY, but for those that plan faults: they are skipped there.
"""

import asyncio

import pytest
from migrations import databases_of, migrate

from neonctl_async import NeonClient, OperationFailedError
from neonctl_async.local import Fault
from neonctl_async.testing import BranchFactory, ControlPlane
from neonctl_async.types import BranchCreated

pytestmark = pytest.mark.asyncio


async def test_a_migration_makes_its_database(
    neon_client: NeonClient, neon_branch: BranchCreated
) -> None:
    assert "billing" not in await databases_of(neon_client, neon_branch)
    await migrate(neon_client, neon_branch)
    assert "billing" in await databases_of(neon_client, neon_branch)


async def test_no_test_finds_what_another_has_left(
    neon_client: NeonClient, neon_branch: BranchCreated
) -> None:
    await migrate(neon_client, neon_branch)  # 409 if the billing were there already


async def test_a_branch_has_what_its_parent_had(
    neon_client: NeonClient, neon_branch_factory: BranchFactory
) -> None:
    production = await neon_branch_factory()
    await migrate(neon_client, production)
    preview = await neon_branch_factory(parent_id=production.branch.id)
    assert "billing" in await databases_of(neon_client, preview)


async def test_branches_are_migrated_at_once_and_each_for_itself(
    neon_client: NeonClient, neon_branch_factory: BranchFactory
) -> None:
    one, other, untouched = await asyncio.gather(*(neon_branch_factory() for _ in range(3)))
    await asyncio.gather(migrate(neon_client, one), migrate(neon_client, other))
    assert "billing" in await databases_of(neon_client, other)
    assert "billing" not in await databases_of(neon_client, untouched)


async def test_a_migration_that_fails_says_so(
    neon_client: NeonClient, neon_branch: BranchCreated, neon_control_plane: ControlPlane
) -> None:
    await neon_control_plane.fail_next("apply_config", error="out of storage")
    with pytest.raises(OperationFailedError, match="out of storage"):
        await migrate(neon_client, neon_branch)


async def test_a_migration_outlasts_a_busy_platform(
    neon_client: NeonClient, neon_branch: BranchCreated, neon_control_plane: ControlPlane
) -> None:
    await neon_control_plane.inject(Fault(status=503, times=2))
    await migrate(neon_client, neon_branch)
    assert "billing" in await databases_of(neon_client, neon_branch)
