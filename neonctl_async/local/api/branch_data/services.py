"""Services of a branch that the local control plane does not have.

Neon's own clients read the state of these services before they show a branch. They take a 404 for
a service that is not enabled.
"""

from neonctl_async.local.api.request import access
from neonctl_async.local.api.request.calls import Call, Response
from neonctl_async.local.engine import branch_objects
from neonctl_async.local.errors import ApiError
from neonctl_async.local.storage.tables import Branch, Database
from neonctl_async.local.storage.transactions import Transaction


def get_auth(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/auth``: 404, because Neon Auth is not enabled."""
    _, branch = access.branch(tx, call)
    raise _not_enabled("Neon Auth", branch)


def get_data_api(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/data-api/{database_name}``: 404, because it is not enabled."""
    _, branch = access.branch(tx, call)
    branch_objects.get(tx, Database, branch.id, call.path["database_name"])
    raise _not_enabled("the Data API", branch)


def _not_enabled(service: str, branch: Branch) -> ApiError:
    return ApiError(
        404,
        f"{service} is not enabled on branch {branch.id!r}: the local control plane does not "
        "offer this service",
    )
