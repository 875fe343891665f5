"""Workers use branches while processes are killed or API calls meet faults.

- A branch whose creation was acknowledged exists, with its acknowledged rows and no foreign ones.
- With history, a branch of a time has the rows that were acknowledged before it, and no later ones.
- With recycled databases, no branch has rows of a deleted one, whose database it has.
- A restored branch has its old content or that of its source, never a mixture.
- Every operation reaches a terminal state. Without a crash of Postgres none fails.
- The guardian stops all servers of a killed control plane; a killed guardian is replaced.
- The server process of a killed client ends.
- A creation that meets faults reports the truth. Without kills no connection fails.
- After a clean stop there is one data directory for each branch, and no process, temporary file or
  traceback in the log.
"""

import asyncio
import random
from contextlib import AsyncExitStack
from itertools import count

from benchmarks.servers.queries import execute
from control_plane.tests.client import Http
from neonctl_async import NeonClient, RateBudget, RetryPolicy
from tests.support.until import until
from tools.campaign.callers import client_of, short_pauses
from tools.campaign.databases.creations import Creator
from tools.campaign.databases.killer import Killer
from tools.campaign.databases.rows import BranchLedger, Contents
from tools.campaign.databases.server import Server, ServerError
from tools.campaign.databases.worker import PATIENCE, Shared, Worker, connection_uris
from tools.campaign.outcomes import FaultLog
from tools.campaign.proxy import FaultProxy
from tools.campaign.report import Run

MODES = ("", "-history", "-recycled")
"""The databases: without history, with branches of the past, and used again without their data."""
FIRST_ROWS = 1_000
WORKERS = 3
SHARE = 0.5
"""The share of requests into which a fault is injected."""


async def inject(run: Run, *, mode: str, kills: bool) -> None:
    """Kill processes, or else inject faults into the creations of branches."""
    await Databases(run, mode, kills=kills).run()


class Databases:
    """Workers in one project, and what goes wrong meanwhile."""

    def __init__(self, run: Run, mode: str, *, kills: bool) -> None:
        self._run = run
        self._kills = kills
        self._server = Server(
            run.directory, history=mode == "-history", recycled=mode == "-recycled"
        )
        self._root = BranchLedger("root", Contents(range(FIRST_ROWS)))
        self._log = FaultLog()
        self._workers: list[Worker] = []

    async def run(self) -> None:
        """Run the workers, let things go wrong, and compare everything at the end."""
        report, server = self._run.report, self._server
        try:
            await server.start()
            # The client repeats no request: the workers decide what to repeat.
            async with NeonClient(
                server.api_key,
                base_url=server.base_url,
                budget=RateBudget.unlimited(),
                retry=RetryPolicy.never(),
            ) as neon:
                project_id = await create_root(neon, server, self._root)
                await self._work(
                    Shared(neon, server, self._root, project_id, report, count(FIRST_ROWS))
                )
                branches = await self._check_branches(neon, project_id)
            await server.stop()
            await self._check_leftovers(0 if server.recycled else branches)
        except ServerError as error:
            report.violations.append(str(error))
        finally:
            await server.end()
        rows = sum(len(branch.contents[0].required) for branch in self._all_branches())
        report.notes[f"{len(server.databases)} databases, {rows} rows"] += 1

    async def _work(self, shared: Shared) -> None:
        run, server = self._run, self._server
        chances = [random.Random(run.chance.random()) for _ in range(WORKERS + 1)]
        writer = Worker("root", shared, chances.pop())
        async with AsyncExitStack() as stack:
            if self._kills:
                others = [Worker(f"w{n}", shared, chance) for n, chance in enumerate(chances)]
                breaking = Killer(server, self._root, run.report, run.chance).run(
                    run.faults, run.pause
                )
            else:
                stack.enter_context(short_pauses())
                proxy = FaultProxy(server.base_url, run.chance, SHARE, self._log, run.names)
                await stack.enter_async_context(proxy)
                clients = [
                    await stack.enter_async_context(client_of(proxy.base_url, server.api_key))
                    for _ in chances
                ]
                http = await stack.enter_async_context(Http(server.base_url, server.api_key))
                others = [
                    Creator(f"w{n}", shared, chance, neon, http, self._log)
                    for n, (chance, neon) in enumerate(zip(chances, clients, strict=True))
                ]
                breaking = until(lambda: self._log.counts.total() >= run.faults, every=0.1)
            self._workers = [writer, *others]
            async with asyncio.TaskGroup() as tasks:
                if not server.recycled:  # copies are made only of a suspended branch
                    tasks.create_task(writer.write_only())
                for worker in others:
                    tasks.create_task(worker.run())
                try:
                    await breaking
                finally:
                    for worker in self._workers:
                        worker.over = True
        run.report.faults += self._log.counts

    async def _check_branches(self, neon: NeonClient, project_id: str) -> int:
        """Compare all branches with their ledgers. Return their number."""
        report = self._run.report
        for worker in self._workers:
            for branch in worker.branches:
                await worker.check(branch)
        await self._workers[0].check(self._root)
        if not self._kills:
            report.violations += [f"without a kill: {error}" for error in report.errors]
        await neon.operations.wait_for_project(project_id, timeout=PATIENCE)
        found = {one.id: one.name for one in await neon.branches.list(project_id).collect()}
        expected = {branch.id for branch in self._all_branches()}
        maybe = {name for worker in self._workers for name in worker.maybe_created}
        unexpected = {id for id, name in found.items() if id not in expected and name not in maybe}
        if unexpected or expected - found.keys():
            report.violations.append(
                f"missing branches {expected - found.keys()}, unexpected branches {unexpected}"
            )
        return len(found)

    def _all_branches(self) -> list[BranchLedger]:
        return [self._root, *(branch for worker in self._workers for branch in worker.branches)]

    async def _check_leftovers(self, expected: int) -> None:
        violations = self._run.report.violations
        for process in await asyncio.to_thread(self._server.processes):
            violations.append(f"still running after a clean stop: {process.command}")
        for path in self._server.temporary_files():
            violations.append(f"a temporary file is left: {path.name}")
        directories = self._server.data_directories()
        if len(directories) != expected:
            violations.append(f"{len(directories)} data directories instead of {expected}")
        log = self._server.log
        if (found := log.find("Traceback")) >= 0:
            violations.append(f"the log has a traceback: {log[max(found - 500, 0) : found + 4000]}")


async def create_root(neon: NeonClient, server: Server, root: BranchLedger) -> str:
    """Create a project with the first rows. Return its id."""
    created = await neon.projects.create(name="kills", wait=PATIENCE)
    project_id = created.project.id
    root.id = created.branch.id
    root.endpoint_id = created.endpoints[0].id
    root.uris = await connection_uris(neon, project_id, root.id)
    rows = f"SELECT generate_series(0, {FIRST_ROWS - 1})"
    table = "CREATE TABLE kept (row bigint PRIMARY KEY)"
    await execute(root.uris[0], f"{table}; INSERT INTO kept {rows}")
    if server.recycled:
        await neon.endpoints.suspend(project_id, root.endpoint_id, wait=PATIENCE)
        await server.recycle(root.id)
    return project_id
