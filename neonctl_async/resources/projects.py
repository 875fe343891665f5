"""Projects."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.projects import (
    DefaultEndpointSettings,
    Project,
    ProjectBranchSpec,
    ProjectCreated,
    ProjectCreateRequest,
    ProjectResponse,
    ProjectSettings,
    ProjectsPage,
    ProjectSpec,
)
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import Resource
from neonctl_async.transport.protocol import check_page_size, request

MAX_PAGE = 400


class Projects(Resource):
    """The projects that the key reaches."""

    def list(
        self,
        *,
        limit: int | UnsetType = UNSET,
        search: str | UnsetType = UNSET,
        org_id: str | UnsetType = UNSET,
        timeout: int | UnsetType = UNSET,
        recoverable: bool | UnsetType = UNSET,
    ) -> Paginator[Project]:
        """The projects (specification, section 4.2).

        ``limit`` is the size of a page, 1 to 400; the platform takes 10 if it is left out.
        ``search`` is part of a name or id. ``timeout`` is in milliseconds, 100 to 30000: how long
        the platform may take to collect a page, in which projects it could not reach are missing.
        ``recoverable`` lists deleted projects that can be recovered.
        """
        check_page_size(limit, MAX_PAGE)
        first = request(
            "GET",
            "/projects",
            ProjectsPage,
            query={
                "limit": limit,
                "search": search,
                "org_id": org_id,
                "timeout": timeout,
                "recoverable": recoverable,
            },
        )
        return self._caller.paginate(first, lambda page: page.projects)

    async def get(self, project_id: str) -> Project:
        """One project."""
        answer = await self._caller.send(
            request("GET", "/projects/{project_id}", ProjectResponse, project_id=project_id)
        )
        return answer.project

    async def create(
        self,
        *,
        name: str | UnsetType = UNSET,
        org_id: str | UnsetType = UNSET,
        region_id: str | UnsetType = UNSET,
        pg_version: int | UnsetType = UNSET,
        provisioner: str | UnsetType = UNSET,
        branch: ProjectBranchSpec | UnsetType = UNSET,
        settings: ProjectSettings | UnsetType = UNSET,
        default_endpoint_settings: DefaultEndpointSettings | UnsetType = UNSET,
        autoscaling_limit_min_cu: float | UnsetType = UNSET,
        autoscaling_limit_max_cu: float | UnsetType = UNSET,
        store_passwords: bool | UnsetType = UNSET,
        history_retention_seconds: int | UnsetType = UNSET,
        wait: bool | float = False,
    ) -> ProjectCreated:
        """Create a project with a default branch, a compute, a role and a database.

        What is left out, the platform decides. Sizes are in compute units. ``wait`` comes back
        when all operations have succeeded, True within 300 seconds, a number within that many;
        an error of that wait carries what was created as ``result``.
        """
        spec = ProjectSpec(
            name=name,
            org_id=org_id,
            region_id=region_id,
            pg_version=pg_version,
            provisioner=provisioner,
            branch=branch,
            settings=settings,
            default_endpoint_settings=default_endpoint_settings,
            autoscaling_limit_min_cu=autoscaling_limit_min_cu,
            autoscaling_limit_max_cu=autoscaling_limit_max_cu,
            store_passwords=store_passwords,
            history_retention_seconds=history_retention_seconds,
        )
        body = ProjectCreateRequest(project=spec)
        return await self._caller.start(
            request("POST", "/projects", ProjectCreated, body=body), wait=wait
        )

    async def delete(self, project_id: str) -> Project:
        """Delete a project with all that it holds; the record as it last was."""
        answer = await self._caller.send(
            request("DELETE", "/projects/{project_id}", ProjectResponse, project_id=project_id)
        )
        return answer.project
