"""Requests for what people do in Neon's console: sign up, create organizations, join and leave.

They are not part of Neon's API, so their paths start with ``/local/v1``.
"""

from neonctl_local.api.people.invitations import record
from neonctl_local.api.people.organizations import organization_record
from neonctl_local.api.request import access
from neonctl_local.api.request.access import Level
from neonctl_local.api.request.bodies import Body, Email, Name
from neonctl_local.api.request.calls import Call, Json, Response, fields, respond
from neonctl_local.clock import in_seconds
from neonctl_local.engine import accounts, api_keys, invitations
from neonctl_local.errors import conflict, not_found
from neonctl_local.storage.tables import Invitation, Organization, Permission, Project, User
from neonctl_local.storage.transactions import Transaction


class UserCreate(Body, frozen=True, forbid_unknown_fields=True):
    """A user to create."""

    name: Name
    email: Email


class InvitationAccept(Body, frozen=True, forbid_unknown_fields=True):
    """The name of the user who accepts an invitation, and the secret of the invitation."""

    name: Name
    secret: str


class OrganizationCreate(Body, frozen=True, forbid_unknown_fields=True):
    """An organization to create."""

    name: Name


def create_user(tx: Transaction, call: Call) -> Response:
    """``POST /local/v1/users``: create a user with a personal key.

    The user joins the organizations that have invited the address and that the caller administers.
    Joining other organizations requires the secret of the invitation, because nobody checks who
    owns the address.
    """
    access.personal_user_id(call)
    body = call.body(UserCreate)

    def may_join(org_id: str) -> bool:
        return access.organization_level(tx, call.principal, org_id) is Level.ADMIN

    return _created(tx, call, invitations.sign_up(tx, body.name, body.email, may_join))


def list_users(tx: Transaction, call: Call) -> Response:
    """``GET /local/v1/users``: oldest first."""
    access.personal_user_id(call)
    users = tx.select(User, "ORDER BY created_at, rowid")
    return respond({"users": [_user(user) for user in users]})


def create_organization(tx: Transaction, call: Call) -> Response:
    """``POST /local/v1/organizations``. The caller becomes the administrator."""
    admin_id = access.personal_user_id(call)
    name = call.body(OrganizationCreate).name
    organization = accounts.create_organization(tx, name, admin_id)
    return respond({"organization": organization_record(organization)}, 201)


def list_invitations(tx: Transaction, call: Call) -> Response:
    """``GET /local/v1/organizations/{org_id}/invitations``: all invitations and their status."""
    organization = access.organization(tx, call)
    found = [
        record(invitation)
        | {
            "status": invitations.status(invitation, tx.now),
            "expires_at": in_seconds(invitation.expires_at),
        }
        for invitation in invitations.list_all(tx, organization)
    ]
    return respond({"invitations": found})


def accept_invitation(tx: Transaction, call: Call) -> Response:
    """``POST /local/v1/invitations/{invitation_id}/accept``: sign up through an invitation.

    The recipient may not have a key yet, so any personal key is accepted.
    """
    caller_id = access.personal_user_id(call)
    body, invitation_id = call.body(InvitationAccept), call.path["invitation_id"]
    user = invitations.accept(tx, invitation_id, body.secret, body.name, caller_id)
    return _created(tx, call, user)


def create_secret(tx: Transaction, call: Call) -> Response:
    """``POST /local/v1/invitations/{invitation_id}/secret``, for administrators.

    Only this response contains the secret, which replaces the previous one.
    """
    invitation = _administered(tx, call)
    return respond({"secret": invitations.create_secret(tx, invitation)}, 201)


def revoke_invitation(tx: Transaction, call: Call) -> Response:
    """``DELETE /local/v1/invitations/{invitation_id}``, for administrators."""
    return respond({"invitation": record(invitations.revoke(tx, _administered(tx, call)))})


def leave(tx: Transaction, call: Call) -> Response:
    """``POST /local/v1/organizations/{org_id}/leave``, for members with a personal key."""
    user_id = access.personal_user_id(call)
    organization = access.organization(tx, call)
    accounts.remove_member(tx, organization.id, user_id)
    return respond({})


def _administered(tx: Transaction, call: Call) -> Invitation:
    """Return the invitation in the path. Raise 403 unless the caller is an administrator."""
    invitation = invitations.get(tx, call.path["invitation_id"])
    if access.organization_level(tx, call.principal, invitation.org_id) is Level.NONE:
        raise not_found("invitation", invitation.id)
    access.organization_of(tx, call.principal, invitation.org_id, Level.ADMIN)
    return invitation


def _check_not_shared(tx: Transaction, call: Call, email: str) -> None:
    """Raise 409 if a project that the caller does not administer is shared with the address."""
    for permission in tx.select(Permission, "WHERE email = ? AND revoked_at IS NULL", email):
        project = tx.get(Project, permission.project_id)
        if access.project_level(tx, call.principal, project) is not Level.ADMIN:
            raise conflict(
                f"a project is shared with {email!r}: an administrator of the project has to "
                "create this user"
            )


def _created(tx: Transaction, call: Call, user: User) -> Response:
    """Return a user with a new key.

    Raise 409 as :func:`_check_not_shared` does, unless the user is the caller.
    """
    if user.id != call.principal.user_id:
        _check_not_shared(tx, call, user.email)
    key, token = api_keys.create_user_key(tx, user.id, "first key")
    where = "WHERE id IN (SELECT org_id FROM members WHERE user_id = ?) ORDER BY created_at, rowid"
    joined = tx.select(Organization, where, user.id)
    body = {
        "user": _user(user),
        "organizations": [organization_record(organization) for organization in joined],
        "api_key": fields(key, "id", "name", "created_at", "created_by") | {"key": token},
    }
    return respond(body, 201)


def _user(user: User) -> Json:
    return fields(user, "id", "name", "email", "created_at")
