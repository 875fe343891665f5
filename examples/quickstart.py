"""Create a branch, wait until it is ready, and list the operations.

Without NEON_API_KEY, the program uses a local control plane and works offline.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from neonctl_async import EndpointSpec, NeonClient
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


async def main() -> None:
    """Create a project and a branch, list their operations, and delete the project."""
    async with connect() as neon:
        print(f"at {neon.base_url}")
        created = await neon.projects.create(name="quickstart")
        project_id = created.project.id
        try:
            await neon.operations.wait(created)  # all operations of the response

            preview = await neon.branches.create(
                project_id,
                name="preview",
                endpoints=[EndpointSpec(type="read_write")],
                wait=True,  # create and wait in one call
            )
            print(f"{preview.branch.name} is ready after {len(preview.operations)} operations")

            async for operation in neon.operations.list(project_id, limit=100):
                print(f"{operation.created_at:%H:%M:%S} {operation.action} {operation.status}")
        finally:
            await neon.projects.delete(project_id)


if __name__ == "__main__":
    asyncio.run(main())
