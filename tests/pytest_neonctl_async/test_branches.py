"""A branch factory creates branches for one test, and deletes them whatever the test does."""

import asyncio

import pytest

from neonctl_local import Fault
from pytest_neonctl_async import BranchFactory, ControlPlane
from pytest_neonctl_async.backend import Backend


def branch_count(backend: Backend, project_id: str) -> int:
    return backend.loop.call(backend.neon.branches.count(project_id))


def test_branches_and_their_children_are_deleted_on_exit(backend: Backend) -> None:
    project = backend.project()
    with backend.branches(project.id) as factory:
        parent = factory.create()
        child = factory.create(parent_id=parent.branch.id, endpoints=[])
        assert parent.branch.name.startswith("neonctl-pytest-0a0a0a0a-")
        assert child.branch.parent_id == parent.branch.id
        assert factory.branch_ids == [parent.branch.id, child.branch.id]
    assert branch_count(backend, project.id) == 1


def test_factory_refuses_to_create_after_its_test(backend: Backend) -> None:
    project = backend.project()
    with backend.branches(project.id) as factory:
        pass
    with pytest.raises(RuntimeError, match="the test of this branch factory is over"):
        factory.create()
    assert branch_count(backend, project.id) == 1


def test_cancelled_creation_leaves_no_branch(
    backend: Backend, neon_control_plane: ControlPlane
) -> None:
    async def cancel_creation(factory: BranchFactory) -> None:
        slow = Fault(route="POST /projects/{project_id}/branches", delay=0.1, when="after")
        await neon_control_plane.inject(slow)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await factory()

    project = backend.project()
    with backend.branches(project.id) as factory:
        asyncio.run(cancel_creation(factory))
    assert branch_count(backend, project.id) == 1
