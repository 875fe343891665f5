"""Requests for the account that a key belongs to, and for a user's organizations."""

from neonctl_local.api.people.organizations import organization_record
from neonctl_local.api.request import access
from neonctl_local.api.request.calls import Call, Json, Response, respond
from neonctl_local.clock import in_seconds
from neonctl_local.storage.tables import Organization, User
from neonctl_local.storage.transactions import Transaction


def me(tx: Transaction, call: Call) -> Response:
    """``GET /users/me``: the user of a personal key."""
    user = tx.get(User, access.personal_user_id(call))
    return respond(
        {
            "id": user.id,
            "name": user.name,
            "last_name": "",
            "login": user.email,
            "email": user.email,
            "image": "",
            "plan": "launch",
            "active_seconds_limit": 0,
            "projects_limit": 100,
            "branches_limit": 500,
            "max_autoscaling_limit": 8.0,
            "auth_accounts": [
                {
                    "email": user.email,
                    "image": "",
                    "login": user.email,
                    "name": user.name,
                    "provider": "keycloak",
                }
            ],
            "billing_account": _billing(user),
        }
    )


def auth_details(tx: Transaction, call: Call) -> Response:
    """``GET /auth``: the account of the key."""
    del tx  # All handlers have the same parameters.
    method = "api_key_user" if call.principal.kind == "personal" else "api_key_org"
    return respond({"account_id": call.principal.account, "auth_method": method})


def list_organizations(tx: Transaction, call: Call) -> Response:
    """``GET /users/me/organizations``: for an organization key, only its organization.

    A project-scoped key does not see any organization, because it cannot act on any.
    """
    owned = "id = ? OR id IN (SELECT org_id FROM members WHERE user_id = ?)"
    where = f"WHERE {owned} ORDER BY created_at, rowid"
    owner = call.principal.org_id if call.principal.kind == "organization" else None
    found = tx.select(Organization, where, owner, call.principal.user_id)
    return respond({"organizations": [organization_record(organization) for organization in found]})


def _billing(user: User) -> Json:
    address = ("city", "country", "line1", "line2", "postal_code", "state")
    return {
        "state": "active",
        "payment_source": {"type": ""},
        "subscription_type": "launch",
        "payment_method": "none",
        "quota_reset_at_last": in_seconds(user.created_at),
        "name": user.name,
        "email": user.email,
        **{f"address_{part}": "" for part in address},
    }
