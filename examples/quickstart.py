"""Create a branch, wait until it is ready, and look back at what the platform did.

Runs against a local control plane, offline; against the platform if NEON_API_KEY is set.
"""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from neonctl_async import EndpointSpec, NeonClient
from neonctl_async.local import LocalControlPlane


@asynccontextmanager
async def connect() -> AsyncGenerator[NeonClient]:
    """The platform if there is a key for it, else a local control plane."""
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
    """Create, wait, look back, and clean up."""
    async with connect() as neon:
        print(f"at {neon.base_url}")
        begun = await neon.projects.create(name="quickstart")
        project_id = begun.project.id
        try:
            await neon.operations.wait(begun)  # every operation of the answer, at once

            created = await neon.branches.create(
                project_id,
                name="preview",
                endpoints=[EndpointSpec(type="read_write")],
                wait=True,  # the same in one call
            )
            print(f"{created.branch.name} is ready after {len(created.operations)} operations")

            async for operation in neon.operations.list(project_id, limit=100):
                print(f"{operation.created_at:%H:%M:%S} {operation.action} {operation.status}")
        finally:
            await neon.projects.delete(project_id)


if __name__ == "__main__":
    asyncio.run(main())
