"""Organizations: members, invitations, API keys, spending limit, VPC endpoints, transfers."""

from collections.abc import Sequence
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
_MEMBER = f"{_ORGANIZATION}/members/{{member_id}}"
_SPENDING_LIMIT = f"{_ORGANIZATION}/billing/spending_limit"
_VPC_ENDPOINTS = f"{_ORGANIZATION}/vpc/region/{{region_id}}/vpc_endpoints"
_VPC_ENDPOINT = f"{_VPC_ENDPOINTS}/{{vpc_endpoint_id}}"


class Organizations(Resource):
    """Organizations. Most of what changes one takes an administrator's key."""

    async def get(self, org_id: str) -> Organization:
        """One organization."""
        return await self._requester.send(request("GET", _ORGANIZATION, Organization, org_id))

    def list_members(
        self,
        org_id: str,
        *,
        limit: int | UnsetType = UNSET,
        sort_by: Literal["email", "role", "joined_at"] | UnsetType = UNSET,
        sort_order: SortOrder | UnsetType = UNSET,
    ) -> Paginator[MemberWithUser]:
        """The members, last joined first unless told otherwise.

        ``limit`` is the size of a page, 1 to 500.
        """
        check_within("limit", limit, 1, MAX_PAGE)
        first = request(
            "GET",
            f"{_ORGANIZATION}/members",
            MembersPage,
            org_id,
            query={"limit": limit, "sort_by": sort_by, "sort_order": sort_order},
        )
        return self._requester.paginate(
            first, lambda page: page.members, lambda listed: listed.member.id
        )

    async def get_member(self, org_id: str, member_id: str) -> Member:
        """One membership; ``member_id`` is its id, not the user's."""
        return await self._requester.send(request("GET", _MEMBER, Member, org_id, member_id))

    async def update_member(self, org_id: str, member_id: str, *, role: str) -> Member:
        """Give a member another role, a :class:`MemberRole`."""
        return await self._requester.send(
            request("PATCH", _MEMBER, Member, org_id, member_id, body=drop_unset(role=role))
        )

    async def remove_member(self, org_id: str, member_id: str) -> None:
        """End a membership. The last administrator stays."""
        await self._requester.send(request("DELETE", _MEMBER, Empty, org_id, member_id))

    async def list_invitations(self, org_id: str) -> list[Invitation]:
        """Who was invited, accepted invitations included."""
        response = await self._requester.send(
            request("GET", f"{_ORGANIZATION}/invitations", InvitationsResponse, org_id)
        )
        return response.invitations

    async def create_invitations(
        self, org_id: str, *, invitations: Sequence[InvitationSpec]
    ) -> list[Invitation]:
        """Invite people by email. Who has an account is a member at once."""
        response = await self._requester.send(
            request(
                "POST",
                f"{_ORGANIZATION}/invitations",
                InvitationsResponse,
                org_id,
                body=drop_unset(invitations=as_list("invitations", invitations)),
            )
        )
        return response.invitations

    async def list_api_keys(self, org_id: str) -> list[ApiKey]:
        """The keys of an organization, without their tokens."""
        return await self._requester.send(
            request("GET", f"{_ORGANIZATION}/api_keys", list[ApiKey], org_id)
        )

    async def create_api_key(
        self, org_id: str, *, key_name: str, project_id: str | UnsetType = UNSET
    ) -> ApiKeyCreated:
        """Create a key for an organization, or for one of its projects with ``project_id``.

        Needs a personal key: of an administrator for an organization key, of any member for a
        project-scoped one. The token is in this answer and never shown again.
        """
        return await self._requester.send(
            request(
                "POST",
                f"{_ORGANIZATION}/api_keys",
                ApiKeyCreated,
                org_id,
                body=drop_unset(key_name=key_name, project_id=project_id),
            )
        )

    async def revoke_api_key(self, org_id: str, key_id: int) -> ApiKeyRevoked:
        """Revoke an organization or project-scoped key, as an administrator."""
        return await self._requester.send(
            request("DELETE", f"{_ORGANIZATION}/api_keys/{{key_id}}", ApiKeyRevoked, org_id, key_id)
        )

    async def get_spending_limit(self, org_id: str) -> SpendingLimit:
        """What the organization may spend in a month."""
        return await self._requester.send(request("GET", _SPENDING_LIMIT, SpendingLimit, org_id))

    async def set_spending_limit(self, org_id: str, *, spending_limit_cents: int) -> SpendingLimit:
        """Limit what the organization may spend in a month, in cents, 1 or more.

        The platform sends mails at 80 % and 100 % of it; nothing is suspended.
        """
        return await self._requester.send(
            request(
                "PUT",
                _SPENDING_LIMIT,
                SpendingLimit,
                org_id,
                body=drop_unset(spending_limit_cents=spending_limit_cents),
            )
        )

    async def delete_spending_limit(self, org_id: str) -> None:
        """Remove the spending limit, if there is one."""
        await self._requester.send(request("DELETE", _SPENDING_LIMIT, Empty, org_id))

    async def list_vpc_endpoints(self, org_id: str) -> list[VPCEndpointWithRegion]:
        """The VPC endpoints of an organization, in all regions."""
        response = await self._requester.send(
            request(
                "GET", f"{_ORGANIZATION}/vpc/vpc_endpoints", VPCEndpointsWithRegionResponse, org_id
            )
        )
        return response.endpoints

    async def list_region_vpc_endpoints(self, org_id: str, region_id: str) -> list[VPCEndpoint]:
        """The VPC endpoints of an organization in one region."""
        response = await self._requester.send(
            request("GET", _VPC_ENDPOINTS, VPCEndpointsResponse, org_id, region_id)
        )
        return response.endpoints

    async def get_vpc_endpoint(
        self, org_id: str, region_id: str, vpc_endpoint_id: str
    ) -> VPCEndpointDetails:
        """The state of a VPC endpoint, and the projects that are restricted to it."""
        return await self._requester.send(
            request("GET", _VPC_ENDPOINT, VPCEndpointDetails, org_id, region_id, vpc_endpoint_id)
        )

    async def assign_vpc_endpoint(
        self, org_id: str, region_id: str, vpc_endpoint_id: str, *, label: str
    ) -> None:
        """Assign a VPC endpoint to an organization, or give it another label."""
        await self._requester.send(
            request(
                "POST",
                _VPC_ENDPOINT,
                Empty,
                org_id,
                region_id,
                vpc_endpoint_id,
                body=drop_unset(label=label),
            )
        )

    async def delete_vpc_endpoint(self, org_id: str, region_id: str, vpc_endpoint_id: str) -> None:
        """Take a VPC endpoint away from an organization, for good: it cannot come back."""
        await self._requester.send(
            request("DELETE", _VPC_ENDPOINT, Empty, org_id, region_id, vpc_endpoint_id)
        )

    async def transfer_projects(
        self, source_org_id: str, *, destination_org_id: str, project_ids: Sequence[str]
    ) -> None:
        """Hand projects over to another organization, as an administrator who is a member of both.

        Keys scoped to them stop working. To an account that one is no member of, offer a project
        by :meth:`Projects.create_transfer_request`.
        """
        await self._requester.send(
            request(
                "POST",
                "/organizations/{source_org_id}/projects/transfer",
                Empty,
                source_org_id,
                body=drop_unset(
                    destination_org_id=destination_org_id,
                    project_ids=as_list("project_ids", project_ids),
                ),
            )
        )
