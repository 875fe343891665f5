"""A test suite in which each test gets its own branch, which is deleted after the test.

    pytest examples/pytest_suite
    pytest examples/pytest_suite --neon-cloud    # on Neon

neonctl-async provides the fixtures; pytest-asyncio or anyio runs the tests. By default, they use a
local control plane and need no key. With --neon-cloud, they use the project NEON_PROJECT_ID and the
key NEON_API_KEY. On Neon, tests that inject faults are skipped.
"""

import asyncio

import pytest
from migrations import databases_of, migrate

from neonctl_async import NeonClient, OperationFailedError
from neonctl_async.types import BranchCreated
from neonctl_local import Fault
from pytest_neonctl_async import BranchFactory, ControlPlane

pytestmark = pytest.mark.asyncio


async def test_migration_creates_its_database(
    neon_client: NeonClient, neon_branch: BranchCreated
) -> None:
    assert "billing" not in await databases_of(neon_client, neon_branch)
    await migrate(neon_client, neon_branch)
    assert "billing" in await databases_of(neon_client, neon_branch)


async def test_tests_are_isolated_from_each_other(
    neon_client: NeonClient, neon_branch: BranchCreated
) -> None:
    await migrate(neon_client, neon_branch)  # raises a 409 if the database exists


async def test_branch_contains_the_databases_of_its_parent(
    neon_client: NeonClient, neon_branch_factory: BranchFactory
) -> None:
    production = await neon_branch_factory()
    await migrate(neon_client, production)
    preview = await neon_branch_factory(parent_id=production.branch.id)
    assert "billing" in await databases_of(neon_client, preview)


async def test_branches_are_migrated_concurrently_and_independently(
    neon_client: NeonClient, neon_branch_factory: BranchFactory
) -> None:
    one, other, untouched = await asyncio.gather(*(neon_branch_factory() for _ in range(3)))
    await asyncio.gather(migrate(neon_client, one), migrate(neon_client, other))
    assert "billing" in await databases_of(neon_client, other)
    assert "billing" not in await databases_of(neon_client, untouched)


async def test_failed_migration_raises_the_error_of_its_operation(
    neon_client: NeonClient, neon_branch: BranchCreated, neon_control_plane: ControlPlane
) -> None:
    await neon_control_plane.fail_next("apply_config", error="out of storage")
    with pytest.raises(OperationFailedError, match="out of storage"):
        await migrate(neon_client, neon_branch)


async def test_migration_retries_while_the_api_is_unavailable(
    neon_client: NeonClient, neon_branch: BranchCreated, neon_control_plane: ControlPlane
) -> None:
    await neon_control_plane.inject(Fault(status=503, times=2))
    await migrate(neon_client, neon_branch)
    assert "billing" in await databases_of(neon_client, neon_branch)
