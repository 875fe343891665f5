"""Advice about databases, which is always empty here."""

from neonctl_local.api.request import access
from neonctl_local.api.request.calls import Call, Response, respond
from neonctl_local.engine import branch_objects
from neonctl_local.storage.tables import Branch, Database
from neonctl_local.storage.transactions import Transaction


def list_project(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/advisors``: by default, for the default branch.

    ``database_name`` is required if the branch has more than one database.
    """
    project = access.project(tx, call)
    _check_database(tx, access.branch_or_default(tx, project.id, call.query.get("branch_id")), call)
    return respond({"issues": []})


def _check_database(tx: Transaction, branch: Branch, call: Call) -> None:
    name = call.query.get("database_name")
    if not name and len(branch_objects.of_branch(tx, Database, branch.id)) > 1:
        name = call.required("database_name")
    if name:
        branch_objects.get(tx, Database, branch.id, name)
