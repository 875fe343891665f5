"""Postgres roles of a branch."""

from neonctl_async.models.base import Model, Timestamp
from neonctl_async.models.operations import Operation, OperationsResponse
from neonctl_async.models.secret import Secret


class Role(Model, kw_only=True):
    """A Postgres role of a branch."""

    branch_id: str
    name: str
    created_at: Timestamp
    updated_at: Timestamp
    password: Secret | None = None
    """The password; set only in responses that create the role or reset its password."""
    protected: bool | None = None
    """True for a role that Neon manages."""
    authentication_method: str | None = None


class RoleUpdated(OperationsResponse, kw_only=True):
    """A role, and the operations that create or change it."""

    role: Role


class EnsuredRole(OperationsResponse, kw_only=True):
    """A role that exists.

    ``role.password`` is set only if the call created the role. Otherwise, call
    :meth:`neon.roles.reveal_password`.
    """

    role: Role
    created: bool
    """True if a response confirmed that this call created the role."""


class RoleDeleted(OperationsResponse, kw_only=True):
    """The response to the deletion of a role. Both fields are empty after a 204 response."""

    role: Role | None = None
    operations: list[Operation] = []


class RoleResponse(Model, kw_only=True):
    """A response that contains one role."""

    role: Role


class RolesResponse(Model, kw_only=True):
    """A response that lists the roles of a branch."""

    roles: list[Role]


class RolePasswordResponse(Model, kw_only=True):
    """A response that contains the password of a role."""

    password: Secret
