"""Provision a thousand branches in the workers of a Dask cluster, which share one rate budget.

    python examples/dask_fleet.py [BRANCHES] [--projects ID,ID…] [--workers N] [--scheduler ADDRESS]
                                  [--per-minute N] [--per-second N]

Each branch is made once and waited for, even if workers die: kill -9 one of them and see. Dask runs
its tasks again, and what these ask for is taken over where it is there already. Needs distributed.
Runs in worker processes of its own, or in those of a scheduler; against a local control plane,
offline, or projects of the platform if NEON_API_KEY is set, where the workers are, too: no key
passes through the scheduler. The limits are the account's: the platform's unless told otherwise.
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
import ensure_branch

from neonctl_async import EndpointSpec, NeonClient, NeonError, RateBudget
from neonctl_async.local import LocalControlPlane

dask: Any = distributed  # typed in part only: behind this name nothing of it is checked

CHUNK = 25
"""Branches a task. Tasks that a worker had begun when it died are begun again."""
TASKS = 4
"""At once in a worker. They run on its event loop, where they wait together."""


class OneClient(distributed.WorkerPlugin):
    """A client for all tasks of a worker, on its event loop, from when it starts until it ends."""

    name = "neon"

    def __init__(self, budget: RateBudget) -> None:
        self._budget = budget

    async def setup(self, worker: distributed.Worker) -> None:
        """Called in a worker that starts, in one that takes the place of another as well."""
        del worker
        self.neon = await NeonClient(budget=self._budget).__aenter__()

    async def teardown(self, worker: distributed.Worker) -> None:
        """Called in a worker that ends."""
        del worker
        await self.neon.aclose()


async def provision(project_id: str, names: Sequence[str]) -> list[str]:
    """What is wrong with those branches of a chunk that are not ready; a task of Dask."""
    neon: NeonClient = dask.get_worker().plugins[OneClient.name].neon
    outcomes = await asyncio.gather(
        *(provision_one(neon, project_id, name) for name in names), return_exceptions=True
    )
    for outcome in outcomes:
        if outcome is not None and not isinstance(outcome, NeonError):
            raise outcome
    return [
        f"{name}: {outcome}"
        for name, outcome in zip(names, outcomes, strict=True)
        if outcome is not None
    ]


async def provision_one(neon: NeonClient, project_id: str, name: str) -> None:
    """See to it that a branch is there and ready, whoever asked for it first."""
    compute = EndpointSpec(type="read_write")
    ensured = await ensure_branch.ensure_branch(neon, project_id, name, compute)
    await neon.operations.wait(ensured.operations)


def chunks_of(project_ids: Sequence[str], count: int) -> tuple[list[str], list[list[str]]]:
    """The project of each task, and the names of its branches: the same in every run."""
    names = [f"preview-{number}" for number in range(count)]
    chunks = [names[start : start + CHUNK] for start in range(0, count, CHUNK)]
    return [project_ids[number % len(project_ids)] for number in range(len(chunks))], chunks


async def failures_of(tasks: AsyncIterable[tuple[object, list[str]]]) -> int:
    """How many branches are not ready once every task has ended."""
    failed = ended = 0
    async for _task, problems in tasks:
        ended += 1
        failed += len(problems)
        print(*problems, f"{ended} tasks have ended", sep="\n", flush=True)
    return failed


@asynccontextmanager
async def connect(project_ids: Sequence[str]) -> AsyncGenerator[Sequence[str]]:
    """The projects to provision in; the environment tells every client where they are."""
    if os.environ.get("NEON_API_KEY"):
        yield project_ids or sys.exit("name the projects: --projects ID,ID…")
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
    """A scheduler that is there already, or one of our own with its workers."""
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
                ) as own,
                dask.Client(own, asynchronous=True) as client,
            ):
                yield client


async def main(options: argparse.Namespace) -> int:
    """The exit code: 0 if every branch is ready."""
    budget = RateBudget(per_minute=options.per_minute, per_route_per_second=options.per_second)
    async with (
        connect(options.projects) as project_ids,
        cluster(options.workers, options.scheduler) as client,
    ):
        await client.wait_for_workers(options.workers)
        processes = await client.run(os.getpid)
        print("workers:", *processes.values(), flush=True)
        await client.upload_file(ensure_branch.__file__)
        await client.register_plugin(OneClient(budget.split(len(processes))))
        tasks = client.map(provision, *chunks_of(project_ids, options.branches))
        failed = await failures_of(dask.as_completed(tasks, with_results=True))
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
