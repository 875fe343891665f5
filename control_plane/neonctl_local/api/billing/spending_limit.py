"""Requests that manage an organization's monthly spending limit, which is not enforced."""

from typing import Annotated, Final

from msgspec import Meta

from neonctl_local.api.request import access
from neonctl_local.api.request.access import Level
from neonctl_local.api.request.bodies import Body
from neonctl_local.api.request.calls import Call, Response, respond
from neonctl_local.storage.tables import SpendingLimit
from neonctl_local.storage.transactions import Transaction

_MAXIMUM: Final = 2**63 - 1  # the published type is a 64-bit integer


class SpendingLimitUpdate(Body, frozen=True):
    """The new spending limit, in cents."""

    spending_limit_cents: Annotated[int, Meta(ge=1, le=_MAXIMUM)]


def get(tx: Transaction, call: Call) -> Response:
    """``GET /organizations/{org_id}/billing/spending_limit``: null if there is none."""
    organization = access.organization(tx, call)
    limit = tx.first(SpendingLimit, "WHERE id = ?", organization.id)
    return respond({"spending_limit_cents": None if limit is None else limit.cents})


def update(tx: Transaction, call: Call) -> Response:
    """``PUT /organizations/{org_id}/billing/spending_limit``, for administrators."""
    organization = access.organization(tx, call, Level.ADMIN)
    cents = call.body(SpendingLimitUpdate).spending_limit_cents
    _remove(tx, organization.id)
    tx.insert(SpendingLimit(id=organization.id, cents=cents))
    return respond({"spending_limit_cents": cents})


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE /organizations/{org_id}/billing/spending_limit``, for administrators."""
    organization = access.organization(tx, call, Level.ADMIN)
    _remove(tx, organization.id)
    return respond({})


def _remove(tx: Transaction, org_id: str) -> None:
    tx.execute("DELETE FROM spending_limits WHERE id = ?", org_id)
