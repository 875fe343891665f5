"""A process that sends as many requests as its shared rate budget allows, until it is killed.

Its arguments are the URL of the shared budget and the base URL of the API.
"""

import asyncio
import sys
from contextlib import suppress

from benchmarks.peers.base import API_KEY
from neonctl_async import NeonClient, NeonError, RateBudget, RetryPolicy

TASKS = 4


async def main(budget_url: str, base_url: str) -> None:
    """Send requests in four tasks."""
    neon = NeonClient(
        API_KEY,
        base_url=base_url,
        budget=RateBudget.shared(budget_url),
        retry=RetryPolicy.never(),
    )
    async with neon, asyncio.TaskGroup() as tasks:
        for number in range(TASKS):
            tasks.create_task(_send_all(neon, f"project-{number}"))


async def _send_all(neon: NeonClient, project_id: str) -> None:
    while True:
        with suppress(NeonError):  # the server counts refused requests
            await neon.operations.list(project_id, limit=1).collect()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
