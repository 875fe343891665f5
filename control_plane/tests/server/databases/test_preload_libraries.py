"""Libraries that the servers of a project preload."""

import asyncio

import pytest

from neonctl_async import APIError
from neonctl_async.types import PreloadLibraries, ProjectSettings
from neonctl_local.postgres.binaries import find_installations
from tests.support.databases import databases, execute, uri_of

LIBRARY = "pg_stat_statements"
SETTINGS = ProjectSettings(preload_libraries=PreloadLibraries(enabled_libraries=[LIBRARY]))


@pytest.mark.postgres
@pytest.mark.long
@pytest.mark.usefixtures("require_postgres")
async def test_installed_library_is_loaded_and_a_missing_one_refused() -> None:
    installations = await asyncio.to_thread(find_installations)
    async with databases() as (_, neon):
        for major, installation in installations.items():
            if await asyncio.to_thread(installation.libraries, [LIBRARY]):
                project = await neon.projects.create(pg_version=major, settings=SETTINGS, wait=True)
                loaded = await execute(uri_of(project), "SHOW shared_preload_libraries")
                assert loaded == LIBRARY
            else:
                with pytest.raises(APIError, match=f"{LIBRARY}' is not available"):
                    await neon.projects.create(pg_version=major, settings=SETTINGS)
