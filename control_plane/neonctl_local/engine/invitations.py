"""Invitations to organizations. The local control plane does not send mail or check addresses.

As on Neon, people who have an account join at once. Other people join with the secret of the
invitation, which an administrator creates and passes on. Members can see the id and the address of
every invitation, so these are not enough to accept an invitation.
"""

import hashlib
import hmac
from collections.abc import Callable
from typing import Final

from neonctl_local import ids
from neonctl_local.clock import Instant, span
from neonctl_local.engine.accounts import add_member, check_is_no_member, create_user
from neonctl_local.errors import conflict, forbidden, not_found
from neonctl_local.storage.tables import Invitation, MemberRole, Organization, User
from neonctl_local.storage.transactions import Transaction

LIFETIME_SECONDS: Final = 30 * 24 * 3600
"""How long an invitation can be accepted, in seconds. Neon does not publish its limit."""


def invite(
    tx: Transaction, org_id: str, email: str, role: MemberRole, invited_by: str
) -> Invitation:
    """Invite an email address. A user with this address joins at once.

    However, a user who signed up after an earlier invitation to the organization, without accepting
    it, needs the secret of the new invitation. Raise 409 if the user is a member, or if the address
    has a pending invitation.
    """
    where = "WHERE org_id = ? AND email = ? AND accepted_at IS NULL"
    earlier = tx.select(Invitation, where, org_id, email)
    for one in earlier:
        if status(one, tx.now) == "pending":
            raise conflict(
                f"{email!r} already has a pending invitation: revoke invitation {one.id} first"
            )
    user = tx.first(User, "WHERE email = ? COLLATE NOCASE", email)
    if user is not None:
        check_is_no_member(tx, org_id, user.id)
        if any(one.invited_at <= user.created_at for one in earlier):
            user = None  # members could see the address before the user signed up
    if user is not None:
        add_member(tx, org_id, user.id, role)
    return tx.insert(
        Invitation(
            id=ids.uuid_text(),
            org_id=org_id,
            email=email,
            role=role,
            invited_by=invited_by,
            invited_at=tx.now,
            expires_at=tx.now + span(LIFETIME_SECONDS),
            accepted_at=None if user is None else tx.now,
        )
    )


def sign_up(
    tx: Transaction, name: str, email: str, may_join: Callable[[str], bool] = lambda _: True
) -> User:
    """Create a user, who joins the organizations that invited the email address.

    ``may_join`` returns whether the caller may add members to an organization. Raise 409 if the
    email address is in use.
    """
    user = create_user(tx, name, email)
    for invitation in tx.select(Invitation, "WHERE email = ? AND accepted_at IS NULL", email):
        if status(invitation, tx.now) == "pending" and may_join(invitation.org_id):
            _join(tx, invitation, user)
    return user


def create_secret(tx: Transaction, invitation: Invitation) -> str:
    """Return a new secret for accepting an invitation. The previous secret stops working.

    Only the hash of the secret is stored. Raise 409 if the invitation is not pending.
    """
    _check_pending(tx, invitation)
    secret = ids.invitation_secret()
    tx.update(invitation, digest=_digest(secret))
    return secret


def accept(tx: Transaction, invitation_id: str, secret: str, name: str, caller_id: str) -> User:
    """Sign up with the email address of an invitation, as its recipient does.

    If the address belongs to an account by now, only the user of that account can accept, and then
    joins the organization. Raise 404 for an unknown invitation, 403 for a wrong secret, and 409 if
    the invitation is not pending or the caller is another user.
    """
    invitation = get(tx, invitation_id)
    if not hmac.compare_digest(invitation.digest, _digest(secret)):
        raise forbidden(
            f"this is not the secret of invitation {invitation_id!r}: an administrator of the "
            "organization can create a new one"
        )
    _check_pending(tx, invitation)
    user = tx.first(User, "WHERE email = ? COLLATE NOCASE", invitation.email)
    if user is None:
        user = create_user(tx, name, invitation.email)
    elif user.id != caller_id:
        raise conflict(f"{invitation.email!r} has an account: accept with a key of this user")
    _join(tx, invitation, user)
    return user


def revoke(tx: Transaction, invitation: Invitation) -> Invitation:
    """Revoke a pending invitation. Raise 409 if it is not pending."""
    _check_pending(tx, invitation)
    return tx.update(invitation, revoked_at=tx.now)


def get(tx: Transaction, invitation_id: str) -> Invitation:
    """Return an invitation. Raise 404 if there is none."""
    invitation = tx.first(Invitation, "WHERE id = ?", invitation_id)
    if invitation is None:
        raise not_found("invitation", invitation_id)
    return invitation


def list_all(tx: Transaction, organization: Organization) -> list[Invitation]:
    """Return all invitations to an organization, newest first."""
    where = "WHERE org_id = ? ORDER BY invited_at DESC, rowid DESC"
    return tx.select(Invitation, where, organization.id)


def status(invitation: Invitation, now: Instant) -> str:
    """Return ``accepted``, ``revoked``, ``expired`` or ``pending``."""
    if invitation.accepted_at is not None:
        return "accepted"
    if invitation.revoked_at is not None:
        return "revoked"
    return "expired" if invitation.expires_at <= now else "pending"


def _join(tx: Transaction, invitation: Invitation, user: User) -> None:
    add_member(tx, invitation.org_id, user.id, invitation.role)
    tx.update(invitation, accepted_at=tx.now)


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _check_pending(tx: Transaction, invitation: Invitation) -> None:
    found = status(invitation, tx.now)
    if found != "pending":
        raise conflict(f"invitation {invitation.id!r} is {found}: create a new one")
