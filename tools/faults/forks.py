"""Processes that a fork has given the same client: together they keep to a shared budget.

``python -m tools.faults.forks BASE_URL STORE`` is the process that forks.
"""

import asyncio
import os
import random
import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from neonctl_async import NeonClient, RateBudget
from tests.support.server import MisbehavingServer, http_response, in_sequence
from tools.faults.report import Report

FORKED = "client made before a fork"
CHILDREN = 4
TASKS = 5
"""The tasks of each child, which send requests all the time."""
SECONDS = 3.0
"""The time for which the children send requests."""
LIMIT = 60
"""The requests per minute of all children together."""


async def inject(
    report: Report, _names: Collection[str], _chance: random.Random, directory: Path
) -> None:
    """Count the requests of children that share a client and a store."""
    async with MisbehavingServer(in_sequence(http_response(content=[]))) as server:
        store = f"sqlite:///{directory / 'budget.db'}"
        parent = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", __name__, server.base_url, store)
        )
        if await parent.wait() != 0:
            report.violations.append(f"{FORKED}: a process failed")
    report.faults[FORKED] += CHILDREN
    sent = len(server.received)
    if not LIMIT / 2 <= sent <= LIMIT:
        report.violations.append(f"{FORKED}: {sent} requests, with a limit of {LIMIT}")


def main(base_url: str, store: str) -> int:
    """Make a client and fork; return 1 if a child failed."""
    budget = RateBudget.shared(store, per_minute=LIMIT)
    neon = NeonClient("napi_fork", base_url=base_url, budget=budget)
    children: list[int] = []
    for _ in range(CHILDREN):
        child = os.fork()
        if child == 0:
            asyncio.run(_send(neon))
            return 0
        children.append(child)
    return int(any(os.waitpid(child, 0)[1] for child in children))


async def _send(neon: NeonClient) -> None:
    async def send() -> None:
        while True:
            await neon.api_keys.list()

    async with neon:
        with suppress(TimeoutError):
            async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
                for _ in range(TASKS):
                    group.create_task(send())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
