"""Branches of a project."""

import builtins
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from operator import attrgetter
from typing import Literal, overload

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from neonctl_async.models.branches import (
    Branch,
    BranchCreated,
    BranchDeleted,
    BranchesCount,
    BranchesPage,
    BranchRecovered,
    BranchResponse,
    BranchUpdated,
)
from neonctl_async.models.endpoints import Endpoint, EndpointSpec, EndpointsResponse
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import (
    NO_DELETED_COMPUTE,
    SortOrder,
    check_name,
    check_within,
    drop_unset,
    whole_seconds,
)
from neonctl_async.resources.branch_data import NO_ENDPOINTS, BranchData, branch_and_computes
from neonctl_async.resources.names import SAMPLE, Wanted
from neonctl_async.transport.protocol import request
from neonctl_async.waiting.options import Wait
from neonctl_async.waiting.states.sources import BranchSource
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT

MAX_PAGE = 10_000

_BRANCHES = "/projects/{project_id}/branches"
_BRANCH = f"{_BRANCHES}/{{branch_id}}"
_SEARCH_PAGE = 100
"""The number of branches per page when searching for one of them."""


class Branches(BranchData):
    """Branches of a project."""

    def list(
        self,
        project_id: str,
        *,
        limit: int | UnsetType = UNSET,
        search: str | UnsetType = UNSET,
        sort_by: Literal["name", "created_at", "updated_at"] | UnsetType = UNSET,
        sort_order: SortOrder | UnsetType = UNSET,
        include_deleted: bool | UnsetType = UNSET,
    ) -> Paginator[Branch]:
        """List the branches of a project, by default the last updated first.

        ``limit`` is the page size, 1 to 10000. ``search`` is a part of a name or id.
        ``include_deleted`` also lists deleted branches that can be recovered.
        """
        check_within("limit", limit, 1, MAX_PAGE)
        first = request(
            "GET",
            _BRANCHES,
            BranchesPage,
            project_id,
            query={
                "limit": limit,
                "search": search,
                "sort_by": sort_by,
                "sort_order": sort_order,
                "include_deleted": include_deleted,
            },
        )
        return self._requester.paginate(first, _with_annotations, attrgetter("id"))

    async def count(self, project_id: str, *, search: str | UnsetType = UNSET) -> int:
        """Return the number of branches, or of branches whose name contains ``search``."""
        response = await self._send(
            "GET", f"{_BRANCHES}/count", BranchesCount, project_id, query={"search": search}
        )
        return response.count

    async def get(self, project_id: str, branch_id: str) -> Branch:
        """Return a branch."""
        response = await self._send("GET", _BRANCH, BranchResponse, project_id, branch_id)
        return replace(response.branch, annotation=response.annotation)

    async def default(self, project_id: str) -> Branch:
        """Return the default branch of a project.

        Lists the branches, oldest first, until it finds the default branch. Raises LookupError if
        the project has none.
        """
        branches = self.list(project_id, limit=_SEARCH_PAGE, sort_by="created_at", sort_order="asc")
        found = await _first(branches, lambda branch: branch.default)
        if found is None:
            raise LookupError(f"project {project_id} has no default branch")
        return found

    async def find(self, project_id: str, name: str) -> Branch:
        """Return the branch with exactly this name, with one request.

        Raises LookupError, with close names, if the project has no such branch.
        """
        check_name("name", name)
        wanted = Wanted("branch", f"project {project_id}", name)
        branches = self.list(project_id, limit=MAX_PAGE, search=name)
        found = await _first(branches, lambda branch: branch.name == name)
        if found is None:
            sample = await self.list(project_id, limit=SAMPLE).collect(SAMPLE)
            raise LookupError(wanted.missing(sample))
        return found

    async def create(
        self,
        project_id: str,
        *,
        name: str | UnsetType = UNSET,
        parent_id: str | UnsetType = UNSET,
        parent_lsn: str | UnsetType = UNSET,
        parent_timestamp: datetime | UnsetType = UNSET,
        protected: bool | UnsetType = UNSET,
        archived: bool | UnsetType = UNSET,
        init_source: str | UnsetType = UNSET,
        expires_at: datetime | UnsetType = UNSET,
        endpoints: Sequence[EndpointSpec] = (),
        annotation_value: Mapping[str, str] | UnsetType = UNSET,
        wait: Wait = False,
    ) -> BranchCreated:
        """Create a branch, with a compute for each item of ``endpoints``.

        Starts ``create_branch``, and ``start_compute`` for each compute. The default parent is the
        default branch. ``parent_lsn`` or ``parent_timestamp`` selects an earlier state of the
        parent. ``init_source`` is ``parent-data`` or ``schema-only``. Neon deletes the branch at
        ``expires_at``, rounded down to the second. ``annotation_value`` holds key-value notes. Neon
        chooses other unset values.

        With ``wait=True``, the call returns after all operations have succeeded, within 300
        seconds; a number sets another limit in seconds. ``wait="connect"`` also waits until the
        computes accept connections. :class:`~neonctl_async.WaitOptions` combines these options, and
        adds ``on_update``. The result then contains the final records of the operations; call
        :meth:`get` for the current branch. If the wait fails, its error has the response as
        ``result``: OperationFailedError, WaitTimeoutError or NotConnectableError.

        Raises ValueError for a datetime without a time zone.
        """
        body = branch_and_computes(
            endpoints,
            name=name,
            parent_id=parent_id,
            parent_lsn=parent_lsn,
            parent_timestamp=parent_timestamp,
            protected=protected,
            archived=archived,
            init_source=init_source,
            expires_at=whole_seconds(expires_at),
        ) | drop_unset(annotation_value=annotation_value)
        return await self._start(
            "POST",
            _BRANCHES,
            BranchCreated,
            project_id,
            body=body,
            wait=wait,
            no_compute="" if endpoints else NO_ENDPOINTS,
        )

    async def update(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str | UnsetType = UNSET,
        protected: bool | UnsetType = UNSET,
        expires_at: datetime | UnsetType | None = UNSET,
        wait: Wait = False,
    ) -> BranchUpdated:
        """Change a branch. Neon deletes it at ``expires_at``; None removes the expiry."""
        spec = drop_unset(name=name, protected=protected, expires_at=whole_seconds(expires_at))
        return await self._start(
            "PATCH",
            _BRANCH,
            BranchUpdated,
            project_id,
            branch_id,
            body={"branch": spec},
            wait=wait,
            no_compute="the call does not change the computes of the branch: use wait=True",
        )

    async def set_as_default(
        self, project_id: str, branch_id: str, *, wait: Wait = False
    ) -> BranchUpdated:
        """Make a branch the default branch of its project."""
        return await self._start(
            "POST", f"{_BRANCH}/set_as_default", BranchUpdated, project_id, branch_id, wait=wait
        )

    async def restore(
        self,
        project_id: str,
        branch_id: str,
        *,
        source_branch_id: str,
        source_lsn: str | UnsetType = UNSET,
        source_timestamp: datetime | UnsetType = UNSET,
        preserve_under_name: str | UnsetType = UNSET,
        wait: Wait = False,
    ) -> BranchUpdated:
        """Restore a branch to the state of a source branch, which may be the branch itself.

        ``source_lsn`` or ``source_timestamp`` select an earlier state of the source.
        ``preserve_under_name`` keeps the previous state as a new branch. It is required if the
        branch is its own source, or has children; the children move to the new branch.
        """
        body = drop_unset(
            source_branch_id=source_branch_id,
            source_lsn=source_lsn,
            source_timestamp=source_timestamp,
            preserve_under_name=preserve_under_name,
        )
        return await self._start(
            "POST", f"{_BRANCH}/restore", BranchUpdated, project_id, branch_id, body=body, wait=wait
        )

    async def reset_from_parent(
        self,
        project_id: str,
        branch_id: str,
        *,
        preserve_under_name: str | UnsetType = UNSET,
        wait: Wait = False,
    ) -> BranchUpdated:
        """Reset a branch to the current state of its parent.

        Reads the branch to find its parent, then calls :meth:`restore`. Raises ValueError if the
        branch has no parent.
        """
        branch = await self.get(project_id, branch_id)
        if branch.parent_id is None:
            raise ValueError(f"branch {branch_id} has no parent: a root branch cannot be reset")
        return await self.restore(
            project_id,
            branch_id,
            source_branch_id=branch.parent_id,
            preserve_under_name=preserve_under_name,
            wait=wait,
        )

    async def finalize_restore(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str | UnsetType = UNSET,
        wait: Wait = False,
    ) -> OperationsResponse:
        """Replace the original branch with a branch that was restored from its snapshot.

        The restored branch takes over the computes and the name of the original. The original is
        renamed to ``name``. Before the call, the restored branch may have ``read_only`` computes
        only.
        """
        body = drop_unset(name=name) or UNSET
        return await self._start(
            "POST",
            f"{_BRANCH}/finalize_restore",
            OperationsResponse,
            project_id,
            branch_id,
            body=body,
            wait=wait,
        )

    async def delete(
        self,
        project_id: str,
        branch_id: str,
        *,
        hard_delete: bool | UnsetType = UNSET,
        wait: Wait = False,
    ) -> BranchDeleted:
        """Delete a branch. It can be recovered for seven days, unless ``hard_delete`` is true.

        Unpublished: Neon's newest description lacks ``hard_delete``.

        Neon rejects the deletion of a branch that is root, default or protected, or has children.
        """
        return await self._start(
            "DELETE",
            _BRANCH,
            BranchDeleted,
            project_id,
            branch_id,
            query={"hard_delete": hard_delete},
            wait=wait,
            no_compute=NO_DELETED_COMPUTE,
        )

    async def recover(self, project_id: str, branch_id: str) -> BranchRecovered:
        """Recover a deleted branch with its computes, which are suspended.

        Unpublished: Neon's newest description lacks this endpoint.
        """
        return await self._send(
            "POST", f"{_BRANCH}/recover", BranchRecovered, project_id, branch_id
        )

    @overload
    async def wait_for(
        self,
        project_id: str,
        branch_id: str,
        state: Literal["deleted"],
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> None: ...

    @overload
    async def wait_for(
        self,
        project_id: str,
        branch_id: str,
        state: Literal["init", "ready", "archived"] = "ready",
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Branch: ...

    @overload
    async def wait_for(
        self,
        project_id: str,
        branch_id: str,
        state: str,
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Branch | None: ...

    async def wait_for(
        self,
        project_id: str,
        branch_id: str,
        state: str = "ready",
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Branch | None:
        """Wait until a branch is in a state, whoever changes it. Return the branch.

        Returns None for the state ``deleted``, which a branch has as soon as Neon does not find it.
        Any other name of a state is accepted. The branch must not be changing to another state.

        The wait reads the branch at once. It then follows the pending operations of the branch, and
        reads the branch again when one of them finishes. Without any, it reads the branch with the
        delays of :class:`PollPolicy`.

        Raises NotFoundError if the branch does not exist. Raises StateTimeoutError, with the newest
        state, after ``timeout`` seconds; None waits without limit.
        """
        source = BranchSource(project_id, branch_id)
        return await self._requester.states.wait_for(source, state, timeout)

    async def list_endpoints(self, project_id: str, branch_id: str) -> builtins.list[Endpoint]:
        """Return the computes of a branch."""
        response = await self._send(
            "GET", f"{_BRANCH}/endpoints", EndpointsResponse, project_id, branch_id
        )
        return response.endpoints


async def _first(branches: Paginator[Branch], is_wanted: Callable[[Branch], bool]) -> Branch | None:
    """Return the first branch that is wanted, with no more requests than needed, or None."""
    async with aclosing(branches.pages()) as pages:
        async for page in pages:
            for branch in page:
                if is_wanted(branch):
                    return branch
    return None


def _with_annotations(page: BranchesPage) -> list[Branch]:
    return [replace(branch, annotation=page.annotations.get(branch.id)) for branch in page.branches]
