"""Postgres roles of a branch."""

from neonctl_async.models.base import Model, Timestamp
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
