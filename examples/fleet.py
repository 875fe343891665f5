"""Provision hundreds of branches at once: limits, locks and waiting are the client's work.

    python examples/fleet.py [BRANCHES] [--fail N]

Two branches with a compute each go into every project. Runs against a local control plane, offline,
where --fail has N branches fail; against the platform if NEON_API_KEY is set. What became of each
branch is told, and all is deleted in the end, after Ctrl-C as well; a second one leaves the rest.
"""

import argparse
import asyncio
import os
import secrets
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from neonctl_async import (
    BranchCreated,
    EndpointSpec,
    NeonClient,
    NeonError,
    WaitError,
)
from neonctl_async.local import LocalControlPlane

CLEAN_UP = 120.0
"""Seconds that deleting everything may take."""


@asynccontextmanager
async def connect(failures: int) -> AsyncGenerator[NeonClient]:
    """The platform if there is a key for it, else a local control plane with limits like its."""
    if os.environ.get("NEON_API_KEY"):
        async with NeonClient() as neon:
            yield neon
    else:
        async with (
            LocalControlPlane(rate_limits=True) as plane,
            NeonClient(plane.api_key, base_url=plane.base_url) as neon,
        ):
            if failures:
                await plane.fail_next("create_branch", times=failures)
            yield neon


async def provision(neon: NeonClient, name: str, count: int) -> list[str]:
    """What became of each branch: all at once, however many."""
    async with asyncio.TaskGroup() as group:
        projects = [
            group.create_task(neon.projects.create(name=f"{name}-{number}", wait=True))
            for number in range((count + 1) // 2)
        ]
    outcomes = await asyncio.gather(
        *(
            neon.branches.create(
                projects[number // 2].result().project.id,
                name=f"preview-{number}",
                endpoints=[EndpointSpec(type="read_write")],
                wait=True,
            )
            for number in range(count)
        ),
        return_exceptions=True,  # one that fails takes none of the others with it
    )
    return [tell(outcome) for outcome in outcomes]


def tell(outcome: BranchCreated | BaseException) -> str:
    """Ready, or what there is to clean up; nothing has been created twice."""
    match outcome:
        case BranchCreated():
            return "ready"
        case WaitError(result=BranchCreated(branch=branch)):
            print(f"{branch.id} was created but is not ready: {outcome}")
            return "created, not ready"
        case NeonError(maybe_delivered=True):
            print(f"may have been created, look by name: {outcome}")
            return "unknown"
        case NeonError():
            print(f"not created: {outcome}")
            return "not created"
        case _:
            raise outcome


async def clean_up(neon: NeonClient, name: str) -> None:
    """Delete the projects of this run, those included that were being created when it ended."""
    async with asyncio.timeout(CLEAN_UP):
        projects = await neon.projects.list(search=name).collect()
        deletions = (neon.projects.delete(project.id) for project in projects)
        outcomes = await asyncio.gather(*deletions, return_exceptions=True)
    left = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    print(f"deleted {len(projects) - len(left)} projects", *left, sep="\n")


async def main(count: int, failures: int) -> int:
    """The exit code: 0 if every branch is ready."""
    name = f"fleet-{secrets.token_hex(3)}"
    async with connect(failures) as neon:
        print(f"at {neon.base_url}: creating {count} branches in projects named {name}-…")
        try:
            told = Counter(await provision(neon, name, count))
            print(", ".join(f"{number} {what}" for what, number in told.items()))
            print(f"{neon.requests_sent} requests sent in all")
        finally:
            await clean_up(neon, name)
    return 0 if told["ready"] == count else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Provision hundreds of branches at once.")
    parser.add_argument("branches", nargs="?", type=int, default=200)
    parser.add_argument("--fail", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(arguments.branches, arguments.fail)))
    except KeyboardInterrupt:
        sys.exit(130)
