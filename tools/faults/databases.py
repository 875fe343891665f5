"""Faults of the API while branches with databases are created from one that changes.

One control plane keeps history, and half of its branches are of a moment that has passed. Another
one gives new branches the databases of deleted ones. Each branch must have the rows that its parent
had, whatever its creation met. Rows are written and read directly and through the pooler.
"""

import asyncio
import random
import tempfile
from collections.abc import Collection
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from msgspec import UNSET, UnsetType

from control_plane.tests.client import Http
from neonctl_async import EndpointSpec, NeonClient, RateBudget
from tests.support.clock import now
from tools.faults.callers import RETRY, Limits, Outcome, client_of, run_call, short_pauses
from tools.faults.final_state import FinalState
from tools.faults.log import FaultLog
from tools.faults.proxy import FaultProxy
from tools.faults.report import Report
from tools.kills.campaign import FIRST_ROWS, create_root
from tools.kills.ledger import BranchLedger
from tools.kills.server import Server
from tools.kills.worker import PATIENCE, Findings, Shared, Worker, connection_uris, new_root

WITH_HISTORY = "mixed, databases with history"
RECYCLED = "mixed, recycled databases"
DATABASES = (WITH_HISTORY, RECYCLED)
CALLERS = 3
SHARE = 0.5
"""The share of requests into which a fault is injected."""
LONGEST_PAUSE = 1.0
"""The longest time from the moment of a branch to its creation, in seconds."""
LIMITS = Limits(wait=20.0, longest=2 * RETRY.deadline + 20.0)


async def inject(
    report: Report,
    names: Collection[str],
    chance: random.Random,
    directory: Path,
    *,
    faults: int,
) -> None:
    """Inject a number of faults with history, and as many with recycled databases."""
    for name in names:
        server = Server(
            new_directory(directory), history=name == WITH_HISTORY, recycled=name == RECYCLED
        )
        try:
            await server.start()
            await DatabaseFaults(report, name, server, chance, faults).run()
            await server.stop()
        finally:
            await server.end()


def new_directory(parent: Path) -> Path:
    """Create a directory that the account of Postgres can enter."""
    parent.chmod(0o711)
    directory = Path(tempfile.mkdtemp(dir=parent))
    directory.chmod(0o711)
    return directory


class DatabaseFaults:
    """Callers that create branches of one branch, while their requests meet faults."""

    def __init__(
        self, report: Report, name: str, server: Server, chance: random.Random, faults: int
    ) -> None:
        self._report = report
        self._name = name
        self._server = server
        self._chance = chance
        self._wanted = faults
        self._log = FaultLog()
        self._findings = Findings()
        self._root = new_root(FIRST_ROWS)
        self._kept: list[Outcome] = []
        """The calls whose branches are not deleted."""

    async def run(self) -> None:
        """Create branches until there are enough faults, and compare each with its parent."""
        base_url, key = self._server.base_url, self._server.api_key
        async with NeonClient(key, base_url=base_url, budget=RateBudget.unlimited()) as neon:
            project_id = await create_root(neon, self._server, self._root)
            rows = count(FIRST_ROWS)
            shared = Shared(neon, self._server, self._root, project_id, self._findings, rows)
            writer = Worker("root", shared, random.Random(self._chance.random()))
            writer.over = self._server.recycled  # copies are made only of a suspended branch
            with short_pauses():
                async with asyncio.TaskGroup() as group:
                    group.create_task(writer.write_only())
                    try:
                        await self._create_branches(shared)
                    finally:
                        writer.over = True
            await writer.check(self._root)
        async with Http(base_url, key) as http:
            state = await FinalState.read(http, [project_id])
        errors = [f"{self._name}: {error}" for error in self._findings.errors]
        of_state = state.violations(self._kept, self._log)
        self._report.violations += [*of_state, *self._findings.violations, *errors]
        self._report.faults[self._name] += self._log.counts.total()

    async def _create_branches(self, shared: Shared) -> None:
        async with (
            FaultProxy(self._server.base_url, self._chance, SHARE, self._log) as proxy,
            asyncio.TaskGroup() as group,
        ):
            for number in range(CALLERS):
                group.create_task(self._call(f"d{number}", shared, proxy))

    async def _call(self, name: str, shared: Shared, proxy: FaultProxy) -> None:
        worker = Worker(name, shared, random.Random(self._chance.random()))
        async with client_of(proxy.base_url, self._server.api_key) as neon:
            for number in count(1):
                if self._log.counts.total() >= self._wanted:
                    break
                outcome = Outcome(
                    kind="branch",
                    name=f"{name}-{number}",
                    project_id=shared.project_id,
                    limits=LIMITS,
                )
                branch = await self._create(neon, outcome, shared.neon)
                self._report.add_call([self._name], outcome)
                self._kept.append(outcome)
                if branch.id:
                    await self._use(branch, outcome, worker, shared)

    async def _create(
        self, neon: NeonClient, outcome: Outcome, without_faults: NeonClient
    ) -> BranchLedger:
        """Create a branch. Return what it must have. It has an id if it is known to exist."""
        branch = BranchLedger(outcome.name, self._root.copy())
        at: datetime | UnsetType = UNSET
        if self._server.history and self._chance.random() < 0.5:
            at = datetime.now(UTC)
            await asyncio.sleep(self._chance.uniform(0, LONGEST_PAUSE))  # the root changes
        call = neon.branches.create(
            outcome.project_id,
            name=outcome.name,
            parent_timestamp=at,
            endpoints=[EndpointSpec(type="read_write")],
            wait=outcome.limits.wait,
        )
        await run_call(outcome, call, now)
        finished = self._log.finished
        outcome.too_early = [one.id for one in outcome.operations if one.id not in finished]
        branch.id = outcome.id or ""
        if branch.id:
            await without_faults.operations.wait_for_project(outcome.project_id, timeout=PATIENCE)
        if at is UNSET:
            self._root.extend(branch.contents[0])
        return branch

    async def _use(
        self, branch: BranchLedger, outcome: Outcome, worker: Worker, shared: Shared
    ) -> None:
        """Compare a branch with its parent, write into it, and delete or suspend it."""
        neon, project_id = shared.neon, shared.project_id
        branch.uris = await connection_uris(neon, project_id, branch.id)
        await worker.check(branch)
        await worker.write(branch)
        await worker.check(branch)
        if self._server.recycled:
            self._kept.remove(outcome)
            await neon.branches.delete(project_id, branch.id, hard_delete=True, wait=PATIENCE)
        else:
            for endpoint in await neon.branches.list_endpoints(project_id, branch.id):
                await neon.endpoints.suspend(project_id, endpoint.id, wait=PATIENCE)
