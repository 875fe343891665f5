"""Watch the operations of a project live: those of others as well, as they begin and change.

    python examples/watch_project.py [PROJECT_ID] [--for SECONDS] [--every SECONDS]

What begins is found on the newest page of the project's list, every two seconds; what changes, by
``watch``, which reads all of it together. Until Ctrl-C unless told how long. Runs against a local
control plane, offline, where somebody is at work; against the project PROJECT_ID of the platform if
NEON_API_KEY is set.
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
from neonctl_async.local import LocalControlPlane

LAST = 10
"""How many operations of before are shown, as tail shows lines."""
PAGE = 100


@asynccontextmanager
async def connect(project_id: str | None) -> AsyncGenerator[tuple[NeonClient, str]]:
    """The platform if there is a key for it, else a local control plane; and a project there."""
    if os.environ.get("NEON_API_KEY"):
        async with NeonClient() as neon:
            yield neon, project_id or sys.exit("name the project: watch_project.py PROJECT_ID")
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
    """Do what others do in a project that is shared with them."""
    while True:
        created = await neon.branches.create(
            project_id, endpoints=[EndpointSpec(type="read_write")], wait=True
        )
        await neon.branches.delete(project_id, created.branch.id, wait=True)


async def watch(neon: NeonClient, project_id: str, interval: float) -> None:
    """Show what began last, and all that begins from now on, until cancelled."""
    begun = (await neon.operations.list(project_id, limit=LAST).collect(LAST))[::-1]
    seen = {operation.id for operation in begun}
    async with asyncio.TaskGroup() as group:
        while True:
            if begun:
                group.create_task(follow(neon, begun))
            await asyncio.sleep(interval)
            try:
                begun, seen = await look(neon, project_id, seen)
            except (ServerError, TransportError) as error:  # which pass
                print(error, file=sys.stderr)
                begun = []


async def look(
    neon: NeonClient, project_id: str, seen: set[str]
) -> tuple[list[Operation], set[str]]:
    """What began since the last look, oldest first; and all that this look saw."""
    newest: list[Operation] = []
    async with aclosing(neon.operations.list(project_id, limit=PAGE).pages()) as pages:
        async for page in pages:
            newest += page
            if not seen.isdisjoint(operation.id for operation in page):
                break
    begun = [operation for operation in newest if operation.id not in seen]
    return begun[::-1], {operation.id for operation in newest}


async def follow(neon: NeonClient, operations: Sequence[Operation]) -> None:
    """Show operations, and each of their changes, until all have ended."""
    async for operation in neon.operations.watch(operations, timeout=None):
        what = f"{operation.action} {operation.status}"
        where = operation.endpoint_id or operation.branch_id or operation.project_id
        reason = f": {operation.error}" if operation.error else ""
        print(f"{operation.updated_at:%H:%M:%S} {what} {where}{reason}", flush=True)


async def main(project_id: str | None, seconds: float | None, interval: float) -> int:
    """The exit code: 0 once the time is up."""
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
    parser = argparse.ArgumentParser(description="Watch the operations of a project.")
    parser.add_argument("project_id", nargs="?", metavar="PROJECT_ID")
    parser.add_argument("--for", type=float, dest="seconds", metavar="SECONDS")
    parser.add_argument("--every", type=float, default=2.0, metavar="SECONDS")
    arguments = parser.parse_args()
    try:
        sys.exit(asyncio.run(main(arguments.project_id, arguments.seconds, arguments.every)))
    except KeyboardInterrupt:
        sys.exit(130)
