"""A client that creates, fills, suspends, restores and deletes branches while processes are killed.

Its branches are its own, so it knows what each must contain. Every branch is copied from the root
branch, into which another worker writes, or from one of its own.
"""

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from itertools import count, islice
from typing import NamedTuple, TypeVar

from msgspec import UNSET, UnsetType

from benchmarks.servers.queries import DRIVER_ERRORS, connected
from neonctl_async import APIError, EndpointSpec, NeonClient, NeonError, OperationFailedError
from neonctl_async.models.operations import Operation, OperationStatus
from tools.kills.ledger import BranchLedger, Contents
from tools.kills.server import Server

T = TypeVar("T")
PATIENCE = 60.0
"""The seconds within which an operation must finish and a branch must accept a connection."""
CRASH_SECONDS = 2.0
"""The seconds after the kill of a Postgres process in which operations may fail."""
UNFINISHED = (OperationStatus.SCHEDULING, OperationStatus.RUNNING)
TABLE = "CREATE TABLE kept (row bigint PRIMARY KEY)"
MOST_BRANCHES = 4
"""The branches of one worker."""


class Findings:
    """The steps, errors and violations of all workers."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.steps: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self._crashed_at = -math.inf

    def crash(self) -> None:
        """Record that a Postgres process is killed now. That may let an operation fail."""
        self._crashed_at = time.monotonic()

    def crashed_since(self, moment: float) -> bool:
        """Return whether a process was killed since a moment, or shortly before it.

        Postgres ends all other sessions too, a moment after one of its processes was killed.
        """
        return self._crashed_at > moment - CRASH_SECONDS

    def error(self, error: BaseException) -> None:
        """Count an error that a kill may cause."""
        self.errors[f"{type(error).__name__}: {str(error).splitlines()[:1]}"[:110]] += 1


class Shared(NamedTuple):
    """The objects that all workers use."""

    neon: NeonClient
    server: Server
    root: BranchLedger
    project_id: str
    findings: Findings
    rows: "count[int]"


class Worker:
    """One client with its branches."""

    def __init__(self, name: str, shared: Shared, chance: random.Random) -> None:
        self.branches: list[BranchLedger] = []
        self.over = False
        self._name = name
        self._neon, self._server, self._root, self._project_id, self._findings, self._rows = shared
        self._chance = chance
        self._names = count(1)

    async def run(self) -> None:
        """Take random steps until it is over."""
        steps = {self._create: 3, self._write: 6, self._read: 3}
        steps |= {self._suspend: 2, self._restore: 1, self._delete: 1}
        if self._server.recycled:
            # To restore a branch starts the root branch, and its copies need it suspended.
            steps |= {self._restore: 0, self._delete: 4}
        while not self.over:
            await self._server.up.wait()
            (step,) = self._chance.choices([*steps], [*steps.values()])
            await step()
            self._findings.steps[step.__name__.strip("_")] += 1

    async def write_only(self) -> None:
        """Write into the root branch until it is over."""
        while not self.over:
            await self._server.up.wait()
            await self.write(self._root)
            await asyncio.sleep(0.02)

    async def check(self, branch: BranchLedger) -> None:
        """Compare a branch with its ledger."""
        rows = await self._fetch(branch)
        if rows is not None and (difference := branch.check(rows)):
            self._findings.violations.append(difference)

    async def write(self, branch: BranchLedger) -> None:
        """Write some rows into a branch. The outcome of the last one is unknown after an error."""
        try:
            async with connected(self._chance.choice(branch.uris)) as connection:
                for row in islice(self._rows, self._chance.randint(1, 20)):
                    branch.attempt(row)
                    await connection.execute("INSERT INTO kept VALUES ($1)", row)
                    branch.acknowledge(row)
        except DRIVER_ERRORS as error:
            self._findings.error(error)

    async def _create(self) -> None:
        if len(self.branches) >= MOST_BRANCHES:
            return
        # A database is recycled only if its branch is no copy of a changing one.
        others = [] if self._server.recycled else self.branches
        source = self._chance.choice([self._root, *others])
        branch = BranchLedger(f"{self._name}-{next(self._names)}", source.copy())
        at: datetime | UnsetType = UNSET
        if self._server.history and self._chance.random() < 0.7:
            at = datetime.now(UTC)
            await asyncio.sleep(self._chance.uniform(0, 2))  # the source changes meanwhile
        await self._server.up.wait()
        began = time.monotonic()
        created = await self._call(
            lambda: self._neon.branches.create(
                self._project_id,
                name=branch.name,
                parent_id=source.id,
                parent_timestamp=at,
                endpoints=[EndpointSpec(type="read_write")],
            )
        )
        if created is not None:
            branch.id = created.branch.id
            finished = await self._finish(created.operations, began)
        elif await self._find(branch):
            finished = await self._settle(branch, began)
        else:
            return
        if at is UNSET:
            source.extend(branch.contents[0])
        branch.parent = source
        self.branches.append(branch)
        if not finished:
            await self._remove(branch)
            return
        (endpoint,) = await self._read_until(
            lambda: self._neon.branches.list_endpoints(self._project_id, branch.id)
        )
        branch.endpoint_id = endpoint.id
        branch.uris = await self._read_until(
            lambda: connection_uris(self._neon, self._project_id, branch.id)
        )

    async def _write(self) -> None:
        if self.branches:
            await self.write(self._chance.choice(self.branches))

    async def _read(self) -> None:
        if self.branches:
            await self.check(self._chance.choice(self.branches))

    async def _suspend(self) -> None:
        if self.branches:
            branch = self._chance.choice(self.branches)
            began = time.monotonic()
            response = await self._call(
                lambda: self._neon.endpoints.suspend(self._project_id, branch.endpoint_id)
            )
            if response is None:
                await self._settle(branch, began)
            else:
                await self._finish(response.operations, began)

    async def _restore(self) -> None:
        """Replace the content of a branch without children by that of the root branch."""
        parents = [branch.parent for branch in self.branches]
        candidates = [branch for branch in self.branches if branch not in parents]
        if not candidates:
            return
        branch = self._chance.choice(candidates)
        began = time.monotonic()
        copy = self._root.copy()
        response = await self._call(
            lambda: self._neon.branches.restore(
                self._project_id, branch.id, source_branch_id=self._root.id
            )
        )
        if response is None:
            await self._settle(branch, began)
            is_certain = False
        else:
            is_certain = await self._finish(response.operations, began)
        branch.restore(self._root, copy, is_certain=is_certain)

    async def _delete(self) -> None:
        if self.branches:
            await self._remove(self._chance.choice(self.branches))

    async def _remove(self, branch: BranchLedger) -> None:
        """Delete a branch that is no parent, so that it cannot be recovered."""
        began = time.monotonic()
        while True:
            await self._server.up.wait()
            try:
                response = await self._neon.branches.delete(
                    self._project_id, branch.id, hard_delete=True
                )
            except APIError as error:
                if error.status == 404:
                    break
                if error.status == 422 or "child" in error.message:
                    return  # it has children
                self._findings.violations.append(f"deletion of {branch.name}: {error}")
                return
            except NeonError as error:
                self._findings.error(error)
            else:
                await self._finish(response.operations, began)
                break
        self.branches.remove(branch)

    async def _find(self, branch: BranchLedger) -> bool:
        """Look for a branch whose creation was interrupted."""
        found = await self._read_until(
            lambda: self._neon.branches.list(self._project_id, search=branch.name).collect()
        )
        for one in found:
            if one.name == branch.name:
                branch.id = one.id
                return True
        return False

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T | None:
        """Send a request that changes something. Return None if its outcome is unknown."""
        await self._server.up.wait()
        try:
            return await call()
        except APIError as error:
            self._findings.violations.append(f"{self._name}: {error!r}")
        except NeonError as error:
            self._findings.error(error)
        return None

    async def _read_until(self, call: Callable[[], Awaitable[T]]) -> T:
        """Send a request that changes nothing, until it succeeds."""
        while True:
            await self._server.up.wait()
            try:
                return await call()
            except APIError:
                raise
            except NeonError as error:
                self._findings.error(error)
                await asyncio.sleep(0.05)

    async def _settle(self, branch: BranchLedger, began: float) -> bool:
        """Wait for all operations of a branch; return whether none has ever failed."""
        operations = await self._read_until(
            lambda: self._neon.operations.list(self._project_id, limit=500).collect(limit=500)
        )
        mine = [one for one in operations if one.branch_id == branch.id]
        unfinished = [one for one in mine if one.status in UNFINISHED]
        succeeded = await self._finish(unfinished, began)
        return succeeded and all(one.status != OperationStatus.FAILED for one in mine)

    async def _finish(self, operations: Sequence[Operation], began: float) -> bool:
        """Wait for operations; return whether all succeeded."""
        if not operations:
            return True
        try:
            await self._neon.operations.wait(operations, timeout=PATIENCE)
        except OperationFailedError as error:
            self._findings.error(error)
            if not self._findings.crashed_since(began):
                self._findings.violations.append(f"{self._name}, without a crash: {error}")
            return False
        except NeonError as error:
            self._findings.violations.append(f"{self._name}: {error!r}")
            return False
        return True

    async def _fetch(self, branch: BranchLedger) -> list[int] | None:
        """Return the rows of a branch. Try again until the time limit."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return await self._fetch_once(branch)
            except DRIVER_ERRORS as error:
                self._findings.error(error)
                if time.monotonic() > deadline:
                    self._findings.violations.append(f"branch {branch.name}: {error!r}")
                    return None
            await asyncio.sleep(0.05)

    async def _fetch_once(self, branch: BranchLedger) -> list[int]:
        await self._server.up.wait()
        async with connected(self._chance.choice(branch.uris)) as connection:
            return [record["row"] for record in await connection.fetch("SELECT row FROM kept")]


async def connection_uris(neon: NeonClient, project_id: str, branch_id: str) -> list[str]:
    """Return the URI of direct connections to a branch, and that of its pooler."""
    uris = [
        await neon.projects.connection_uri(
            project_id,
            branch_id=branch_id,
            database_name="neondb",
            role_name="neondb_owner",
            pooled=pooled,
        )
        for pooled in (False, True)
    ]
    return [uri.reveal() for uri in uris]


def new_root(rows: int) -> BranchLedger:
    """Return the ledger of the root branch with its first rows."""
    return BranchLedger("root", Contents(range(rows)))
