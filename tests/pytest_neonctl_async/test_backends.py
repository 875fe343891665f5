"""The backends of the fixtures, without pytest between them and their servers."""

import pytest

from neonctl_async import APIError
from neonctl_async.types import BranchCreated
from neonctl_local import Fault
from pytest_neonctl_async import ControlPlane
from pytest_neonctl_async.backend import Backend
from pytest_neonctl_async.cloud import CloudAccount, open_cloud
from pytest_neonctl_async.local import open_local
from pytest_neonctl_async.server_process import ServerURLs
from tests.pytest_neonctl_async.conftest import NO_MIGRATIONS


def branch_count(backend: Backend, project_id: str) -> int:
    return backend.loop.call(backend.neon.branches.count(project_id))


def project_ids(backend: Backend) -> list[str]:
    projects = backend.loop.call(backend.neon.projects.list().collect())
    return [project.id for project in projects]


def test_faults_of_a_test_do_not_prevent_the_deletion_of_its_branches(
    backend: Backend, neon_control_plane: ControlPlane
) -> None:
    project = backend.project()
    with backend.branches(project.id) as factory:
        factory.create()
        backend.loop.call(neon_control_plane.inject(Fault(status=503)))
    assert branch_count(backend, project.id) == 1


def test_reset_of_a_tenant_does_not_change_other_tenants(urls: ServerURLs) -> None:
    with (
        open_local(urls, "a", NO_MIGRATIONS, postgres=False) as first,
        open_local(urls, "b", NO_MIGRATIONS, postgres=False) as second,
    ):
        first.project()
        project = second.project()
        first.reset()
        assert project_ids(first) == []
        assert project_ids(second) == [project.id]


def test_protected_branches_and_children_are_deleted_at_neon(account: CloudAccount) -> None:
    with open_cloud(account, "0a0a0a0a", NO_MIGRATIONS) as backend:
        assert backend.project().id == account.project_id
        assert backend.control_plane is None
        backend.reset()
        with backend.branches(account.project_id) as factory:
            backend.loop.call(protect_and_add_child(backend, factory.create()))
        assert branch_count(backend, account.project_id) == 1


async def protect_and_add_child(backend: Backend, created: BranchCreated) -> None:
    project_id, branch_id = created.branch.project_id, created.branch.id
    branches = backend.neon.branches
    await branches.update(project_id, branch_id, expires_at=None, wait=True)
    await branches.create(project_id, parent_id=branch_id, name="child", wait=True)
    await branches.update(project_id, branch_id, protected=True, wait=True)


def test_branch_that_cannot_be_deleted_at_neon_raises_the_error(account: CloudAccount) -> None:
    with open_cloud(account, "0a0a0a0a", NO_MIGRATIONS) as backend:
        with pytest.raises(APIError, match="default"):
            with backend.branches(account.project_id) as factory:
                branch_id = factory.create().branch.id
                branches = backend.neon.branches
                backend.loop.call(branches.set_as_default(account.project_id, branch_id, wait=True))
