"""The data of the pages about requests, faults and rate limits.

The first user, who runs the local control plane, sees all requests and can plan faults. Other
people see only the requests of their own account and organizations, because requests contain the
ids of projects.
"""

from collections.abc import Mapping, Sequence

import msgspec

from neonctl_local.console.visits import Visit
from neonctl_local.engine import accounts
from neonctl_local.errors import forbidden
from neonctl_local.server.request_history import AnsweredRequest, Usage
from neonctl_local.storage.tables import ApiKey
from neonctl_local.storage.transactions import Transaction


class AccountUsage(msgspec.Struct, frozen=True):
    """The rate limit usage of an account, which is a user or an organization."""

    id: str
    name: str
    kind: str
    usage: Usage


async def check_first_user(visit: Visit) -> None:
    """Raise 403 unless the person is the first user."""
    if not await visit.read(accounts.is_first_user, visit.session.user_id):
        raise forbidden(
            "faults concern the requests of all users, so only the first user can plan them: sign "
            "in with the link that the start of the local control plane prints"
        )


async def visible_requests(visit: Visit) -> Sequence[AnsweredRequest]:
    """Return the requests that the person may see, newest first."""
    requests = reversed(visit.state.history.answered)
    if await visit.read(accounts.is_first_user, visit.session.user_id):
        return list(requests)
    mine = {account for account, _, _ in _accounts(visit)}
    return [request for request in requests if request.account in mine]


def usages(visit: Visit) -> list[AccountUsage]:
    """Return the rate limit usage of the person and of the person's organizations."""
    return [
        AccountUsage(account, name, kind, visit.state.usage(account))
        for account, name, kind in _accounts(visit)
    ]


def read_key_names(tx: Transaction, key_ids: Sequence[int]) -> Mapping[int, str]:
    """Return the name of each key, revoked or not."""
    marks = ", ".join("?" * len(key_ids))
    return {key.id: key.name for key in tx.select(ApiKey, f"WHERE id IN ({marks})", *key_ids)}


def _accounts(visit: Visit) -> list[tuple[str, str, str]]:
    person = visit.person
    return [
        (person.user.id, person.user.name or person.user.email, "Personal account"),
        *((found.id, found.name, "Organization") for found in person.organizations),
    ]
