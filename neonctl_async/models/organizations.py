"""Organizations, their members, and those who were invited."""

from neonctl_async.models.base import Model, OpenEnum, Pagination, Timestamp


class VPCEndpoint(Model, kw_only=True):
    """A VPC endpoint and the label it was assigned with."""

    vpc_endpoint_id: str
    label: str | None = None


class VPCEndpointWithRegion(VPCEndpoint, kw_only=True):
    """A VPC endpoint of an organization, and its region."""

    region_id: str


class VPCEndpointDetails(VPCEndpoint, kw_only=True):
    """A VPC endpoint, its state, and the projects that are restricted to it."""

    state: str | None = None
    num_restricted_projects: int | None = None
    example_restricted_projects: list[str] = []


class VPCEndpointsResponse(Model, kw_only=True):
    """The answer that lists VPC endpoints of a region or a project."""

    endpoints: list[VPCEndpoint]


class VPCEndpointsWithRegionResponse(Model, kw_only=True):
    """The answer that lists VPC endpoints of all regions."""

    endpoints: list[VPCEndpointWithRegion]


class MemberRole(OpenEnum):
    """What a member of an organization may do."""

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
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    allow_hipaa_projects: bool | None = None
    require_mfa: bool | None = None


class OrganizationsResponse(Model, kw_only=True):
    """The answer of ``GET /users/me/organizations``."""

    organizations: list[Organization]


class Member(Model, kw_only=True):
    """A user's membership of an organization; its ``id`` is not the user's."""

    id: str
    user_id: str
    org_id: str
    role: MemberRole
    joined_at: Timestamp | None = None


class MemberUser(Model, kw_only=True):
    """The account of a member."""

    email: str
    has_mfa: bool | None = None
    deactivated_at: Timestamp | None = None


class MemberWithUser(Model, kw_only=True):
    """A membership and the account it is of."""

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
    invited_at: Timestamp | None = None


class InvitationSpec(Model, kw_only=True):
    """Whom to invite. ``role`` is a :class:`MemberRole`."""

    email: str
    role: str


class InvitationsResponse(Model, kw_only=True):
    """The answer that lists invitations."""

    invitations: list[Invitation]


class SpendingLimit(Model, kw_only=True):
    """What an organization may spend in a month, in cents; None is no limit."""

    spending_limit_cents: int | None = None
