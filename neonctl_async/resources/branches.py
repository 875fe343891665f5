"""Branches of a project."""

import builtins
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Literal

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
from neonctl_async.resources.base import SortOrder, check_within, drop_unset, whole_seconds
from neonctl_async.resources.branch_data import BranchData, branch_and_computes
from neonctl_async.transport.protocol import request

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
        """The branches of a project, last updated first unless told otherwise.

        ``limit`` is the size of a page, 1 to 10000. ``search`` is part of a name or id.
        ``include_deleted`` lists those that can be recovered, too.
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
        return self._requester.paginate(first, _annotated, lambda branch: branch.id)

    async def count(self, project_id: str, *, search: str | UnsetType = UNSET) -> int:
        """How many branches a project has, of those whose name holds ``search``."""
        response = await self._requester.send(
            request(
                "GET", f"{_BRANCHES}/count", BranchesCount, project_id, query={"search": search}
            )
        )
        return response.count

    async def get(self, project_id: str, branch_id: str) -> Branch:
        """One branch."""
        response = await self._requester.send(
            request("GET", _BRANCH, BranchResponse, project_id, branch_id)
        )
        return replace(response.branch, annotation=response.annotation)

    async def default(self, project_id: str) -> Branch:
        """The default branch of a project, which is among its oldest as a rule.

        Raises LookupError for a project without one.
        """
        listed = self.list(project_id, limit=_SEARCH_PAGE, sort_by="created_at", sort_order="asc")
        async with aclosing(listed.pages()) as pages:
            async for page in pages:
                for branch in page:
                    if branch.default:
                        return branch
        raise LookupError(f"project {project_id} has no default branch")

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
        wait: bool | float = False,
    ) -> BranchCreated:
        """Create a branch, with a compute for each of ``endpoints``.

        What is left out, the platform decides: the parent is the default branch, as of now.
        ``parent_lsn`` and ``parent_timestamp`` branch off from an earlier state of the parent;
        ``init_source`` is ``parent-data`` or ``schema-only``; the platform deletes the branch at
        ``expires_at``, told to the second. ``wait`` comes back when all operations have
        succeeded, True within 300 seconds, a number within that many; an error of that wait
        carries what was created as ``result``. The operations of the answer are then the final
        records; branch and computes are those of the creation, and :meth:`get` has the newer ones.
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
        return await self._requester.start(
            request("POST", _BRANCHES, BranchCreated, project_id, body=body), wait=wait
        )

    async def update(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str | UnsetType = UNSET,
        protected: bool | UnsetType = UNSET,
        expires_at: datetime | UnsetType | None = UNSET,
        wait: bool | float = False,
    ) -> BranchUpdated:
        """Change a branch. With ``expires_at=None`` the platform no longer deletes it."""
        spec = drop_unset(name=name, protected=protected, expires_at=whole_seconds(expires_at))
        return await self._requester.start(
            request("PATCH", _BRANCH, BranchUpdated, project_id, branch_id, body={"branch": spec}),
            wait=wait,
        )

    async def set_as_default(
        self, project_id: str, branch_id: str, *, wait: bool | float = False
    ) -> BranchUpdated:
        """Make a branch the default one, in the place of the one that is."""
        return await self._requester.start(
            request("POST", f"{_BRANCH}/set_as_default", BranchUpdated, project_id, branch_id),
            wait=wait,
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
        wait: bool | float = False,
    ) -> BranchUpdated:
        """Put a branch into the state of a branch, itself included, as it is or once was.

        ``preserve_under_name`` keeps the state of before as another branch. It has to be given
        where the branch has children, which move there, or is its own source.
        """
        body = drop_unset(
            source_branch_id=source_branch_id,
            source_lsn=source_lsn,
            source_timestamp=source_timestamp,
            preserve_under_name=preserve_under_name,
        )
        return await self._requester.start(
            request("POST", f"{_BRANCH}/restore", BranchUpdated, project_id, branch_id, body=body),
            wait=wait,
        )

    async def reset_from_parent(
        self,
        project_id: str,
        branch_id: str,
        *,
        preserve_under_name: str | UnsetType = UNSET,
        wait: bool | float = False,
    ) -> BranchUpdated:
        """Put a branch into the state that its parent has now; see :meth:`restore`.

        Raises ValueError for a branch without a parent.
        """
        branch = await self.get(project_id, branch_id)
        if branch.parent_id is None:
            raise ValueError(f"branch {branch_id} has no parent whose state it could take")
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
        wait: bool | float = False,
    ) -> OperationsResponse:
        """Have a branch that was restored from a snapshot take the place of the original.

        It gets the computes and the name of the original, which is called ``name`` from then on.
        Of its own it may have computes of type ``read_only`` alone.
        """
        return await self._requester.start(
            request(
                "POST",
                f"{_BRANCH}/finalize_restore",
                OperationsResponse,
                project_id,
                branch_id,
                body=drop_unset(name=name) or UNSET,
            ),
            wait=wait,
        )

    async def delete(
        self,
        project_id: str,
        branch_id: str,
        *,
        hard_delete: bool | UnsetType = UNSET,
        wait: bool | float = False,
    ) -> BranchDeleted:
        """Delete a branch. One that is root, default or protected, or has children, stays.

        ``hard_delete`` gives up the seven days in which it could be recovered.
        """
        return await self._requester.start(
            request(
                "DELETE",
                _BRANCH,
                BranchDeleted,
                project_id,
                branch_id,
                query={"hard_delete": hard_delete},
            ),
            wait=wait,
        )

    async def recover(self, project_id: str, branch_id: str) -> BranchRecovered:
        """Bring a deleted branch back, with its computes, which are idle."""
        return await self._requester.send(
            request("POST", f"{_BRANCH}/recover", BranchRecovered, project_id, branch_id)
        )

    async def list_endpoints(self, project_id: str, branch_id: str) -> builtins.list[Endpoint]:
        """The computes of a branch."""
        response = await self._requester.send(
            request("GET", f"{_BRANCH}/endpoints", EndpointsResponse, project_id, branch_id)
        )
        return response.endpoints


def _annotated(page: BranchesPage) -> list[Branch]:
    return [replace(branch, annotation=page.annotations.get(branch.id)) for branch in page.branches]
