"""Provision many branches in several projects at once, and watch every operation end.

Runs against a local control plane, offline; against the platform if NEON_API_KEY is set. What it
creates, it deletes; interrupted in the middle of creating a project, it finds that one by name.
"""

import asyncio
import secrets
import sys
import time
from collections.abc import Sequence

from quickstart import connect
from rich.console import Console
from rich.live import Live
from rich.table import Table

from neonctl_async import BranchCreated, EndpointSpec, NeonClient, NeonError, Operation, Project

PROJECTS = 5
BRANCHES_PER_PROJECT = 4

MARKS = {
    "scheduling": "[dim]○[/]",
    "running": "[yellow]◔[/]",
    "finished": "[green]●[/]",
    "failed": "[bold red]✘[/]",
}


async def create_projects(neon: NeonClient, name: str) -> list[Project]:
    """New projects, ready for branches."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(neon.projects.create(name=f"{name}-{number}", wait=True))
            for number in range(PROJECTS)
        ]
    return [task.result().project for task in tasks]


async def create_branches(neon: NeonClient, projects: Sequence[Project]) -> list[BranchCreated]:
    """Branches with a compute each, in all projects at once; their operations have only begun."""
    return await asyncio.gather(
        *(
            neon.branches.create(
                project.id, name=f"preview-{n}", endpoints=[EndpointSpec(type="read_write")]
            )
            for project in projects
            for n in range(BRANCHES_PER_PROJECT)
        )
    )


def show(
    projects: Sequence[Project], created: Sequence[BranchCreated], newest: dict[str, Operation]
) -> Table:
    """A line a project, and for each branch a mark for each of its operations."""
    table = Table("project", *(f"preview-{n}" for n in range(BRANCHES_PER_PROJECT)))
    table.title = "create_branch and start_compute of each branch"
    table.caption = "○ scheduling  ◔ running  ● finished  ✘ failed"
    for project in projects:
        cells = (
            " ".join(
                MARKS.get(newest.get(operation.id, operation).status, "?")
                for operation in one.operations
            )
            for one in created
            if one.branch.project_id == project.id
        )
        table.add_row(project.name, *cells)
    return table


async def provision(neon: NeonClient, projects: Sequence[Project], console: Console) -> int:
    """How many branches are ready in the end."""
    started = time.monotonic()
    created = await create_branches(neon, projects)
    newest: dict[str, Operation] = {}
    with Live(show(projects, created, newest), console=console) as live:
        async for operation in neon.operations.watch(created):
            newest[operation.id] = operation
            live.update(show(projects, created, newest))
    console.print()
    seconds = time.monotonic() - started
    ready = sum(
        all(newest[operation.id].status == "finished" for operation in one.operations)
        for one in created
    )
    histories = await asyncio.gather(
        *(neon.operations.list(project.id, limit=5).collect() for project in projects)
    )
    console.print(
        f"{ready} branches ready in {len(projects)} projects\n"
        f"{len(newest)} operations waited for here, {sum(map(len, histories))} in the history "
        "with those that created the projects\n"
        f"{neon.requests_sent} requests sent in all\n"
        f"{seconds:.1f} seconds from the first branch asked for to the last one ready"
    )
    return ready


async def clean_up(neon: NeonClient, name: str, console: Console) -> None:
    """Delete the projects of this run, whatever has happened to it."""
    projects = await neon.projects.list(search=name).collect()
    deletions = (neon.projects.delete(project.id) for project in projects)
    # One deletion that fails must hide neither the others nor the error that led here.
    for outcome in await asyncio.gather(*deletions, return_exceptions=True):
        if isinstance(outcome, Exception):
            console.print(f"left behind: {outcome}")


async def main() -> int:
    """The exit code: 0 if every branch is ready."""
    console = Console()
    name = f"fan-out-{secrets.token_hex(3)}"
    async with connect() as neon:
        console.print(f"at {neon.base_url}: creating {PROJECTS} projects named {name}-…")
        try:
            ready = await provision(neon, await create_projects(neon, name), console)
        finally:
            await clean_up(neon, name, console)
    return 0 if ready == PROJECTS * BRANCHES_PER_PROJECT else 1


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except* NeonError as group:
        sys.exit("\n".join(str(error) for error in group.exceptions))
    except* KeyboardInterrupt:
        sys.exit(130)
