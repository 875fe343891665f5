"""A client that creates, fills, suspends, restores and deletes branches while processes are killed.

Its branches are its own, so it knows what each must contain. Every branch is copied from the root
branch, into which another worker writes, or from one of its own.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from itertools import count, islice
from typing import NamedTuple, TypeVar

from msgspec import UNSET, UnsetType

from benchmarks.servers.queries import DRIVER_ERRORS, connected
from neonctl_async import (
    APIError,
    EndpointSpec,
    LockedError,
    NeonClient,
    NeonError,
    OperationFailedError,
)
from neonctl_async.models.branches import NewBranch
from neonctl_async.models.operations import Operation, OperationStatus
from tools.campaign.databases.rows import BranchLedger
from tools.campaign.databases.server import Server
from tools.campaign.report import Report

T = TypeVar("T")
PATIENCE = 300.0
"""The seconds within which an operation must finish and a branch must accept a connection.

A busy machine starts servers slowly, and kills interrupt them.
"""
UNFINISHED = (OperationStatus.SCHEDULING, OperationStatus.RUNNING)
MOST_BRANCHES = 4
"""The branches of one worker."""


class Shared(NamedTuple):
    """The objects that all workers use."""

    neon: NeonClient
    server: Server
    root: BranchLedger
    project_id: str
    report: Report
    rows: "count[int]"


class Worker:
    """One client with its branches."""

    def __init__(self, name: str, shared: Shared, chance: random.Random) -> None:
        self.branches: list[BranchLedger] = []
        self.maybe_created: list[str] = []
        """The names of branches that may exist, but are not used."""
        self.over = False
        self._name = name
        self._neon, self._server, self._root, self._project_id, self._report, self._rows = shared
        self._began = 0.0
        """The start of the current step."""
        self._chance = chance
        self._names = count(1)
        # A database is recycled only if its branch is no copy of a changing one.
        self._copies_own = not self._server.recycled
        self._steps = {self._create: 3, self._write: 6, self._read: 3}
        self._steps |= {self._suspend: 2, self._restore: 1, self._delete: 1}
        if self._server.recycled:
            # To restore a branch starts the root branch, and its copies need it suspended.
            self._steps |= {self._restore: 0, self._delete: 4}

    async def run(self) -> None:
        """Take random steps until it is over."""
        while not self.over:
            await self._server.up.wait()
            self._began = time.monotonic()
            (step,) = self._chance.choices([*self._steps], [*self._steps.values()])
            await step()
            self._report.notes[step.__name__.strip("_")] += 1

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
            self._report.violations.append(difference)

    async def write(self, branch: BranchLedger) -> None:
        """Write some rows into a branch. The outcome of the last one is unknown after an error."""
        try:
            async with connected(self._chance.choice(branch.uris)) as connection:
                for row in islice(self._rows, self._chance.randint(1, 20)):
                    branch.attempt(row)
                    await connection.execute("INSERT INTO kept VALUES ($1)", row)
                    branch.acknowledge(row)
        except DRIVER_ERRORS as error:
            self._report.add_error(error)

    async def _create(self) -> None:
        if len(self.branches) >= MOST_BRANCHES:
            return
        others = self.branches if self._copies_own else []
        source = self._chance.choice([self._root, *others])
        branch = BranchLedger(f"{self._name}-{next(self._names)}", source.copy())
        at: datetime | UnsetType = UNSET
        if self._server.history and self._chance.random() < 0.7:
            at = datetime.now(UTC)
            await asyncio.sleep(self._chance.uniform(0, 2))  # the source changes meanwhile
        await self._server.up.wait()
        self._began = time.monotonic()
        settings: NewBranch = {
            "name": branch.name,
            "parent_id": source.id,
            "parent_timestamp": at,
            "endpoints": [EndpointSpec(type="read_write")],
        }
        finished = await self._create_and_wait(branch, settings)
        if finished is None:
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

    async def _create_and_wait(self, branch: BranchLedger, settings: NewBranch) -> bool | None:
        """Create a branch. Return whether all operations succeeded, or None without a branch."""
        created = await self._call(lambda: self._neon.branches.create(self._project_id, **settings))
        if created is not None:
            branch.id = created.branch.id
            return await self._finish(created.operations)
        return await self._settle(branch) if await self._find(branch) else None

    async def _write(self) -> None:
        if self.branches:
            await self.write(self._chance.choice(self.branches))

    async def _read(self) -> None:
        if self.branches:
            await self.check(self._chance.choice(self.branches))

    async def _suspend(self) -> None:
        if self.branches:
            branch = self._chance.choice(self.branches)
            response = await self._call(
                lambda: self._neon.endpoints.suspend(self._project_id, branch.endpoint_id)
            )
            if response is None:
                await self._settle(branch)
            else:
                await self._finish(response.operations)

    async def _restore(self) -> None:
        """Replace the content of a branch without children by that of the root branch."""
        parents = [branch.parent for branch in self.branches]
        candidates = [branch for branch in self.branches if branch not in parents]
        if not candidates:
            return
        branch = self._chance.choice(candidates)
        copy = self._root.copy()
        response = await self._call(
            lambda: self._neon.branches.restore(
                self._project_id, branch.id, source_branch_id=self._root.id
            )
        )
        if response is None:
            await self._settle(branch)
            is_certain = False
        else:
            is_certain = await self._finish(response.operations)
        branch.restore(self._root, copy, is_certain=is_certain)

    async def _delete(self) -> None:
        if self.branches:
            await self._remove(self._chance.choice(self.branches))

    async def _remove(self, branch: BranchLedger) -> None:
        """Delete a branch that is no parent, so that it cannot be recovered."""
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
                self._report.violations.append(f"deletion of {branch.name}: {error}")
                return
            except NeonError as error:
                self._report.add_error(error)
            else:
                await self._finish(response.operations)
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
        """Send a request that changes something. Return None if its outcome is unknown.

        A branch is locked while a connection, which may have ended since, starts its compute.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            await self._server.up.wait()
            try:
                return await call()
            except APIError as error:
                if not isinstance(error, LockedError) or time.monotonic() > deadline:
                    self._report.violations.append(f"{self._name}: {error!r}")
                    return None
                self._report.add_error(error)
                await asyncio.sleep(0.05)
            except NeonError as error:
                self._report.add_error(error)
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
                self._report.add_error(error)
                await asyncio.sleep(0.05)

    async def _settle(self, branch: BranchLedger) -> bool:
        """Wait for all operations of a branch; return whether none has ever failed."""
        operations = await self._read_until(
            lambda: self._neon.operations.list(self._project_id, limit=500).collect(limit=500)
        )
        mine = [one for one in operations if one.branch_id == branch.id]
        unfinished = [one for one in mine if one.status in UNFINISHED]
        succeeded = await self._finish(unfinished)
        return succeeded and all(one.status != OperationStatus.FAILED for one in mine)

    async def _finish(self, operations: Sequence[Operation]) -> bool:
        """Wait for operations; return whether all succeeded."""
        if not operations:
            return True
        try:
            await self._neon.operations.wait(operations, timeout=PATIENCE)
        except OperationFailedError as error:
            self._report.add_error(error)
            if not self._server.crashed_since(self._began):
                self._report.violations.append(f"{self._name}, without a crash: {error}")
            return False
        except NeonError as error:
            self._report.violations.append(f"{self._name}: {error!r}")
            return False
        return True

    async def _fetch(self, branch: BranchLedger) -> list[int] | None:
        """Return the rows of a branch. Try again until the time limit."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return await self._fetch_once(branch)
            except DRIVER_ERRORS as error:
                self._report.add_error(error)
                if time.monotonic() > deadline:
                    self._report.violations.append(f"branch {branch.name}: {error!r}")
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
