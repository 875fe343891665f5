"""The published requests about invitations to an organization."""

from collections.abc import Sequence

from neonctl_local.api.people.organizations import member_role
from neonctl_local.api.request import access
from neonctl_local.api.request.access import Level
from neonctl_local.api.request.bodies import Body, Email, PublishedRole
from neonctl_local.api.request.calls import Call, Json, Response, fields, respond
from neonctl_local.engine import invitations
from neonctl_local.errors import conflict
from neonctl_local.storage.tables import Invitation
from neonctl_local.storage.transactions import Transaction


class InvitationSpec(Body, frozen=True):
    """An invitation to create."""

    email: Email
    role: PublishedRole


class InvitationsCreate(Body, frozen=True):
    """Invitations to create: either all or none of them are created."""

    invitations: list[InvitationSpec]


def create(tx: Transaction, call: Call) -> Response:
    """``POST /organizations/{org_id}/invitations``, with an administrator's personal key."""
    organization = access.organization(tx, call, Level.ADMIN)
    access.personal_user_id(call)
    specs = call.body(InvitationsCreate).invitations
    _check_each_is_invited_once([spec.email for spec in specs])
    created = [
        invitations.invite(
            tx, organization.id, spec.email, member_role(spec.role), call.principal.created_by
        )
        for spec in specs
    ]
    return respond({"invitations": [record(invitation) for invitation in created]})


def list_organization(tx: Transaction, call: Call) -> Response:
    """``GET /organizations/{org_id}/invitations``: list pending and accepted ones, newest first."""
    organization = access.organization(tx, call)
    shown = [
        record(invitation)
        for invitation in invitations.list_all(tx, organization)
        if invitations.status(invitation, tx.now) in {"pending", "accepted"}
    ]
    return respond({"invitations": shown})


def _check_each_is_invited_once(emails: Sequence[str]) -> None:
    seen: set[str] = set()
    for email in emails:
        if email.lower() in seen:
            raise conflict(f"the request invites {email!r} twice: send each address once")
        seen.add(email.lower())


def record(invitation: Invitation) -> Json:
    """Return an invitation as the API shows it."""
    return fields(invitation, "id", "email", "org_id", "invited_by", "invited_at", "role")
