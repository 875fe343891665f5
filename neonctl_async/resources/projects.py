"""Projects."""

import builtins
from collections.abc import Iterable
from contextlib import suppress
from operator import attrgetter
from typing import Literal, Unpack, overload

from msgspec import UNSET, UnsetType

from neonctl_async.errors import LookupFailedError, NotFoundError
from neonctl_async.models.base import Empty
from neonctl_async.models.connection_uri import ConnectionUri
from neonctl_async.models.databases import ConnectionURIResponse
from neonctl_async.models.organizations import VPCEndpoint, VPCEndpointsResponse
from neonctl_async.models.projects import (
    JWKS,
    AdvisorIssue,
    AdvisorIssuesResponse,
    AvailablePreloadLibrariesResponse,
    AvailablePreloadLibrary,
    JWKSCreated,
    JWKSResponse,
    NewProject,
    Project,
    ProjectChanges,
    ProjectCreated,
    ProjectDeleted,
    ProjectMember,
    ProjectMembersPage,
    ProjectMemberUpdated,
    ProjectPermission,
    ProjectPermissionsResponse,
    ProjectRecovered,
    ProjectResponse,
    ProjectsPage,
    ProjectUpdated,
    TransferRequest,
)
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import (
    NO_DELETED_COMPUTE,
    Resource,
    check_name,
    check_settings,
    check_within,
    drop_unset,
)
from neonctl_async.resources.names import SAMPLE, Wanted
from neonctl_async.transport.protocol import Request, request
from neonctl_async.waiting.states.sources import ProjectSource, ReadyProjectSource
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT, Wait

MAX_PAGE = 400
TIMEOUT_MILLISECONDS = 100, 30_000

_PROJECT = "/projects/{project_id}"
_PERMISSIONS = f"{_PROJECT}/permissions"
_MEMBERS = f"{_PROJECT}/members"
_MEMBER_ROLE = f"{_MEMBERS}/{{member_id}}/role"
_TRANSFERS = f"{_PROJECT}/transfer_requests"
_JWKS = f"{_PROJECT}/jwks"
_VPC_ENDPOINTS = f"{_PROJECT}/vpc_endpoints"
_VPC_ENDPOINT = f"{_VPC_ENDPOINTS}/{{vpc_endpoint_id}}"


