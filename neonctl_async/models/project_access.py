"""Access to a project: permissions, members, transfer requests, JSON Web Key Sets."""

from neonctl_async.models.base import Model, OpenEnum, Pagination, Timestamp
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.models.organizations import MemberRole
from neonctl_async.models.projects import ProjectPermissionLevel


class ProjectPermission(Model, kw_only=True):
    """A permission of a user to access a project."""

    id: str
    granted_to_email: str
    granted_at: Timestamp | None = None
    revoked_at: Timestamp | None = None


class ProjectPermissionsResponse(Model, kw_only=True):
    """A response that lists the permissions of a project."""

    project_permissions: list[ProjectPermission]


class ProjectRole(OpenEnum):
    """The role of an organization's member on a project."""

    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"


class ProjectMemberGrantSource(OpenEnum):
    """The origin of a member's permissions for a project.

    They were granted (``explicit``), or belong to the member's role in the organization.
    ``unassigned`` means that there are none.
    """

    EXPLICIT = "explicit"
    ORG_ROLE_DEFAULT = "org_role_default"
    ORG_ADMIN_OVERRIDE = "org_admin_override"
    UNASSIGNED = "unassigned"


class ProjectMemberPermissions(Model, kw_only=True):
    """The permissions of an organization's member for a project."""

    member_id: str
    """The id of the membership. The id of the user is ``user_id``."""
    user_id: str
    org_role: MemberRole
    """The role in the organization."""
    email: str | None = None
    name: str | None = None
    project_role: ProjectRole | None = None
    """The role on the project."""
    org_default_project_permission: ProjectPermissionLevel | None = None
    """The permissions that belong to ``org_role``."""
    explicit_project_permission: ProjectPermissionLevel | None = None
    """The permissions that were granted for the project."""
    effective_project_permission: ProjectPermissionLevel | None = None
    """The permissions that apply."""


class ProjectMember(ProjectMemberPermissions, kw_only=True):
    """A member of the organization that owns a project, and the member's permissions."""

    grant_source: ProjectMemberGrantSource | None = None
    """The origin of ``effective_project_permission``."""


class ProjectMemberUpdated(ProjectMemberPermissions, kw_only=True):
    """A member whose role on a project was set or removed."""

    project_id: str
    credential_rotation_recommended: bool | None = None
    """True if the member may know passwords of databases that you should now reset."""
    org_api_key_rotation_recommended: bool | None = None
    """True if the member has created keys for the project that you should now revoke."""


class ProjectMembersPage(Model, kw_only=True):
    """A page of ``GET /projects/{project_id}/members``."""

    project_members: list[ProjectMember]
    pagination: Pagination | None = None


class TransferRequest(Model, kw_only=True):
    """An offer to transfer a project to another account."""

    id: str
    """The id that accepts the offer. Anyone who knows it can take over the project."""
    project_id: str
    created_at: Timestamp | None = None
    expires_at: Timestamp | None = None


class JWKS(Model, kw_only=True):
    """A JSON Web Key Set: the keys that verify the JSON Web Tokens of a provider."""

    id: str
    project_id: str
    jwks_url: str
    """The URL of the keys."""
    provider_name: str
    branch_id: str | None = None
    """The branch that accepts the tokens; None for all branches."""
    jwt_audience: str | None = None
    """The required ``aud`` claim of the tokens."""
    role_names: list[str] | None = None
    """The Postgres roles that the tokens may use."""
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None


class JWKSCreated(OperationsResponse, kw_only=True):
    """A new key set, and the operations that configure the computes for it."""

    jwks: JWKS


class JWKSResponse(Model, kw_only=True):
    """A response that lists the key sets of a project."""

    jwks: list[JWKS]
