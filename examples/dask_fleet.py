"""Provision a thousand branches in the workers of a Dask cluster, which divide one rate budget.

    python examples/dask_fleet.py [BRANCHES] [--projects ID,ID…] [--workers N] [--scheduler ADDRESS]
                                  [--per-minute N] [--per-second N]

Each branch is created once and awaited, even if workers are killed; try kill -9. Dask repeats a
killed worker's tasks, and these adopt the branches that already exist. The program needs the
``distributed`` package.

The workers are processes of this program, or workers of the given scheduler. Without NEON_API_KEY,
the program uses a local control plane and works offline. If you set the key, set it in the workers'
environment too, because no key passes through the scheduler. --per-minute and --per-second are the
account's rate limits; the defaults are Neon's.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import distributed

from neonctl_async import NeonClient, RateBudget
from neonctl_async.provisioning.fleet import Fleet, Tenant
from neonctl_local import LocalControlPlane

dask: Any = distributed  # only partly typed; this name is not type-checked

CHUNK = 25
"""The number of branches per task. If a worker is killed, its tasks start again."""
TASKS = 4
"""The number of concurrent tasks per worker. They run on its event loop and share one client."""


class OneClient(distributed.WorkerPlugin):
    """One client per worker, shared by its tasks and open as long as the worker runs."""

    name = "neon"

    def __init__(self, budget: RateBudget) -> None:
        self._budget = budget

    async def setup(self, worker: distributed.Worker) -> None:
        """Open the client when a worker starts, even if it replaces a killed worker."""
        del worker
        self.neon = await NeonClient(budget=self._budget).__aenter__()

    async def teardown(self, worker: distributed.Worker) -> None:
        """Close the client when a worker stops."""
        del worker
        await self.neon.aclose()


async def provision(tenants: Sequence[Tenant]) -> list[str]:
    """Provision tenants in a Dask task. Return a message for each tenant that failed."""
    neon: NeonClient = dask.get_worker().plugins[OneClient.name].neon
    report = await Fleet(neon, tenants).apply(uris=False)
    return [f"{tenant}: {error}" for tenant, error in report.failed.items()]


def chunks_of(project_ids: Sequence[str], count: int) -> list[list[Tenant]]:
    """Return the tenants of each task, which are the same in every run."""
    numbers = [range(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    return [
        [
            Tenant(project=project_ids[chunk % len(project_ids)], branch=f"preview-{number}")
            for number in chunk_numbers
        ]
        for chunk, chunk_numbers in enumerate(numbers)
    ]


async def count_failures(tasks: AsyncIterable[tuple[object, list[str]]]) -> int:
    """Return the number of branches that are not ready when all tasks have finished."""
    failed = finished = 0
    async for _task, problems in tasks:
        finished += 1
        failed += len(problems)
        print(*problems, f"{finished} tasks have finished", sep="\n", flush=True)
    return failed


@asynccontextmanager
async def connect(project_ids: Sequence[str]) -> AsyncGenerator[Sequence[str]]:
    """Yield the ids of the projects. Environment variables configure every client."""
    if os.environ.get("NEON_API_KEY"):
        yield project_ids or sys.exit("no projects: NEON_API_KEY is set, so add --projects ID,ID…")
    else:
        async with LocalControlPlane() as control_plane:
            os.environ |= {
                "NEON_API_KEY": control_plane.api_key,
                "NEON_API_HOST": control_plane.base_url,
            }
            async with NeonClient() as neon:
                created = [await neon.projects.create(name=f"fleet-{n}") for n in range(5)]
            yield [one.project.id for one in created]


@asynccontextmanager
async def cluster(workers: int, scheduler: str | None) -> AsyncGenerator[Any]:
    """Connect to the given scheduler, or start one with workers."""
    if scheduler is not None:
        async with dask.Client(scheduler, asynchronous=True) as client:
            yield client
    else:
        with tempfile.TemporaryDirectory() as directory:
            async with (
                dask.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=TASKS,
                    dashboard_address=None,
                    local_directory=directory,
                    asynchronous=True,
                ) as local,
                dask.Client(local, asynchronous=True) as client,
            ):
                yield client


async def main(options: argparse.Namespace) -> int:
    """Provision the branches; return 0 if all of them are ready."""
    budget = RateBudget(per_minute=options.per_minute, per_route_per_second=options.per_second)
    async with (
        connect(options.projects) as project_ids,
        cluster(options.workers, options.scheduler) as client,
    ):
        await client.wait_for_workers(options.workers)
        processes = await client.run(os.getpid)
        print("workers:", *processes.values(), flush=True)
        await client.register_plugin(OneClient(budget.split(len(processes))))
        tasks = client.map(provision, chunks_of(project_ids, options.branches))
        failed = await count_failures(dask.as_completed(tasks, with_results=True))
        await client.unregister_worker_plugin(OneClient.name)  # closes its clients
    print(f"{options.branches - failed} of {options.branches} branches are ready")
    return 1 if failed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Provision branches in the workers of Dask.")
    parser.add_argument("branches", nargs="?", type=int, default=1000)
    parser.add_argument("--projects", type=lambda ids: ids.split(","), default=[], metavar="ID,ID…")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--scheduler", metavar="ADDRESS")
    parser.add_argument("--per-minute", type=int, default=RateBudget().per_minute)
    parser.add_argument("--per-second", type=int, default=RateBudget().per_route_per_second)
    try:
        sys.exit(asyncio.run(main(parser.parse_args())))
    except KeyboardInterrupt:
        sys.exit(130)
