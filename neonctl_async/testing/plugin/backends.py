"""What the fixtures of one process work with: clients, and an event loop in a thread."""

import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from functools import partial
from types import NoneType

from neonctl_async.client import NeonClient
from neonctl_async.config import PollPolicy, RateBudget, RetryPolicy
from neonctl_async.errors import NeonError
from neonctl_async.models.branches import Branch
from neonctl_async.models.projects import Project
from neonctl_async.models.secret import Secret
from neonctl_async.testing.fake_clock import real_time_hooks
from neonctl_async.testing.plugin import commands
from neonctl_async.testing.plugin.addresses import CloudAccount, LocalServer, cloud_client
from neonctl_async.testing.plugin.background_loop import BackgroundLoop, run_background_loop
from neonctl_async.testing.plugin.branches import BranchFactory
from neonctl_async.testing.plugin.commands import TenantAdded
from neonctl_async.testing.plugin.control_plane import ControlPlane
from neonctl_async.testing.plugin.naming import LIFETIME_SECONDS, prefix_of_worker
from neonctl_async.testing.plugin.sweep import clear_away

_LOCAL_POLLING = PollPolicy(initial=0.005, maximum=0.25)
"""Operations take that little time there."""
_CLIENTS = 2
"""How many clients a process has at once: the fixtures' own, and that of a test."""


class Backend:
    """Makes and clears away what tests ask for; its own client runs ``elsewhere``."""

    control_plane: ControlPlane | None = None

    def __init__(
        self,
        background_loop: BackgroundLoop,
        client: Callable[[], NeonClient],
        neon: NeonClient,
        prefix: str,
    ) -> None:
        self.client = client
        self._background_loop = background_loop
        self._neon = neon
        self._prefix = prefix

    def project(self) -> Project:
        """The project of a test."""
        raise NotImplementedError

    @contextmanager
    def branches(self, project_id: str) -> Generator[BranchFactory, None, None]:
        """What makes branches of a project, which are deleted in the end."""
        ephemeral = partial(
            self._neon.branches.ephemeral,
            project_id,
            name_prefix=self._prefix,
            ttl_seconds=LIFETIME_SECONDS,
        )
        factory = BranchFactory(self._background_loop, ephemeral)
        try:
            yield factory
        finally:
            self._delete_all(project_id, factory)

    def clear(self) -> None:
        """Have the next test find nothing that this one has left."""

    def _delete_all(self, project_id: str, factory: BranchFactory) -> None:
        raise NotImplementedError


class LocalBackend(Backend):
    """On a control plane, where each test has a project of its own, and all is cleared after it."""

    def __init__(
        self,
        background_loop: BackgroundLoop,
        client: Callable[[], NeonClient],
        neon: NeonClient,
        prefix: str,
        control_plane: ControlPlane,
    ) -> None:
        super().__init__(background_loop, client, neon, prefix)
        self.control_plane: ControlPlane | None = control_plane
        self._plane = control_plane

    def project(self) -> Project:
        """A new project."""
        return self._background_loop.call(self._create_project())

    async def _create_project(self) -> Project:
        org_id = self._plane.org_id
        created = await self._neon.projects.create(name="test", org_id=org_id, wait=True)
        return created.project

    def clear(self) -> None:
        """Have the control plane begin anew."""
        self._background_loop.call(self._plane.send(commands.Reset(), NoneType))

    def _delete_all(self, project_id: str, factory: BranchFactory) -> None:
        del project_id
        # The test may have planned faults, or revoked the key. What stays is cleared anyway.
        with suppress(NeonError):
            self._background_loop.call(self._plane.send(commands.ClearFaults(), NoneType))
            factory.delete_all()


class CloudBackend(Backend):
    """On the platform, where all tests share a project."""

    def __init__(
        self,
        background_loop: BackgroundLoop,
        client: Callable[[], NeonClient],
        neon: NeonClient,
        prefix: str,
        project: Project,
    ) -> None:
        super().__init__(background_loop, client, neon, prefix)
        self._project = project

    def project(self) -> Project:
        """The one that was named."""
        return self._project

    def _delete_all(self, project_id: str, factory: BranchFactory) -> None:
        try:
            factory.delete_all()
        except NeonError:
            # The test may have given them children, or have protected them.
            self._background_loop.call(self._clear_away(project_id, factory))

    async def _clear_away(self, project_id: str, factory: BranchFactory) -> None:
        failures: list[NeonError] = []

        def tell(_branch: Branch, error: NeonError | None) -> None:
            if error is not None:
                failures.append(error)

        await clear_away(self._neon, project_id, lambda branch: branch.id in factory.made, tell)
        if failures:
            raise failures[0]


def open_local_backend(plane: LocalServer, run: str) -> AbstractContextManager[Backend]:
    """A workbench on a control plane, as a tenant of its own."""
    return _open(
        lambda background_loop: _local_backend(background_loop, plane, prefix_of_worker(run))
    )


def open_cloud_backend(platform: CloudAccount, run: str) -> AbstractContextManager[Backend]:
    """A workbench on the platform."""
    return _open(
        lambda background_loop: _cloud_backend(background_loop, platform, prefix_of_worker(run))
    )


@contextmanager
def _open(
    make: Callable[[BackgroundLoop], AbstractAsyncContextManager[Backend]],
) -> Generator[Backend, None, None]:
    with (
        run_background_loop() as background_loop,
        background_loop.entered(make(background_loop)) as backend,
    ):
        yield backend


@asynccontextmanager
async def _local_backend(
    background_loop: BackgroundLoop, plane: LocalServer, prefix: str
) -> AsyncGenerator[Backend]:
    console = NeonClient(
        Secret(plane.control_token),
        base_url=plane.control_url,
        retry=RetryPolicy.never(),
        budget=RateBudget.unlimited(),
    )
    async with console:
        tenant = await console.request("POST", "/tenants", type=TenantAdded)
        client = partial(
            NeonClient,
            Secret(tenant.api_key),
            base_url=plane.base_url,
            budget=RateBudget.unlimited(),
            polling=_LOCAL_POLLING,
            hooks=[real_time_hooks()],  # those of tests on a fake clock, too
        )
        async with client() as neon:
            control_plane = ControlPlane(plane.base_url, tenant, console, background_loop)
            yield LocalBackend(background_loop, client, neon, prefix, control_plane)


@asynccontextmanager
async def _cloud_backend(
    background_loop: BackgroundLoop, platform: CloudAccount, prefix: str
) -> AsyncGenerator[Backend]:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    client = partial(cloud_client, platform, parts=_CLIENTS * workers)
    async with client() as neon:
        project = await neon.projects.get(platform.project_id)
        yield CloudBackend(background_loop, client, neon, prefix, project)
