"""Databases of a branch."""

from neonctl_async.models.base import Model, Timestamp


class Database(Model, kw_only=True):
    """A database and the role that owns it."""

    id: int
    branch_id: str
    name: str
    owner_name: str
    created_at: Timestamp
    updated_at: Timestamp
