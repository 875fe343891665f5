"""Prints the seconds that a new control plane needs until the first query of its first project.

The imports are not measured. The cache is in the directory of ``XDG_CACHE_HOME``.
"""

import asyncio
import time

from benchmarks.servers.queries import execute
from neonctl_async import NeonClient
from neonctl_local import LocalControlPlane
from neonctl_local.settings import Durations


async def main() -> None:
    """Start a control plane, create a project, and run a query in its database."""
    started = time.perf_counter()
    async with (
        LocalControlPlane(postgres=True, durations=Durations(default=0)) as control_plane,
        NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
    ):
        created = await neon.projects.create(name="first")
        await execute(created.connection_uri.reveal(), "SELECT 1")
        print(time.perf_counter() - started)


if __name__ == "__main__":
    asyncio.run(main())
