"""A local control plane with real databases for each test."""

from collections.abc import AsyncIterator
from typing import NamedTuple
from urllib.parse import quote

import pytest

from neonctl_async import NeonClient
from neonctl_async.types import BranchCreated, ProjectCreated
from neonctl_local import LocalControlPlane
from tests.support.databases import READ_WRITE, databases, uri_of


class Plane(NamedTuple):
    """A control plane with a project, whose first branch has a running compute."""

    control_plane: LocalControlPlane
    neon: NeonClient
    project: ProjectCreated

    @property
    def project_id(self) -> str:
        return self.project.project.id

    @property
    def root_id(self) -> str:
        return self.project.branch.id

    @property
    def uri(self) -> str:
        return uri_of(self.project)

    def past_uri(self, moment: str, id: str = "") -> str:
        """Return the URI of a moment like ``lsn:0/1``. ``id`` is that of a branch."""
        own = self.project.endpoints[0].id
        named = quote(f"endpoint={id or own} neon_{moment}", safe="")
        return self.uri.replace(quote(f"endpoint={own}", safe=""), named)

    async def branch(self, **settings: object) -> BranchCreated:
        """Create a branch with a compute, and wait until it is ready."""
        options = {"endpoints": [READ_WRITE], "wait": True} | settings
        # The arguments of a test are the keywords of create().
        return await self.neon.branches.create(self.project_id, **options)  # type: ignore[arg-type]  # mypy cannot match a dict of objects with the keywords


@pytest.fixture
async def plane(request: pytest.FixtureRequest) -> AsyncIterator[Plane]:
    """A control plane with real databases. The marker ``control_plane`` has its settings."""
    marker = request.node.get_closest_marker("control_plane")
    async with databases(**(marker.kwargs if marker else {})) as (control_plane, neon):
        project = await neon.projects.create(name="test", wait=True)
        yield Plane(control_plane, neon, project)
