"""Create 20 branches in 5 projects at once, and wait for all of them."""

import asyncio
import importlib
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from rich.console import Console

from neonctl_async.client import NeonClient
from neonctl_async.models.branches import BranchCreated
from neonctl_async.models.endpoints import EndpointSpec
from neonctl_async.models.projects import ProjectCreated
from neonctl_async.models.secret import Secret
from neonctl_async.progress import WaitProgress
from neonctl_async.waiting.waiter import WaitOptions
from neonctl_local import Durations, LocalControlPlane, PostgresUnavailableError

PROJECTS = 5
BRANCHES_PER_PROJECT = 4
ROWS = 1000
FILL = f"CREATE TABLE visits AS SELECT generate_series(1, {ROWS}) AS id"
COUNT = "SELECT count(*) FROM visits"


async def demonstrate(seconds: float, *, postgres: bool) -> None:
    """Run the demonstration. Each operation takes at least ``seconds``."""
    console = Console(highlight=False, markup=False)
    async with (
        _control_plane(seconds, postgres=postgres) as (control_plane, lack),
        NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
    ):
        has_databases = postgres and not lack
        console.print(f"creating {PROJECTS} projects on the local control plane at {neon.base_url}")
        projects = await create_projects(neon)
        if has_databases:
            await execute(FILL, [each.connection_uri for each in projects])
        started = time.monotonic()
        with WaitProgress(neon) as progress:
            created = await create_branches(neon, projects, progress)
        console.print(
            f"{len(created)} branches ready in {len(projects)} projects\n"
            f"{neon.requests_sent} requests sent\n"
            f"{time.monotonic() - started:.1f} seconds until the last branch was ready"
        )
        if has_databases:
            counts = await execute(COUNT, [each.connection_uri for each in created])
            console.print(
                f"{counts.count(ROWS)} of {len(counts)} databases queried: "
                f"each contains the {ROWS:,} rows of its parent"
            )
        elif lack:
            console.print(f"branches were not queried: {lack}", soft_wrap=True)


@asynccontextmanager
async def _control_plane(
    seconds: float, *, postgres: bool
) -> AsyncGenerator[tuple[LocalControlPlane, str], None]:
    """Run a local control plane, with real databases if they are requested and available.

    Yields the control plane, and the reason if the requested databases are not available.
    """
    lack = ""
    durations = Durations(default=seconds)
    control_plane = LocalControlPlane(durations=durations, postgres=postgres)
    try:
        await control_plane.start()
    except PostgresUnavailableError as error:
        lack = str(error)
        control_plane = LocalControlPlane(durations=durations)
        await control_plane.start()
    try:
        yield control_plane, lack
    finally:
        await control_plane.stop()


async def create_projects(neon: NeonClient) -> list[ProjectCreated]:
    """Create the projects and wait until they are ready."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(neon.projects.create(name=f"demo-{number}", wait=True))
            for number in range(PROJECTS)
        ]
    return [task.result() for task in tasks]


async def create_branches(
    neon: NeonClient, projects: Sequence[ProjectCreated], progress: WaitProgress
) -> list[BranchCreated]:
    """Create branches with a compute in all projects at once, and wait until all are ready."""
    compute = [EndpointSpec(type="read_write")]
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(
                neon.branches.create(
                    created.project.id,
                    name=f"preview-{number}",
                    endpoints=compute,
                    wait=WaitOptions(on_update=progress),
                )
            )
            for created in projects
            for number in range(BRANCHES_PER_PROJECT)
        ]
    return [task.result() for task in tasks]


async def execute(statement: str, uris: Sequence[Secret]) -> list[object]:
    """Execute a statement on all databases at once. Return the first value of each result."""
    connect = importlib.import_module("asyncpg").connect  # from the [postgres] extra

    async def execute_on(uri: Secret) -> object:
        connection = await connect(uri.reveal())
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return await asyncio.gather(*map(execute_on, uris))
