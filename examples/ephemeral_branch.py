"""Run three checks concurrently, each on its own branch, which is deleted after the check.

Without NEON_API_KEY, the program uses a local control plane and works offline.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from neonctl_async import NeonClient
from neonctl_local import LocalControlPlane


@asynccontextmanager
async def connect() -> AsyncGenerator[NeonClient]:
    """Connect to Neon if NEON_API_KEY is set, otherwise to a local control plane."""
    if os.environ.get("NEON_API_KEY"):
        async with NeonClient() as neon:
            yield neon
    else:
        async with (
            LocalControlPlane() as control_plane,
            NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
        ):
            yield neon


async def check(neon: NeonClient, project_id: str, name: str) -> None:
    """Run one check on a branch that exists only while the check runs."""
    async with neon.branches.ephemeral(project_id, ttl_seconds=600) as created:
        print(f"{name} on {created.branch.name}")  # connect to created.connection_uri.asyncpg


async def main() -> None:
    """Create a project, run the checks, and delete the project."""
    async with connect() as neon:
        project_id = (await neon.projects.create(name="ephemeral", wait=True)).project.id
        try:
            async with asyncio.TaskGroup() as checks:
                for name in ("migrations", "queries", "permissions"):
                    checks.create_task(check(neon, project_id, name))
            left = await neon.branches.count(project_id)
            print(f"{left} branch left: the default one")
        finally:
            await neon.projects.delete(project_id)


if __name__ == "__main__":
    asyncio.run(main())
