"""What the fixtures of one process work with: clients, and an event loop in a thread."""

import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from types import NoneType
from typing import Protocol

from anyio.from_thread import BlockingPortal, start_blocking_portal

from neonctl_async.client import NeonClient
from neonctl_async.config import PollPolicy, RateBudget, RetryPolicy
from neonctl_async.models.projects import Project
from neonctl_async.testing import commands
from neonctl_async.testing.branches import BranchFactory
from neonctl_async.testing.commands import TenantAdded
from neonctl_async.testing.control_plane import ControlPlane
from neonctl_async.testing.naming import LIFETIME_SECONDS, prefix_of_worker

_LOCAL_POLLING = PollPolicy(initial=0.005, maximum=0.25)
"""Operations take that little time there."""
_CLIENTS = 2
"""How many clients a process has at once: the fixtures' own, and that of a test."""


class Served(Protocol):
    """Where a control plane is served, and the console that rules it."""

    @property
    def base_url(self) -> str:
        """Where its clients send their requests."""
        ...

    @property
    def console_url(self) -> str:
        """Where commands for it go."""
        ...

    @property
    def console_token(self) -> str:
        """What they have to carry."""
        ...


class Workbench:
    """Makes and clears away what tests ask for.

    Its own client runs on the loop of ``portal``, which no test can stop. ``control_plane`` is
    None on the platform.
    """

    def __init__(
        self,
        portal: BlockingPortal,
        client: Callable[[], NeonClient],
        neon: NeonClient,
        prefix: str,
        control_plane: ControlPlane | None,
    ) -> None:
        self.client = client
        self.control_plane = control_plane
        self._portal = portal
        self._neon = neon
        self._prefix = prefix
        self._project: Project | None = None

    def project(self) -> Project:
        """A new project, or the one of the platform."""
        if self.control_plane is not None:
            return self._portal.call(self._create_project, self.control_plane.org_id)
        if self._project is None:
            self._project = self._portal.call(
                self._neon.projects.get, os.environ["NEON_PROJECT_ID"]
            )
        return self._project

    async def _create_project(self, org_id: str) -> Project:
        created = await self._neon.projects.create(name="test", org_id=org_id, wait=True)
        return created.project

    @contextmanager
    def branches(self, project_id: str) -> Generator[BranchFactory, None, None]:
        """What makes branches of a project, which are deleted in the end."""
        factory = BranchFactory(
            self._portal,
            partial(
                self._neon.branches.ephemeral,
                project_id,
                name_prefix=self._prefix,
                ttl_seconds=LIFETIME_SECONDS,
            ),
        )
        try:
            yield factory
        finally:
            if self.control_plane is not None:  # what a test has planned is for the test
                self._portal.call(self.control_plane.send, commands.ClearFaults(), NoneType)
            self._portal.call(factory.delete_all)

    def clear(self) -> None:
        """Have the control plane begin anew."""
        if self.control_plane is not None:
            self._portal.call(self.control_plane.send, commands.Reset(), NoneType)


@contextmanager
def open_workbench(plane: Served | None, run: str) -> Generator[Workbench, None, None]:
    """A workbench on a control plane, or on the platform that the environment names."""
    with start_blocking_portal() as portal:
        opened = _on_platform(portal, run) if plane is None else _on_plane(portal, run, plane)
        bench: AbstractContextManager[Workbench] = portal.wrap_async_context_manager(opened)
        with bench as workbench:
            yield workbench


@asynccontextmanager
async def _on_plane(portal: BlockingPortal, run: str, plane: Served) -> AsyncGenerator[Workbench]:
    console = NeonClient(
        plane.console_token,
        base_url=plane.console_url,
        retry=RetryPolicy.never(),
        budget=RateBudget.unlimited(),
    )
    async with console:
        tenant = await console.request("POST", "/tenants", type=TenantAdded)
        client = partial(
            NeonClient,
            tenant.api_key,
            base_url=plane.base_url,
            budget=RateBudget.unlimited(),
            polling=_LOCAL_POLLING,
        )
        control_plane = ControlPlane(plane.base_url, tenant, console, portal)
        async with client() as neon:
            yield Workbench(portal, client, neon, prefix_of_worker(run), control_plane)


@asynccontextmanager
async def _on_platform(portal: BlockingPortal, run: str) -> AsyncGenerator[Workbench]:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    client = partial(NeonClient, budget=RateBudget().split(_CLIENTS * workers))
    async with client() as neon:
        yield Workbench(portal, client, neon, prefix_of_worker(run), None)
