"""Provision many branches in several projects at once, and watch every operation end.

Runs against a local control plane, offline; against the platform if NEON_API_KEY is set. What it
creates, it deletes.
"""

import asyncio
import sys
import time
from collections.abc import Iterable, Sequence

from quickstart import connect
from rich.console import Console
from rich.live import Live
from rich.table import Table

from neonctl_async import BranchCreated, EndpointSpec, NeonClient, Operation, OperationStatus

PROJECTS = 5
BRANCHES_PER_PROJECT = 4

STYLES = {
    OperationStatus.SCHEDULING: "dim",
    OperationStatus.RUNNING: "yellow",
    OperationStatus.FINISHED: "green",
    OperationStatus.FAILED: "bold red",
}


async def create_projects(neon: NeonClient, projects: list[str]) -> None:
    """Add the ids of new projects to ``projects``, and wait until they are ready for branches."""

    async def create(name: str) -> None:
        created = await neon.projects.create(name=name)
        projects.append(created.project.id)  # known from here on, whatever happens next
        await neon.operations.wait(created)

    async with asyncio.TaskGroup() as group:
        for number in range(PROJECTS):
            group.create_task(create(f"fan-out-{number}"))


async def create_branches(neon: NeonClient, projects: Sequence[str]) -> list[BranchCreated]:
    """Branches with a compute each, in all projects at once; their operations have only begun."""
    return await asyncio.gather(
        *(
            neon.branches.create(
                project_id, name=f"preview-{n}", endpoints=[EndpointSpec(type="read_write")]
            )
            for project_id in projects
            for n in range(BRANCHES_PER_PROJECT)
        )
    )


def show(created: Iterable[BranchCreated], newest: dict[str, Operation]) -> Table:
    """A line a branch, with the newest status of each of its operations."""
    table = Table("project", "branch", "operations", title="Branches being provisioned")
    for one in created:
        states = (newest.get(operation.id, operation) for operation in one.operations)
        told = (
            f"[{STYLES.get(state.status, 'magenta')}]{state.action} {state.status}[/]"
            for state in states
        )
        table.add_row(one.branch.project_id, one.branch.name, "  ".join(told))
    return table


async def provision(neon: NeonClient, projects: Sequence[str], console: Console) -> int:
    """How many branches are ready in the end."""
    started = time.monotonic()
    created = await create_branches(neon, projects)
    newest: dict[str, Operation] = {}
    with Live(show(created, newest), console=console) as live:
        async for operation in neon.operations.watch(created):
            newest[operation.id] = operation
            live.update(show(created, newest))
    console.print()
    seconds = time.monotonic() - started
    ready = sum(
        all(newest[operation.id].status == "finished" for operation in one.operations)
        for one in created
    )
    histories = await asyncio.gather(
        *(neon.operations.list(project_id, limit=5).collect() for project_id in projects)
    )
    console.print(
        f"{ready} branches ready in {len(projects)} projects\n"
        f"{len(newest)} operations waited for, {sum(map(len, histories))} in the history\n"
        f"{neon.requests_sent} requests sent in all\n"
        f"{seconds:.1f} seconds from the first request to the last branch"
    )
    return ready


async def main() -> int:
    """The exit code: 0 if every branch is ready."""
    console = Console()
    async with connect() as neon:
        projects: list[str] = []
        try:
            await create_projects(neon, projects)
            ready = await provision(neon, projects, console)
        finally:
            # One deletion that fails must hide neither the others nor the error that led here.
            deletions = (neon.projects.delete(project_id) for project_id in projects)
            for outcome in await asyncio.gather(*deletions, return_exceptions=True):
                if isinstance(outcome, Exception):
                    console.print(f"left behind: {outcome}")
    return 0 if ready == PROJECTS * BRANCHES_PER_PROJECT else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
