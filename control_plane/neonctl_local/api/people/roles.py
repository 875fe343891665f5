"""The roles of members. Neon publishes more roles than the local control plane has."""

from neonctl_local.api.request.bodies import PublishedRole
from neonctl_local.errors import unprocessable
from neonctl_local.storage.tables import MemberRole


def served(role: PublishedRole) -> MemberRole:
    """Return a role that organizations have. Raise 422 for any other role."""
    if role in ("admin", "member"):
        return role
    raise unprocessable(f"the role {role!r} is not available here: use 'admin' or 'member'")
