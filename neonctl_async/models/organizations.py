"""Organizations: members, invitations, spending limits and VPC endpoints."""

from neonctl_async.models.base import Model, OpenEnum, Pagination, Timestamp


class VPCEndpoint(Model, kw_only=True):
    """A VPC endpoint and its label."""

    vpc_endpoint_id: str
    label: str | None = None


class VPCEndpointWithRegion(VPCEndpoint, kw_only=True):
    """A VPC endpoint of an organization, and its region."""

    region_id: str


class VPCEndpointDetails(VPCEndpoint, kw_only=True):
    """A VPC endpoint with its state and some of the projects that are restricted to it."""

    state: str | None = None
    num_restricted_projects: int | None = None
    example_restricted_projects: list[str] = []
    """The ids of some of the projects that are restricted to the VPC endpoint."""


class VPCEndpointsResponse(Model, kw_only=True):
    """A response that lists the VPC endpoints of a region or a project."""

    endpoints: list[VPCEndpoint]


class VPCEndpointsWithRegionResponse(Model, kw_only=True):
    """A response that lists the VPC endpoints of all regions."""

    endpoints: list[VPCEndpointWithRegion]


class MemberRole(OpenEnum):
    """The role of a member, which defines the member's permissions."""

    ADMIN = "admin"
    MEMBER = "member"
    EDITOR = "editor"
    VIEWER = "viewer"
    COLLABORATOR = "collaborator"


class Organization(Model, kw_only=True):
    """An organization."""

    id: str
    name: str
    handle: str | None = None
    plan: str | None = None
    managed_by: str | None = None
    """``console`` for organizations that were created in the Neon console or through the API."""
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    allow_hipaa_projects: bool | None = None
    require_mfa: bool | None = None


class OrganizationsResponse(Model, kw_only=True):
    """The response to ``GET /users/me/organizations``."""

    organizations: list[Organization]


class Member(Model, kw_only=True):
    """The membership of a user in an organization."""

    id: str
    """The membership's id. The user's id is ``user_id``."""
    user_id: str
    org_id: str
    role: MemberRole
    joined_at: Timestamp | None = None


class MemberUser(Model, kw_only=True):
    """The account of a member."""

    email: str
    has_mfa: bool | None = None
    """True if the account uses multi-factor authentication."""
    deactivated_at: Timestamp | None = None


class MemberWithUser(Model, kw_only=True):
    """A membership and the member's account."""

    member: Member
    user: MemberUser


class MembersPage(Model, kw_only=True):
    """A page of ``GET /organizations/{org_id}/members``."""

    members: list[MemberWithUser]
    pagination: Pagination | None = None


class Invitation(Model, kw_only=True):
    """An invitation to join an organization."""

    id: str
    email: str
    org_id: str
    role: MemberRole
    invited_by: str | None = None
    """The id of the user who sent the invitation."""
    invited_at: Timestamp | None = None


class InvitationSpec(Model, kw_only=True):
    """An invitation to send."""

    email: str
    role: str
    """A :class:`MemberRole`, such as ``member``."""


class InvitationsResponse(Model, kw_only=True):
    """A response that lists invitations."""

    invitations: list[Invitation]


class SpendingLimit(Model, kw_only=True):
    """The monthly spending limit of an organization."""

    spending_limit_cents: int | None = None
    """In cents. None means no limit."""
