"""Deletion of branches: children before their parents, repeated after lost responses."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeAlias

from neonctl_async.errors import APIError, ClientClosedError, NeonError, NotFoundError
from neonctl_async.models.branches import Branch, BranchDeleted, FailedDeletion, KeptBranch
from neonctl_async.models.operations import Operation
from neonctl_async.provisioning.prune_plan import PrunePlan, child_reason
from neonctl_async.resources.branches import BranchCalls

CONCURRENCY = 4
"""The maximum number of branches that one call deletes at the same time."""
ATTEMPTS = 3
"""How many times a deletion is requested if responses are lost. Repeating a deletion does no
harm."""
_PAUSE = 0.25
_REJECTIONS = frozenset({409, 422})
_MAX_NAMES = 20

Prepare: TypeAlias = Callable[[Branch], Coroutine[None, None, str | None]]
OnDeleted: TypeAlias = Callable[[Branch], object]


async def delete_branch(branches: BranchCalls, project_id: str, branch_id: str) -> BranchDeleted:
    """Delete a branch. Repeat the request if its response is lost.

    The result is empty if the branch does not exist.
    """
    attempt = 1
    while True:
        try:
            return await branches.delete(project_id, branch_id)
        except NotFoundError:
            return BranchDeleted()
        except ClientClosedError:
            raise
        except NeonError as error:
            if attempt == ATTEMPTS or not error.maybe_delivered:
                raise
        attempt += 1
        await asyncio.sleep(_PAUSE)


class Deletions:
    """The deletions of a plan, and their results.

    A parent is deleted after its children, and kept if one of them is kept. ``prepare`` is called
    before each deletion and returns the reason to keep the branch, or None. ``on_deleted`` is
    called after each deletion.
    """

    def __init__(
        self,
        branches: BranchCalls,
        plan: PrunePlan,
        *,
        prepare: Prepare,
        on_deleted: OnDeleted | None = None,
    ) -> None:
        self.deleted: list[Branch] = []
        self.kept: list[KeptBranch] = list(plan.kept)
        self.failed: list[FailedDeletion] = []
        self.operations: list[Operation] = []
        self._branches = branches
        self._plan = plan
        self._prepare = prepare
        self._on_deleted = on_deleted
        self._slots = asyncio.Semaphore(CONCURRENCY)
        self._interrupted: list[Branch] = []
        self._kept_child: dict[str, Branch] = {}
        self._fatal: Exception | None = None

    async def run(self) -> None:
        """Delete all branches. Failed deletions are collected and do not stop the others.

        Raises ClientClosedError, and the exceptions of ``on_deleted``.
        """
        tasks: dict[str, list[asyncio.Task[None]]] = {}
        async with asyncio.TaskGroup() as group:
            for branch in self._plan.deleted:
                children = tasks.pop(branch.id, [])
                task = group.create_task(self._delete_after(branch, children))
                if branch.parent_id is not None:
                    tasks.setdefault(branch.parent_id, []).append(task)
        if self._fatal is not None:
            raise self._fatal

    def summary(self) -> str:
        """Describe the deletions so far, for the note of an exception."""
        done, planned = len(self.deleted), len(self._plan.deleted)
        parts = [f"deleted {done} of {planned} branches{_names(self.deleted)}"]
        if self._interrupted:
            parts.append(f"in progress, so perhaps deleted{_names(self._interrupted)}")
        if self.failed:
            parts.append(f"failed{_names([failure.branch for failure in self.failed])}")
        return "; ".join(parts)

    async def _delete_after(self, branch: Branch, children: Sequence["asyncio.Task[None]"]) -> None:
        if children:
            await asyncio.wait(children)
        async with self._slots:
            if self._fatal is not None:
                return
            try:
                is_deleted = await self._delete(branch)
            except Exception as error:  # noqa: BLE001 - raised by run(); a task group would wrap it
                self._fatal = self._fatal or error
                return
        if not is_deleted and branch.parent_id is not None:
            self._kept_child.setdefault(branch.parent_id, branch)

    async def _delete(self, branch: Branch) -> bool:
        """Delete a branch and store the result. Return whether the branch is gone."""
        try:
            reason = await self._reason_to_keep(branch)
            if reason is None:
                reason = await self._request_deletion(branch)
        except ClientClosedError:
            raise
        except NotFoundError:
            reason = None  # another program has deleted the branch
        except NeonError as error:
            self.failed.append(_failure(branch, error))
            return False
        if reason is not None:
            self.kept.append(KeptBranch(branch=branch, reason=reason))
            return False
        self.deleted.append(branch)
        if self._on_deleted is not None:
            self._on_deleted(branch)
        return True

    async def _reason_to_keep(self, branch: Branch) -> str | None:
        if branch.id in self._kept_child:
            return child_reason(self._kept_child[branch.id])
        return await self._prepare(branch)

    async def _request_deletion(self, branch: Branch) -> str | None:
        """Delete a branch. If Neon rejects the deletion, return the reason, such as a new child."""
        try:
            response = await delete_branch(self._branches, branch.project_id, branch.id)
        except APIError as error:
            if error.status not in _REJECTIONS:
                raise
            return f"Neon rejected the deletion: {error.message}"
        except (asyncio.CancelledError, ClientClosedError):
            self._interrupted.append(branch)
            raise
        self.operations += response.operations
        return None


def _failure(branch: Branch, error: NeonError) -> FailedDeletion:
    return FailedDeletion(
        branch=branch,
        error=str(error),
        status=error.status if isinstance(error, APIError) else None,
        maybe_deleted=error.maybe_delivered,
    )


def _names(branches: Sequence[Branch]) -> str:
    shown = [branch.name for branch in branches[:_MAX_NAMES]]
    if len(branches) > _MAX_NAMES:
        shown.append(f"and {len(branches) - _MAX_NAMES} more")
    return f": {', '.join(shown)}" if shown else ""
