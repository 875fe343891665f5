"""500 branches at once, most of them suspended: the memory of the local control plane."""

import asyncio

from benchmarks.harness.results import OURS, Row, Target, make_row
from benchmarks.harness.run_size import RunSize
from benchmarks.peers.databases import FILL, query
from benchmarks.servers.local_control_plane import local_control_plane
from benchmarks.servers.queries import execute
from neonctl_async import EndpointSpec, NeonClient, RateBudget
from tools.processes import megabytes, tree

RUNNING = 10
"""The branches whose computes are active at the end."""
CONCURRENT = 8
"""The branches that are created at the same time."""
SUSPENDED = 40
"""The branches whose computes were active. All others never had one."""


async def run(size: RunSize) -> list[Row]:
    """Create the branches, and measure the control plane beside the servers of the active ones."""
    count = size.pick(full=500, quick=60)
    async with (
        local_control_plane("--lock", "none") as process,
        NeonClient(
            process.api_key, base_url=process.base_url, budget=RateBudget.unlimited()
        ) as neon,
    ):
        created = await neon.projects.create(name="many", wait=True)
        project_id = created.project.id
        await execute(created.connection_uri.reveal(), FILL.format(rows=1_000))
        await neon.endpoints.suspend(project_id, created.endpoints[0].id, wait=True)
        await create_branches(neon, project_id, count)
        assert await neon.branches.count(project_id) == count + 1
        processes = tree(process.pid)
        servers = [one for one in processes if one.name == "postgres"]
        of_servers = megabytes(servers)
        used = megabytes(one for one in processes if one not in servers)
    scenario = f"{count} branches, {RUNNING} of them active"
    note = f"the servers of the active branches use {of_servers:.0f} MB"
    name = "memory beside the active servers"
    return [make_row(scenario, name, "MB", {OURS: [used]}, targets=[Target(200)], note=note)]


async def create_branches(neon: NeonClient, project_id: str, count: int) -> None:
    """Create branches: some stay active, some are suspended, the others have no compute."""
    slots = asyncio.Semaphore(CONCURRENT)

    async def create(number: int) -> None:
        async with slots:
            with_compute = number < RUNNING + SUSPENDED
            computes = [EndpointSpec(type="read_write")] if with_compute else []
            created = await neon.branches.create(
                project_id, name=f"branch-{number}", endpoints=computes, wait=True
            )
            if with_compute:
                await query(created.connection_uri.reveal())
            if RUNNING <= number < RUNNING + SUSPENDED:
                await neon.endpoints.suspend(project_id, created.endpoints[0].id, wait=True)

    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(create(number))
