"""Branches of a project."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from neonctl_async.models.branches import (
    Branch,
    BranchCreated,
    BranchCreateRequest,
    BranchDeleted,
    BranchesPage,
    BranchResponse,
    BranchSpec,
)
from neonctl_async.models.endpoints import EndpointSpec
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import Resource
from neonctl_async.transport.protocol import check_aware, check_page_size, request

MAX_PAGE = 10_000


class Branches(Resource):
    """Branches of a project."""

    def list(
        self,
        project_id: str,
        *,
        limit: int | UnsetType = UNSET,
        search: str | UnsetType = UNSET,
        sort_by: str | UnsetType = UNSET,
        sort_order: str | UnsetType = UNSET,
        include_deleted: bool | UnsetType = UNSET,
    ) -> Paginator[Branch]:
        """The branches of a project.

        ``limit`` is the size of a page, 1 to 10000. ``search`` is part of a name or id.
        ``sort_by`` is ``name``, ``created_at`` or ``updated_at`` (the platform's default),
        ``sort_order`` is ``asc`` or ``desc`` (the default).
        """
        check_page_size(limit, MAX_PAGE)
        first = request(
            "GET",
            "/projects/{project_id}/branches",
            BranchesPage,
            query={
                "limit": limit,
                "search": search,
                "sort_by": sort_by,
                "sort_order": sort_order,
                "include_deleted": include_deleted,
            },
            project_id=project_id,
        )
        return self._caller.paginate(first, _annotated)

    async def get(self, project_id: str, branch_id: str) -> Branch:
        """One branch."""
        answer = await self._caller.send(
            request(
                "GET",
                "/projects/{project_id}/branches/{branch_id}",
                BranchResponse,
                project_id=project_id,
                branch_id=branch_id,
            )
        )
        return replace(answer.branch, annotation=answer.annotation)

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
        """Create a branch, with a compute for each of ``endpoints`` (specification, section 4.5).

        What is left out, the platform decides: the parent is the default branch, as of now.
        ``parent_lsn`` and ``parent_timestamp`` branch off from an earlier state of the parent;
        ``init_source`` is ``parent-data`` or ``schema-only``; the platform deletes the branch at
        ``expires_at``. ``wait`` comes back when all operations have succeeded, True within 300
        seconds, a number within that many; an error of that wait carries what was created as
        ``result``. Raises ValueError for a datetime without a time zone.
        """
        for moment, value in (("parent_timestamp", parent_timestamp), ("expires_at", expires_at)):
            if isinstance(value, datetime):
                check_aware(moment, value)
        spec = BranchSpec(
            name=name,
            parent_id=parent_id,
            parent_lsn=parent_lsn,
            parent_timestamp=parent_timestamp,
            protected=protected,
            archived=archived,
            init_source=init_source,
            expires_at=expires_at,
        )
        body = BranchCreateRequest(
            branch=UNSET if spec == BranchSpec() else spec,
            endpoints=list(endpoints) or UNSET,
            annotation_value=dict(annotation_value) if annotation_value else UNSET,
        )
        return await self._caller.start(
            request(
                "POST",
                "/projects/{project_id}/branches",
                BranchCreated,
                body=body,
                project_id=project_id,
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
        """Delete a branch. A root or default branch, or one with children, cannot be deleted.

        ``hard_delete`` gives up the time in which it could be recovered. ``wait`` as in
        :meth:`create`.
        """
        return await self._caller.start(
            request(
                "DELETE",
                "/projects/{project_id}/branches/{branch_id}",
                BranchDeleted,
                query={"hard_delete": hard_delete},
                project_id=project_id,
                branch_id=branch_id,
            ),
            wait=wait,
        )


def _annotated(page: BranchesPage) -> list[Branch]:
    return [replace(branch, annotation=page.annotations.get(branch.id)) for branch in page.branches]
