"""The two backends of the fixtures: a local control plane, and a project at Neon."""

import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING

from neonctl_async.client import NeonClient
from neonctl_async.config import PollPolicy, RateBudget, RetryPolicy
from neonctl_async.errors import NeonError
from neonctl_async.models.projects import Project
from neonctl_async.models.secret import Secret
from neonctl_async.testing.fake_clock import real_time_hooks
from neonctl_async.testing.plugin.background_loop import BackgroundLoop, run_background_loop
from neonctl_async.testing.plugin.branches import BranchFactory
from neonctl_async.testing.plugin.cloud import cloud_client, delete_branches
from neonctl_async.testing.plugin.control_plane import ControlPlane, TenantClient
from neonctl_async.testing.plugin.naming import LIFETIME_SECONDS, worker_prefix
from neonctl_async.testing.plugin.tenant_calls import TenantAdded

if TYPE_CHECKING:
    from pytest_neonctl_async.targets import CloudAccount, ServerURLs

_LOCAL_POLLING = PollPolicy(initial=0.005, maximum=0.25)
"""Frequent polls, because operations of the local control plane take milliseconds."""
_CLIENTS_PER_PROCESS = 2
"""The client of the fixtures and the client of the current test share the rate budget."""


@dataclass(frozen=True, repr=False)
class Backend(ABC):
    """Creates and deletes the resources of tests. ``neon`` is its client, on ``loop``."""

    loop: BackgroundLoop
    neon: NeonClient
    new_client: Callable[[], NeonClient]
    prefix: str

    @property
    def control_plane(self) -> ControlPlane | None:
        """The local control plane, or None at Neon."""
        return None

    @abstractmethod
    def project(self) -> Project:
        """Return the project of a test."""

    @contextmanager
    def branches(self, project_id: str) -> Generator[BranchFactory, None, None]:
        """Provide a factory of branches in a project. On exit, delete its branches."""
        ephemeral = partial(
            self.neon.branches.ephemeral,
            project_id,
            name_prefix=self.prefix,
            ttl_seconds=LIFETIME_SECONDS,
        )
        factory = BranchFactory(self.loop, ephemeral)
        try:
            yield factory
        finally:
            self._delete_all(factory)

    @abstractmethod
    def reset(self) -> None:
        """Remove the traces of a test before the next one."""

    @abstractmethod
    def _delete_all(self, factory: BranchFactory) -> None: ...


@dataclass(frozen=True, repr=False)
class LocalBackend(Backend):
    """A tenant of a local control plane. Each test has a new project, and a reset after it."""

    tenant: TenantClient
    local: ControlPlane

    @property
    def control_plane(self) -> ControlPlane:
        """The local control plane."""
        return self.local

    def project(self) -> Project:
        """Create a project."""
        return self.loop.call(self._create_project())

    async def _create_project(self) -> Project:
        org_id = self.local.org_id
        return (await self.neon.projects.create(name="test", org_id=org_id, wait=True)).project

    def reset(self) -> None:
        """Reset the tenant."""
        self.loop.call(self.tenant.call("reset", NoneType))

    def _delete_all(self, factory: BranchFactory) -> None:
        # A test may have revoked the key of this client. The reset deletes what remains.
        with suppress(NeonError):
            self.loop.call(self.tenant.call("clear_faults", NoneType))
            factory.delete_all()


@dataclass(frozen=True, repr=False)
class CloudBackend(Backend):
    """A project at Neon, which all tests share."""

    shared_project: Project

    def project(self) -> Project:
        """Return the shared project."""
        return self.shared_project

    def reset(self) -> None:
        """Do nothing: the project is shared, and its factory deletes the branches of the test."""

    def _delete_all(self, factory: BranchFactory) -> None:
        try:
            factory.delete_all()
        except NeonError:
            # The test may have protected the branches, or created children of them.
            self.loop.call(self._delete_with_descendants(factory.branch_ids))

    async def _delete_with_descendants(self, branch_ids: list[str]) -> None:
        deleted = delete_branches(
            self.neon, self.shared_project.id, lambda branch: branch.id in branch_ids
        )
        failures = [error async for _, error in deleted if error is not None]
        if failures:
            raise failures[0]


@contextmanager
def open_local_backend(urls: "ServerURLs", run_id: str) -> Generator[Backend, None, None]:
    """Open a backend that is a new tenant of the local control plane at ``urls``."""
    with (
        run_background_loop() as loop,
        loop.enter(_local_backend(loop, urls, worker_prefix(run_id))) as backend,
    ):
        yield backend


@contextmanager
def open_cloud_backend(account: "CloudAccount", run_id: str) -> Generator[Backend, None, None]:
    """Open a backend that uses the project of ``account``."""
    with (
        run_background_loop() as loop,
        loop.enter(_cloud_backend(loop, account, worker_prefix(run_id))) as backend,
    ):
        yield backend


@asynccontextmanager
async def _local_backend(
    loop: BackgroundLoop, urls: "ServerURLs", prefix: str
) -> AsyncGenerator[Backend]:
    control = NeonClient(
        Secret(urls.control_token),
        base_url=urls.control_url,
        retry=RetryPolicy.never(),
        budget=RateBudget.unlimited(),
    )
    async with control:
        added = await control.request("POST", "/tenants", type=TenantAdded)
        new_client = partial(
            NeonClient,
            Secret(added.api_key),
            base_url=urls.base_url,
            budget=RateBudget.unlimited(),
            polling=_LOCAL_POLLING,
            hooks=[real_time_hooks()],  # for tests on a fake clock
        )
        tenant = TenantClient(control, added.number)
        control_plane = ControlPlane(urls.base_url, added, tenant, loop)
        async with new_client() as neon:
            yield LocalBackend(loop, neon, new_client, prefix, tenant, control_plane)


@asynccontextmanager
async def _cloud_backend(
    loop: BackgroundLoop, account: "CloudAccount", prefix: str
) -> AsyncGenerator[Backend]:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    new_client = partial(cloud_client, account, shares=_CLIENTS_PER_PROCESS * workers)
    async with new_client() as neon:
        project = await neon.projects.get(account.project_id)
        yield CloudBackend(loop, neon, new_client, prefix, project)
