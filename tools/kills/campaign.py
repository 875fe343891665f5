"""The campaign: workers use branches while processes are killed; then everything is compared.

- A branch whose creation was acknowledged exists, with its acknowledged rows and no foreign ones.
- With history, a branch of a time has the rows that were acknowledged before it, and no later ones.
- With recycled databases, no branch has rows of a deleted one, whose database it has.
- A restored branch has its old content or that of its source, never a mixture.
- Every operation reaches a terminal state. Without a crash of Postgres none fails.
- The guardian stops all servers of a killed control plane; a killed guardian is replaced.
- The server process of a killed client ends.
- After a clean stop there is one data directory for each branch, and no process, temporary file or
  traceback in the log.
"""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from benchmarks.servers.queries import execute
from neonctl_async import NeonClient, RateBudget, RetryPolicy
from tools.kills.killer import Killer
from tools.kills.ledger import BranchLedger
from tools.kills.server import Server, ServerError
from tools.kills.worker import PATIENCE, TABLE, Findings, Shared, Worker, connection_uris, new_root

FIRST_ROWS = 1_000
WORKERS = 3


class Campaign:
    """One campaign in an empty directory, which the account of the servers can enter."""

    def __init__(
        self, directory: Path, seed: int, *, history: bool = False, recycled: bool = False
    ) -> None:
        self.findings = Findings()
        self.root = new_root(FIRST_ROWS)
        self._chance = random.Random(seed)
        self._server = Server(directory, history=history, recycled=recycled)
        self.killer = Killer(self._server, self.root, self.findings, self._chance)
        self._project_id = ""
        self._workers: list[Worker] = []

    async def run(self, kills: int, pause: float) -> None:
        """Run the workers, kill processes, and compare everything at the end."""
        try:
            await self._server.start()
            async with self._client() as neon:
                self._project_id = await create_root(neon, self._server, self.root)
                await self._work(neon, kills, pause)
                await self._check_branches(neon)
            await self._server.stop()
            await self._check_leftovers(0 if self._server.recycled else len(self._all_branches()))
        except ServerError as error:
            self.findings.violations.append(str(error))
        finally:
            await self._server.end()

    def report(self) -> str:
        """Return what was killed and done."""
        steps = ", ".join(f"{n} {name}" for name, n in sorted(self.findings.steps.items()))
        kills = ", ".join(f"{n} {name}" for name, n in self.killer.kills.items())
        errors = "".join(f"\n  {n} {name}" for name, n in self.findings.errors.most_common(12))
        rows = sum(len(branch.contents[0].required) for branch in self._all_branches())
        databases = f"databases: {len(self._server.databases)}"
        return f"killed: {kills}\nsteps: {steps}\n{databases}, rows: {rows}\nerrors:{errors}"

    @asynccontextmanager
    async def _client(self) -> AsyncGenerator[NeonClient]:
        """Provide a client that repeats no request: the workers decide what to repeat."""
        async with NeonClient(
            self._server.api_key,
            base_url=self._server.base_url,
            budget=RateBudget.unlimited(),
            retry=RetryPolicy.never(),
        ) as neon:
            yield neon

    async def _work(self, neon: NeonClient, kills: int, pause: float) -> None:
        rows = count(FIRST_ROWS)
        shared = Shared(neon, self._server, self.root, self._project_id, self.findings, rows)
        self._workers = [
            Worker(name, shared, random.Random(self._chance.random()))
            for name in ["root", *(f"w{number}" for number in range(WORKERS))]
        ]
        writer, *others = self._workers
        async with asyncio.TaskGroup() as tasks:
            if not self._server.recycled:  # copies are made only of a suspended branch
                tasks.create_task(writer.write_only())
            for worker in others:
                tasks.create_task(worker.run())
            try:
                await self.killer.run(kills, pause)
            finally:
                for worker in self._workers:
                    worker.over = True

    async def _check_branches(self, neon: NeonClient) -> None:
        for worker in self._workers:
            for branch in worker.branches:
                await worker.check(branch)
        await self._workers[0].check(self.root)
        await neon.operations.wait_for_project(self._project_id, timeout=PATIENCE)
        found = {one.id for one in await neon.branches.list(self._project_id).collect()}
        expected = {branch.id for branch in self._all_branches()}
        if found != expected:
            self.findings.violations.append(
                f"missing branches {expected - found}, unexpected branches {found - expected}"
            )

    def _all_branches(self) -> list[BranchLedger]:
        return [self.root, *(branch for worker in self._workers for branch in worker.branches)]

    async def _check_leftovers(self, expected: int) -> None:
        violations = self.findings.violations
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
    fill = f"INSERT INTO kept SELECT generate_series(0, {FIRST_ROWS - 1})"
    await execute(root.uris[0], f"{TABLE}; {fill}")
    if server.recycled:
        await neon.endpoints.suspend(project_id, root.endpoint_id, wait=PATIENCE)
        await server.recycle(root.id)
    return project_id
