"""Show the operations of a project live, including those of other users.

    python examples/watch_project.py [PROJECT_ID] [--for SECONDS] [--every SECONDS]

The program finds new operations by listing the project's latest operations every two seconds.
``watch`` reports their changes. The program runs until Ctrl-C, or for the given time.
Without NEON_API_KEY, it works offline, on a local control plane with a simulated user.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress

from neonctl_async import (
    EndpointSpec,
    NeonClient,
    NeonError,
    Operation,
    ServerError,
    TransportError,
)
from neonctl_local import LocalControlPlane

RECENT = 10
"""The number of earlier operations that are shown at startup."""
PAGE = 100


@asynccontextmanager
async def connect(project_id: str | None) -> AsyncGenerator[tuple[NeonClient, str]]:
    """Connect to Neon if NEON_API_KEY is set, otherwise to a local control plane."""
    if os.environ.get("NEON_API_KEY"):
        async with NeonClient() as neon:
            yield neon, project_id or sys.exit("no project: run watch_project.py PROJECT_ID")
    else:
        async with (
            LocalControlPlane() as control_plane,
            NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
            asyncio.TaskGroup() as group,
        ):
            project = (await neon.projects.create(name="busy")).project
            work = group.create_task(keep_busy(neon, project.id))
            yield neon, project.id
            work.cancel()


async def keep_busy(neon: NeonClient, project_id: str) -> None:
    """Create and delete branches, as other users of the project would."""
    while True:
        created = await neon.branches.create(
            project_id, endpoints=[EndpointSpec(type="read_write")], wait=True
        )
        await neon.branches.delete(project_id, created.branch.id, wait=True)


async def watch(neon: NeonClient, project_id: str, interval: float) -> None:
    """Show recent operations and all new ones, until cancelled."""
    started = (await neon.operations.list(project_id, limit=RECENT).collect(RECENT))[::-1]
    seen = {operation.id for operation in started}
    async with asyncio.TaskGroup() as group:
        while True:
            if started:
                group.create_task(follow(neon, started))
            await asyncio.sleep(interval)
            try:
                started, seen = await find_new(neon, project_id, seen)
            except (ServerError, TransportError) as error:  # transient; try again later
                print(error, file=sys.stderr)
                started = []


async def find_new(
    neon: NeonClient, project_id: str, seen: set[str]
) -> tuple[list[Operation], set[str]]:
    """Return new operations, oldest first, and the ids of all operations that were read."""
    newest: list[Operation] = []
    async with aclosing(neon.operations.list(project_id, limit=PAGE).pages()) as pages:
        async for page in pages:
            newest += page
            if not seen.isdisjoint(operation.id for operation in page):
                break
    started = [operation for operation in newest if operation.id not in seen]
    return started[::-1], {operation.id for operation in newest}


async def follow(neon: NeonClient, operations: Sequence[Operation]) -> None:
    """Show operations and each of their changes until all of them have finished."""
    async for operation in neon.operations.watch(operations, timeout=None):
        change = f"{operation.action} {operation.status}"
        where = operation.endpoint_id or operation.branch_id or operation.project_id
        reason = f": {operation.error}" if operation.error else ""
        print(f"{operation.updated_at:%H:%M:%S} {change} {where}{reason}", flush=True)


async def main(project_id: str | None, seconds: float | None, interval: float) -> int:
    """Watch the project; return 0 when the time is over, or 1 after an error."""
    code = 0
    async with connect(project_id) as (neon, project):
        print(f"at {neon.base_url}: watching {project}", flush=True)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await watch(neon, project, interval)
        except* NeonError as errors:
            print(*errors.exceptions, sep="\n", file=sys.stderr)
            code = 1
    return code


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Show the operations of a project.")
    parser.add_argument("project_id", nargs="?", metavar="PROJECT_ID")
    parser.add_argument("--for", type=float, dest="seconds", metavar="SECONDS")
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS")
    arguments = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(arguments.project_id, arguments.seconds, arguments.every)))
    except KeyboardInterrupt:
        sys.exit(130)
