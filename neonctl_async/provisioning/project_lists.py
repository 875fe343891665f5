"""The lists of a project. Calls that need the same list at the same time share one request."""

import copy
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Final, TypeVar

from neonctl_async.models.branches import Branch
from neonctl_async.models.endpoints import Endpoint
from neonctl_async.models.operations import Operation, OperationsPage
from neonctl_async.provisioning.unfinished import (
    MAX_GAP,
    Unfinished,
    are_found,
    may_be_unapplied,
    operations_to_apply,
    operations_to_finish,
    search_start,
    unfinished_objects,
)
from neonctl_async.resources.base import CallRunner
from neonctl_async.resources.branches import MAX_PAGE, BranchCalls
from neonctl_async.resources.endpoints import EndpointCalls
from neonctl_async.waiting.source import page_request

T = TypeVar("T")

_FIRST_PAGE: Final = 100
"""The size of a page that probably contains the operations of a new object."""
_MAX_PAGE: Final = 1000
"""The maximum number of operations that are searched."""


class BranchIndex:
    """The branches of a project. Many calls search the same list, so it is indexed once."""

    def __init__(self, branches: Iterable[Branch]) -> None:
        self.by_id: Final = {branch.id: branch for branch in branches}
        self.by_name: Final = {branch.name: branch for branch in self.by_id.values()}
        defaults = (branch for branch in self.by_id.values() if branch.default)
        self.default: Final = next(defaults, None)
        """The default branch, if the list contains it."""


class ProjectLists:
    """The current branches, computes and operations of a project."""

    def __init__(self, runner: CallRunner, project_id: str) -> None:
        self._runner = runner
        self._project_id = project_id

    async def branches(self) -> BranchIndex:
        """Return the branches. One request lists up to 10,000."""
        return await self._read("branches", self._all_branches)

    async def computes(self, branch_id: str) -> list[Endpoint]:
        """Return the computes of a branch. The request lists the computes of all branches."""
        by_branch = await self._read("computes", self._all_computes)
        return by_branch.get(branch_id, [])

    async def work_on(
        self, branch: Branch | None, computes: Iterable[Endpoint]
    ) -> tuple[list[Operation], list[Unfinished]]:
        """Return the operations that must finish before a branch and computes are ready.

        Also returns the objects that are not ready and have no operation. Sends a request only if
        an object is not ready.
        """
        objects = unfinished_objects(branch, computes)
        if not objects:
            return [], []
        history = await self.operations(
            search_start(objects), lambda operations: are_found(objects, operations)
        )
        now = self._runner.waiter.server_now()
        unexplained = [one for one in objects if not are_found([one], history)]
        return operations_to_finish(objects, history, now), unexplained

    async def work_of_object(self, branch_id: str, created_at: datetime) -> list[Operation]:
        """Return the operations that must finish before a database or role exists in Postgres.

        Sends a request only if the object is new.
        """
        now = self._runner.waiter.server_now()
        if not may_be_unapplied(created_at, now):
            return []
        history = await self.operations(created_at - MAX_GAP, lambda _: False)
        return operations_to_apply(history, branch_id, created_at, now)

    async def operations(
        self, since: datetime, is_enough: Callable[[list[Operation]], bool]
    ) -> list[Operation]:
        """Return the newest operations. List more of them if the first page is not enough."""
        page = await self._read("operations", self._newest_operations)
        found: list[Operation] = page.operations
        if len(found) < _FIRST_PAGE or found[-1].created_at < since or is_enough(found):
            return found
        return (await self._runner.send(page_request(self._project_id, _MAX_PAGE))).operations

    async def _all_branches(self) -> BranchIndex:
        listed = BranchCalls(self._runner).list(self._project_id, limit=MAX_PAGE)
        return BranchIndex(await listed.collect())

    async def _all_computes(self) -> dict[str, list[Endpoint]]:
        by_branch: dict[str, list[Endpoint]] = {}
        for one in await EndpointCalls(self._runner).list(self._project_id):
            by_branch.setdefault(one.branch_id, []).append(one)
        return by_branch

    async def _newest_operations(self) -> OperationsPage:
        return await self._runner.send(page_request(self._project_id, _FIRST_PAGE))

    async def _read(self, kind: str, fetch: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a request that starts after this call."""
        async with self._runner.shared_lists.use((kind, self._project_id), fetch) as shared:
            reading = await shared.fresh()
        if reading.error is not None:
            # The same failure may end many calls: each raises its own copy.
            raise copy.copy(reading.error) from reading.error.__cause__
        assert reading.value is not None
        return reading.value
