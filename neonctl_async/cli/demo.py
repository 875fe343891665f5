"""``neonctl-async demo``: create 20 branches in 5 projects at once, and wait for all of them."""

import asyncio
import time
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console

from neonctl_async.cli.exits import ExitCode
from neonctl_async.client import NeonClient
from neonctl_async.local import Durations, LocalControlPlane
from neonctl_async.models.branches import BranchCreated
from neonctl_async.models.endpoints import EndpointSpec
from neonctl_async.models.projects import Project
from neonctl_async.progress import WaitProgress

PROJECTS = 5
BRANCHES_PER_PROJECT = 4


def show(
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.0, help="How long each operation takes.")
    ] = 1.0,
) -> None:
    """Create 20 branches in 5 projects at once on a local control plane, offline."""
    try:
        asyncio.run(_show(seconds))
    except KeyboardInterrupt:
        raise typer.Exit(ExitCode.INTERRUPTED) from None


async def _show(seconds: float) -> None:
    console = Console(highlight=False)
    async with (
        LocalControlPlane(durations=Durations(default=seconds)) as control_plane,
        NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
    ):
        console.print(f"creating {PROJECTS} projects on the local control plane at {neon.base_url}")
        projects = await create_projects(neon)
        started = time.monotonic()
        created = await create_branches(neon, projects)
        with WaitProgress(neon) as progress:
            await neon.operations.wait(created, on_update=progress)
        console.print(
            f"{len(created)} branches ready in {len(projects)} projects\n"
            f"{neon.requests_sent} requests sent\n"
            f"{time.monotonic() - started:.1f} seconds until the last branch was ready"
        )


async def create_projects(neon: NeonClient) -> list[Project]:
    """Create the projects and wait until they are ready."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(neon.projects.create(name=f"demo-{number}", wait=True))
            for number in range(PROJECTS)
        ]
    return [task.result().project for task in tasks]


async def create_branches(neon: NeonClient, projects: Sequence[Project]) -> list[BranchCreated]:
    """Create branches with a compute in all projects at once, without waiting for them."""
    compute = [EndpointSpec(type="read_write")]
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                neon.branches.create(project.id, name=f"preview-{number}", endpoints=compute)
            )
            for project in projects
            for number in range(BRANCHES_PER_PROJECT)
        ]
    return [task.result() for task in tasks]
