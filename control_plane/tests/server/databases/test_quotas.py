"""Connections to a project that exceeds its quota."""

import psycopg
import pytest

from control_plane.tests.server.conftest import Plane
from neonctl_async.types import ProjectQuota, ProjectSettings
from neonctl_local.engine.quotas import EXCEEDED
from tests.support.databases import execute


@pytest.mark.postgres
@pytest.mark.long
@pytest.mark.usefixtures("require_postgres")
async def test_connection_is_refused_until_the_quota_is_raised(plane: Plane) -> None:
    async def limit(seconds: int) -> None:
        settings = ProjectSettings(quota=ProjectQuota(active_time_seconds=seconds))
        await plane.neon.projects.update(plane.project_id, settings=settings, wait=True)

    await limit(1)
    endpoint_id = plane.project.endpoints[0].id
    await plane.neon.endpoints.wait_for(plane.project_id, endpoint_id, "idle")
    with pytest.raises(psycopg.OperationalError, match=EXCEEDED):
        await execute(plane.uri, "SELECT 1")
    await limit(3600)
    assert await execute(plane.uri, "SELECT 1") == 1