class Projects(Resource):
    """The projects that the API key has access to.

    For ``wait``, see :meth:`neon.branches.create`.
    """

    def list(
        self,
        *,
        limit: int | UnsetType = UNSET,
        search: str | UnsetType = UNSET,
        org_id: str | UnsetType = UNSET,
        timeout: int | UnsetType = UNSET,
        recoverable: bool | UnsetType = UNSET,
    ) -> Paginator[Project]:
        """List the projects.

        ``limit`` is the page size, 1 to 400; Neon's default is 10. ``search`` is part of a name or
        id. ``timeout`` limits the time for each page, in milliseconds, 100 to 30000. A page leaves
        out projects that Neon cannot read in that time; their ids are in the paginator's
        ``unavailable_project_ids``. With ``recoverable``, the call lists deleted projects that can
        be recovered.
        """
        check_within("limit", limit, 1, MAX_PAGE)
        check_within("timeout (milliseconds)", timeout, *TIMEOUT_MILLISECONDS)
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
        return self._paginate_projects(first)

    def list_shared(
        self,
        *,
        limit: int | UnsetType = UNSET,
        search: str | UnsetType = UNSET,
        timeout: int | UnsetType = UNSET,
    ) -> Paginator[Project]:
        """List the projects that are shared with the account. See :meth:`list`."""
        check_within("limit", limit, 1, MAX_PAGE)
        check_within("timeout (milliseconds)", timeout, *TIMEOUT_MILLISECONDS)
        first = request(
            "GET",
            "/projects/shared",
            ProjectsPage,
            query={"limit": limit, "search": search, "timeout": timeout},
        )
        return self._paginate_projects(first)

    def _paginate_projects(self, first: Request[ProjectsPage]) -> Paginator[Project]:
        return self._paginate(
            first, attrgetter("projects"), attrgetter("id"), attrgetter("unavailable_project_ids")
        )

    async def get(self, project_id: str) -> Project:
        """Return a project."""
        response = await self._send("GET", _PROJECT, ProjectResponse, project_id)
        return response.project

    async def find(self, name: str, *, org_id: str | UnsetType = UNSET) -> Project:
        """Return the project with exactly this name.

        Usually sends one request; projects that are missing from the list are read by id. Projects
        that are shared with the account are not searched.

        Raises LookupFailedError, suggesting other names, if there is no such project, and
        ValueError, listing the ids, if more than one project has the name.
        """
        owner = (
            "the API key's account" if isinstance(org_id, UnsetType) else f"organization {org_id}"
        )
        check_name("name", name)
        wanted = Wanted("project", owner, name)
        listed = self.list(limit=MAX_PAGE, search=name, org_id=org_id)
        projects = await listed.collect()
        found = wanted.only([*projects, *await existing(self, listed.unavailable_project_ids)])
        if found is None:
            sample = await self.list(limit=SAMPLE, org_id=org_id).collect(SAMPLE)
            raise LookupFailedError(wanted.missing(sample))
        return found

    async def create(self, *, wait: Wait = False, **project: Unpack[NewProject]) -> ProjectCreated:
        """Create a project with a default branch, a compute, a role and a database.

        Neon chooses values for unset settings. Starts ``create_timeline`` and ``start_compute``.
        """
        check_settings(NewProject, project)
        body = {"project": drop_unset(**project)}
        return await self._start("POST", "/projects", ProjectCreated, body=body, wait=wait)

    async def update(
        self, project_id: str, *, wait: Wait = False, **changes: Unpack[ProjectChanges]
    ) -> ProjectUpdated:
        """Change a project.

        A new ``history_retention_seconds`` starts ``apply_storage_config``. New settings start
        ``apply_config`` for each compute.
        """
        check_settings(ProjectChanges, changes)
        body = {"project": drop_unset(**changes)}
        return await self._start(
            "PATCH", _PROJECT, ProjectUpdated, project_id, body=body, wait=wait
        )

    async def delete(self, project_id: str, *, wait: Wait = False) -> ProjectDeleted:
        """Delete a project with all its branches. It can be recovered for seven days.

        With ``wait``, the call waits for the operations in the response, such as ``delete_tenant``.
        Neon's published description does not mention these operations.
        """
        return await self._start(
            "DELETE",
            _PROJECT,
            ProjectDeleted,
            project_id,
            wait=wait,
            no_compute=NO_DELETED_COMPUTE,
        )

    async def recover(self, project_id: str, *, wait: Wait = False) -> ProjectRecovered:
        """Recover a deleted project with all its branches. For ``wait``, see :meth:`delete`.

        Beta: Neon may change this endpoint.
        """
        return await self._start(
            "POST", f"{_PROJECT}/recover", ProjectRecovered, project_id, wait=wait
        )

    @overload
    async def wait_for(
        self,
        project_id: str,
        state: Literal["deleted"],
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> None: ...

    @overload
    async def wait_for(
        self,
        project_id: str,
        state: Literal["ready"] = "ready",
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Project: ...

    async def wait_for(
        self,
        project_id: str,
        state: Literal["ready", "deleted"] = "ready",
        *,
        timeout: float | None = DEFAULT_TIMEOUT,
    ) -> Project | None:
        """Wait until a project is ready or deleted, no matter who changes it. Return the project.

        A project is ``ready`` when its default branch is ready, and no operation of the default
        branch or of the whole project is pending. Operations of other branches do not matter;
        :meth:`neon.operations.wait_for_project` waits for them too. Returns None for ``deleted``.

        Raises ValueError for any other state. The other errors are those of
        :meth:`neon.branches.wait_for`.
        """
        if state not in {"ready", "deleted"}:
            raise ValueError(f"state is {state!r}: expected 'ready' or 'deleted'")
        source = ReadyProjectSource(project_id) if state == "ready" else ProjectSource(project_id)
        return await self._runner.states.wait_for(source, state, timeout)

    async def connection_uri(
        self,
        project_id: str,
        *,
        database_name: str,
        role_name: str,
        branch_id: str | UnsetType = UNSET,
        endpoint_id: str | UnsetType = UNSET,
        pooled: bool | UnsetType = UNSET,
    ) -> ConnectionUri:
        """Return the URI, including the password, that connects a role to a database.

        The defaults are the default branch and its ``read_write`` compute. With ``pooled``,
        connections use the pooler.
        """
        response = await self._send(
            "GET",
            f"{_PROJECT}/connection_uri",
            ConnectionURIResponse,
            project_id,
            query={
                "database_name": database_name,
                "role_name": role_name,
                "branch_id": branch_id,
                "endpoint_id": endpoint_id,
                "pooled": pooled,
            },
        )
        return response.uri

    async def list_preload_libraries(
        self, project_id: str
    ) -> builtins.list[AvailablePreloadLibrary]:
        """Return the libraries that the project's version of Postgres can load at startup."""
        response = await self._send(
            "GET",
            f"{_PROJECT}/available_preload_libraries",
            AvailablePreloadLibrariesResponse,
            project_id,
        )
        return response.libraries

    async def list_advisor_issues(
        self,
        project_id: str,
        *,
        branch_id: str | UnsetType = UNSET,
        database_name: str | UnsetType = UNSET,
        category: Literal["SECURITY", "PERFORMANCE"] | UnsetType = UNSET,
        min_severity: Literal["INFO", "WARN", "ERROR"] | UnsetType = UNSET,
    ) -> builtins.list[AdvisorIssue]:
        """Return the issues that Neon's advisors find in a database.

        The Data API must be enabled. The defaults are the default branch and its only database.

        Alpha: Neon may change this endpoint.
        """
        response = await self._send(
            "GET",
            f"{_PROJECT}/advisors",
            AdvisorIssuesResponse,
            project_id,
            query={
                "branch_id": branch_id,
                "database_name": database_name,
                "category": category,
                "min_severity": min_severity,
            },
        )
        return response.issues

    async def list_permissions(self, project_id: str) -> builtins.list[ProjectPermission]:
        """Return the permissions that were granted, not those of the owner and the organization."""
        response = await self._send("GET", _PERMISSIONS, ProjectPermissionsResponse, project_id)
        return response.project_permissions

    async def grant_permission(self, project_id: str, *, email: str) -> ProjectPermission:
        """Grant the account with this email address access to a project."""
        body = drop_unset(email=email)
        return await self._send("POST", _PERMISSIONS, ProjectPermission, project_id, body=body)

    async def revoke_permission(self, project_id: str, permission_id: str) -> ProjectPermission:
        """Revoke a permission."""
        return await self._send(
            "DELETE",
            f"{_PERMISSIONS}/{{permission_id}}",
            ProjectPermission,
            project_id,
            permission_id,
        )

    def list_members(
        self, project_id: str, *, limit: int | UnsetType = UNSET
    ) -> Paginator[ProjectMember]:
        """List the members of the organization that owns a project, and their roles on it.

        ``limit`` is the page size. Members without access are included only for administrators of
        the project. Raises NotFoundError if the project belongs to a user, or if roles are
        disabled.
        """
        check_within("limit", limit, 1)
        first = request("GET", _MEMBERS, ProjectMembersPage, project_id, query={"limit": limit})
        return self._paginate(first, lambda page: page.project_members, attrgetter("member_id"))

    async def set_member_role(
        self,
        project_id: str,
        member_id: str,
        *,
        role: str,
        confirm_self_demotion: bool | UnsetType = UNSET,
    ) -> ProjectMemberUpdated:
        """Set an organization member's role on a project.

        ``member_id`` is the id of the membership, not of the user. ``role`` is a
        :class:`ProjectRole`. To lower your own role, pass ``confirm_self_demotion=True``.
        """
        return await self._send(
            "PUT",
            _MEMBER_ROLE,
            ProjectMemberUpdated,
            project_id,
            member_id,
            query={"confirm_self_demotion": confirm_self_demotion},
            body=drop_unset(role=role),
        )

    async def remove_member_role(
        self, project_id: str, member_id: str, *, confirm_self_lockout: bool | UnsetType = UNSET
    ) -> ProjectMemberUpdated:
        """Remove an organization member's role on a project. Repeating the call is safe.

        The member keeps the permissions that come with the role in the organization. To give up
        your own permission to manage the project, pass ``confirm_self_lockout=True``.
        """
        return await self._send(
            "DELETE",
            _MEMBER_ROLE,
            ProjectMemberUpdated,
            project_id,
            member_id,
            query={"confirm_self_lockout": confirm_self_lockout},
        )

    async def create_transfer_request(
        self, project_id: str, *, ttl_seconds: int | UnsetType = UNSET
    ) -> TransferRequest:
        """Offer a project to another account for ``ttl_seconds``, by default one day.

        Keep the id of the request secret: anyone who knows it can take over the project.
        """
        body = drop_unset(ttl_seconds=ttl_seconds) or UNSET
        return await self._send("POST", _TRANSFERS, TransferRequest, project_id, body=body)

    async def accept_transfer_request(
        self, project_id: str, request_id: str, *, org_id: str | UnsetType = UNSET
    ) -> None:
        """Accept an offered project. It moves to ``org_id``, or to the account of the API key."""
        body = drop_unset(org_id=org_id) or UNSET
        await self._send(
            "PUT", f"{_TRANSFERS}/{{request_id}}", Empty, project_id, request_id, body=body
        )

    async def list_jwks(self, project_id: str) -> builtins.list[JWKS]:
        """Return the key sets that verify JSON Web Tokens."""
        response = await self._send("GET", _JWKS, JWKSResponse, project_id)
        return response.jwks

    async def add_jwks(
        self,
        project_id: str,
        *,
        jwks_url: str,
        provider_name: str,
        branch_id: str | UnsetType = UNSET,
        jwt_audience: str | UnsetType = UNSET,
        skip_role_creation: bool | UnsetType = UNSET,
        wait: Wait = False,
    ) -> JWKSCreated:
        """Add the key set at ``jwks_url``, an HTTPS address of the provider.

        It applies only to ``branch_id`` or, if that is unset, to all branches. If ``jwt_audience``
        is set, tokens must be for this audience. For ``wait``, see :meth:`neon.branches.create`.
        """
        body = drop_unset(
            jwks_url=jwks_url,
            provider_name=provider_name,
            branch_id=branch_id,
            jwt_audience=jwt_audience,
            skip_role_creation=skip_role_creation,
        )
        return await self._start("POST", _JWKS, JWKSCreated, project_id, body=body, wait=wait)

    async def delete_jwks(self, project_id: str, jwks_id: str) -> JWKS:
        """Remove a key set. Tokens signed with its keys are no longer accepted."""
        return await self._send("DELETE", f"{_JWKS}/{{jwks_id}}", JWKS, project_id, jwks_id)

    async def list_vpc_endpoints(self, project_id: str) -> builtins.list[VPCEndpoint]:
        """Return the VPC endpoints that connections are restricted to."""
        response = await self._send("GET", _VPC_ENDPOINTS, VPCEndpointsResponse, project_id)
        return response.endpoints

    async def assign_vpc_endpoint(
        self, project_id: str, vpc_endpoint_id: str, *, label: str
    ) -> None:
        """Restrict connections to a VPC endpoint of the organization, or change its label."""
        await self._send(
            "POST", _VPC_ENDPOINT, Empty, project_id, vpc_endpoint_id, body=drop_unset(label=label)
        )

    async def delete_vpc_endpoint(self, project_id: str, vpc_endpoint_id: str) -> None:
        """Remove the restriction to a VPC endpoint."""
        await self._send("DELETE", _VPC_ENDPOINT, Empty, project_id, vpc_endpoint_id)


async def existing(projects: Projects, ids: Iterable[str]) -> builtins.list[Project]:
    """Read projects by id, one after another. Leave out those that do not exist."""
    found: list[Project] = []
    for project_id in ids:
        with suppress(NotFoundError):
            found.append(await projects.get(project_id))
    return found
