"""A local control plane in a thread of its own: the command line runs an event loop itself."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from neonctl_async import NeonClient
from neonctl_async.types import BranchCreated, Organization, ProjectCreated, RoleUpdated
from neonctl_local import LocalControlPlane
from neonctl_local.engine.lifecycle import PLANNED_ERROR

T = TypeVar("T")


class Served:
    """A running local control plane, with methods that call it from this thread."""

    def __init__(self, control_plane: LocalControlPlane, loop: asyncio.AbstractEventLoop) -> None:
        self.control_plane = control_plane
        self._loop = loop

    @property
    def environment(self) -> dict[str, str]:
        return {
            "NEON_API_KEY": self.control_plane.api_key,
            "NEON_API_HOST": self.control_plane.base_url,
        }

    def run(self, call: Callable[[NeonClient], Awaitable[T]]) -> T:
        """Return the result of a call with a client."""

        async def call_with_client() -> T:
            async with NeonClient(
                self.control_plane.api_key, base_url=self.control_plane.base_url
            ) as neon:
                return await call(neon)

        return asyncio.run_coroutine_threadsafe(call_with_client(), self._loop).result()

    def project(self, name: str = "shop") -> ProjectCreated:
        return self.run(lambda neon: neon.projects.create(name=name))

    def branch(self, project_id: str, name: str = "preview") -> BranchCreated:
        return self.run(lambda neon: neon.branches.create(project_id, name=name))

    def role(self, project_id: str, branch_id: str, name: str = "app") -> RoleUpdated:
        return self.run(lambda neon: neon.roles.create(project_id, branch_id, name=name))

    def organization(self) -> Organization:
        """Return the organization of the API key."""
        [organization] = self.run(lambda neon: neon.users.organizations())
        return organization

    def fail_next(self, action: str, error: str = PLANNED_ERROR) -> None:
        failing = self.control_plane.fail_next(action, error=error)
        asyncio.run_coroutine_threadsafe(failing, self._loop).result()


@contextmanager
def served(control_plane: LocalControlPlane) -> Generator[Served]:
    """Serve until the end of the block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(control_plane.start(), loop).result()
        yield Served(control_plane, loop)
        asyncio.run_coroutine_threadsafe(control_plane.stop(), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
