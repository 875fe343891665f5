"""Postgres roles of a branch."""

from neonctl_async.models.base import Model, Timestamp
from neonctl_async.models.operations import Operation, OperationsResponse
from neonctl_async.models.secret import Secret


class Role(Model, kw_only=True):
    """A role. ``password`` is there only in answers that create the role or reset its password."""

    branch_id: str
    name: str
    created_at: Timestamp
    updated_at: Timestamp
    password: Secret | None = None
    protected: bool | None = None
    authentication_method: str | None = None


class RoleUpdated(OperationsResponse, kw_only=True):
    """A role, and the operations that create or change it."""

    role: Role


class RoleDeleted(OperationsResponse, kw_only=True):
    """The answer to a role deletion. Both parts are empty where the platform answers 204."""

    role: Role | None = None
    operations: list[Operation] = []


class RoleResponse(Model, kw_only=True):
    """The answer that shows one role."""

    role: Role


class RolesResponse(Model, kw_only=True):
    """The answer that lists the roles of a branch."""

    roles: list[Role]


class RolePasswordResponse(Model, kw_only=True):
    """The answer that reveals the password of a role."""

    password: Secret
