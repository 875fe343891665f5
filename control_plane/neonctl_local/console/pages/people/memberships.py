"""The signed-in person's membership in an organization, which determines what pages offer."""

import msgspec

from neonctl_local.console.pages.people.records import Organization
from neonctl_local.console.visits import Visit
from neonctl_local.errors import forbidden, not_found
from neonctl_local.storage.tables import Member
from neonctl_local.storage.transactions import Transaction


class Membership(msgspec.Struct, frozen=True):
    """An organization, and the role of the signed-in person in it."""

    organization: Organization
    role: str

    @property
    def is_admin(self) -> bool:
        """True if the person is an administrator of the organization."""
        return self.role == "admin"

    def require_admin(self) -> None:
        """Raise 403, as the API does, unless the person is an administrator."""
        if not self.is_admin:
            raise forbidden("only an administrator of the organization can do this")


async def read_membership(visit: Visit) -> Membership:
    """Return the membership in the organization that the path names. Raise 404 if there is none."""
    org_id = visit.path["org_id"]
    organization = await visit.call("GET /organizations/{org_id}", Organization, org_id=org_id)
    role = await visit.read(_role, org_id, visit.session.user_id)
    if role is None:
        raise not_found("organization", org_id)
    return Membership(organization, role)


def _role(tx: Transaction, org_id: str, user_id: str) -> str | None:
    member = tx.first(Member, "WHERE org_id = ? AND user_id = ?", org_id, user_id)
    return None if member is None else member.role
