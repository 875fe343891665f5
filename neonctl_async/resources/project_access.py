"""Access to a project: permissions, members, transfers, JSON Web Key Sets, VPC endpoints."""

from operator import attrgetter

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Empty
from neonctl_async.models.organizations import VPCEndpoint, VPCEndpointsResponse
from neonctl_async.models.project_access import (
    JWKS,
    JWKSCreated,
    JWKSResponse,
    ProjectMember,
    ProjectMembersPage,
    ProjectMemberUpdated,
    ProjectPermission,
    ProjectPermissionsResponse,
    TransferRequest,
)
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import Resource, check_within, drop_unset
from neonctl_async.transport.protocol import request
from neonctl_async.waiting.options import Wait

_PROJECT = "/projects/{project_id}"
_PERMISSIONS = f"{_PROJECT}/permissions"
_MEMBERS = f"{_PROJECT}/members"
_MEMBER_ROLE = f"{_MEMBERS}/{{member_id}}/role"
_TRANSFERS = f"{_PROJECT}/transfer_requests"
_JWKS = f"{_PROJECT}/jwks"
_VPC_ENDPOINTS = f"{_PROJECT}/vpc_endpoints"
_VPC_ENDPOINT = f"{_VPC_ENDPOINTS}/{{vpc_endpoint_id}}"


class ProjectAccess(Resource):
    """The methods of :class:`Projects` that control the access to a project."""

    async def list_permissions(self, project_id: str) -> list[ProjectPermission]:
        """Return the permissions. They do not include the owner and the organization's members."""
        response = await self._send("GET", _PERMISSIONS, ProjectPermissionsResponse, project_id)
        return response.project_permissions

    async def grant_permission(self, project_id: str, *, email: str) -> ProjectPermission:
        """Grant the account with an email address access to a project."""
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
        the project. Raises NotFoundError for a project of a user, or if roles are disabled.
        """
        check_within("limit", limit, 1)
        first = request("GET", _MEMBERS, ProjectMembersPage, project_id, query={"limit": limit})
        return self._requester.paginate(
            first, lambda page: page.project_members, attrgetter("member_id")
        )

    async def set_member_role(
        self,
        project_id: str,
        member_id: str,
        *,
        role: str,
        confirm_self_demotion: bool | UnsetType = UNSET,
    ) -> ProjectMemberUpdated:
        """Set the role of an organization's member on a project.

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
        """Remove the role of an organization's member on a project. This can be repeated.

        The member keeps the permissions that belong to the role in the organization. To give up
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

    async def list_jwks(self, project_id: str) -> list[JWKS]:
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

        It applies to all branches, or only to ``branch_id``. Tokens need the audience
        ``jwt_audience``, if set. For ``wait``, see :meth:`neon.branches.create`.
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
        """Remove a key set. Tokens that its keys signed are no longer accepted."""
        return await self._send("DELETE", f"{_JWKS}/{{jwks_id}}", JWKS, project_id, jwks_id)

    async def list_vpc_endpoints(self, project_id: str) -> list[VPCEndpoint]:
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
