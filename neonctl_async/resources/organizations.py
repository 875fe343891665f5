"""Organizations: members, invitations, API keys, spending limit, VPC endpoints, transfers."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Literal

from msgspec import UNSET, UnsetType

from neonctl_async.models.api_keys import ApiKey, ApiKeyCreated, ApiKeyRevoked
from neonctl_async.models.base import Empty
from neonctl_async.models.organizations import (
    Invitation,
    InvitationSpec,
    InvitationsResponse,
    Member,
    MembersPage,
    MemberWithUser,
    Organization,
    SpendingLimit,
    VPCEndpoint,
    VPCEndpointDetails,
    VPCEndpointsResponse,
    VPCEndpointsWithRegionResponse,
    VPCEndpointWithRegion,
)
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import Resource, SortOrder, as_list, check_within, drop_unset
from neonctl_async.transport.protocol import request

MAX_PAGE = 500

_ORGANIZATION = "/organizations/{org_id}"
_INVITATIONS = f"{_ORGANIZATION}/invitations"
_API_KEYS = f"{_ORGANIZATION}/api_keys"
_MEMBER = f"{_ORGANIZATION}/members/{{member_id}}"
_SPENDING_LIMIT = f"{_ORGANIZATION}/billing/spending_limit"
_VPC_ENDPOINTS = f"{_ORGANIZATION}/vpc/region/{{region_id}}/vpc_endpoints"
_VPC_ENDPOINT = f"{_VPC_ENDPOINTS}/{{vpc_endpoint_id}}"


class Organizations(Resource):
    """Organizations. Most changes need an administrator's API key."""

    async def get(self, org_id: str) -> Organization:
        """Return an organization."""
        return await self._send("GET", _ORGANIZATION, Organization, org_id)

    def list_members(
        self,
        org_id: str,
        *,
        limit: int | UnsetType = UNSET,
        sort_by: Literal["email", "role", "joined_at"] | UnsetType = UNSET,
        sort_order: SortOrder | UnsetType = UNSET,
    ) -> Paginator[MemberWithUser]:
        """List the members, by default the newest first.

        ``limit`` is the page size, 1 to 500.
        """
        check_within("limit", limit, 1, MAX_PAGE)
        first = request(
            "GET",
            f"{_ORGANIZATION}/members",
            MembersPage,
            org_id,
            query={"limit": limit, "sort_by": sort_by, "sort_order": sort_order},
        )
        return self._paginate(first, lambda page: page.members, attrgetter("member.id"))

    async def get_member(self, org_id: str, member_id: str) -> Member:
        """Return a membership. ``member_id`` is the id of the membership, not of the user."""
        return await self._send("GET", _MEMBER, Member, org_id, member_id)

    async def update_member(self, org_id: str, member_id: str, *, role: str) -> Member:
        """Change the role of a member. ``role`` is a :class:`MemberRole`."""
        return await self._send(
            "PATCH", _MEMBER, Member, org_id, member_id, body=drop_unset(role=role)
        )

    async def remove_member(self, org_id: str, member_id: str) -> None:
        """Remove a member. The last administrator cannot be removed."""
        await self._send("DELETE", _MEMBER, Empty, org_id, member_id)

    async def list_invitations(self, org_id: str) -> list[Invitation]:
        """Return all invitations, including accepted ones."""
        response = await self._send("GET", _INVITATIONS, InvitationsResponse, org_id)
        return response.invitations

    async def create_invitations(
        self, org_id: str, *, invitations: Sequence[InvitationSpec]
    ) -> list[Invitation]:
        """Invite people by email. People with a Neon account become members immediately."""
        body = drop_unset(invitations=as_list("invitations", invitations))
        response = await self._send("POST", _INVITATIONS, InvitationsResponse, org_id, body=body)
        return response.invitations

    async def list_api_keys(self, org_id: str) -> list[ApiKey]:
        """Return the API keys of an organization, without their tokens."""
        return await self._send("GET", _API_KEYS, list[ApiKey], org_id)

    async def create_api_key(
        self, org_id: str, *, key_name: str, project_id: str | UnsetType = UNSET
    ) -> ApiKeyCreated:
        """Create an API key for an organization, or with ``project_id`` for one project only.

        Creating an organization key requires an administrator's personal key. For a project-scoped
        key, any member's personal key is enough. The result contains the secret token. Neon returns
        the token only once.
        """
        body = drop_unset(key_name=key_name, project_id=project_id)
        return await self._send("POST", _API_KEYS, ApiKeyCreated, org_id, body=body)

    async def revoke_api_key(self, org_id: str, key_id: int) -> ApiKeyRevoked:
        """Revoke an organization or project-scoped key. Requires an administrator's API key."""
        return await self._send("DELETE", f"{_API_KEYS}/{{key_id}}", ApiKeyRevoked, org_id, key_id)

    async def get_spending_limit(self, org_id: str) -> SpendingLimit:
        """Return the monthly spending limit of an organization.

        Beta: Neon may change this endpoint.
        """
        return await self._send("GET", _SPENDING_LIMIT, SpendingLimit, org_id)

    async def set_spending_limit(self, org_id: str, *, spending_limit_cents: int) -> SpendingLimit:
        """Set the monthly spending limit of an organization, in cents, at least 1.

        Neon sends emails at 80 % and 100 % of the limit, but does not suspend anything.

        Beta: Neon may change this endpoint.
        """
        body = drop_unset(spending_limit_cents=spending_limit_cents)
        return await self._send("PUT", _SPENDING_LIMIT, SpendingLimit, org_id, body=body)

    async def delete_spending_limit(self, org_id: str) -> None:
        """Remove the spending limit, if there is one.

        Beta: Neon may change this endpoint.
        """
        await self._send("DELETE", _SPENDING_LIMIT, Empty, org_id)

    async def list_vpc_endpoints(self, org_id: str) -> list[VPCEndpointWithRegion]:
        """Return the VPC endpoints of an organization in all regions."""
        response = await self._send(
            "GET", f"{_ORGANIZATION}/vpc/vpc_endpoints", VPCEndpointsWithRegionResponse, org_id
        )
        return response.endpoints

    async def list_region_vpc_endpoints(self, org_id: str, region_id: str) -> list[VPCEndpoint]:
        """Return the VPC endpoints of an organization in one region."""
        response = await self._send("GET", _VPC_ENDPOINTS, VPCEndpointsResponse, org_id, region_id)
        return response.endpoints

    async def get_vpc_endpoint(
        self, org_id: str, region_id: str, vpc_endpoint_id: str
    ) -> VPCEndpointDetails:
        """Return the state of a VPC endpoint, and some of the projects restricted to it."""
        return await self._send(
            "GET", _VPC_ENDPOINT, VPCEndpointDetails, org_id, region_id, vpc_endpoint_id
        )

    async def assign_vpc_endpoint(
        self, org_id: str, region_id: str, vpc_endpoint_id: str, *, label: str
    ) -> None:
        """Assign a VPC endpoint to an organization, or change its label."""
        body = drop_unset(label=label)
        await self._send(
            "POST", _VPC_ENDPOINT, Empty, org_id, region_id, vpc_endpoint_id, body=body
        )

    async def delete_vpc_endpoint(self, org_id: str, region_id: str, vpc_endpoint_id: str) -> None:
        """Remove a VPC endpoint from an organization. It cannot be assigned again."""
        await self._send("DELETE", _VPC_ENDPOINT, Empty, org_id, region_id, vpc_endpoint_id)

    async def transfer_projects(
        self, source_org_id: str, *, destination_org_id: str, project_ids: Sequence[str]
    ) -> None:
        """Move projects to another organization. Their project-scoped keys stop working.

        This requires the API key of an administrator who is a member of both organizations. For
        other accounts, use :meth:`neon.projects.create_transfer_request`.
        """
        body = drop_unset(
            destination_org_id=destination_org_id,
            project_ids=as_list("project_ids", project_ids),
        )
        await self._send(
            "POST",
            "/organizations/{source_org_id}/projects/transfer",
            Empty,
            source_org_id,
            body=body,
        )
