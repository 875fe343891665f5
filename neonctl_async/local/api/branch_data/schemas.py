"""The schemas of databases. Without Postgres, every database is empty."""

from typing import Final

from neonctl_async.local.api.request import access
from neonctl_async.local.api.request.calls import Call, Response, respond
from neonctl_async.local.engine import branch_objects
from neonctl_async.local.errors import invalid
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import Database

_EMPTY_DUMP: Final = (
    "--\n-- PostgreSQL database dump\n--\n\n"
    "-- Dumped from database version {version}\n\n"
    "--\n-- PostgreSQL database dump complete\n--\n\n"
)


def get(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/branches/{branch_id}/schema``: return it as SQL or JSON."""
    project, branch = access.branch(tx, call)
    branch_objects.get(tx, Database, branch.id, call.required("db_name"))
    call.point_in_time()
    if call.choice("format", ("sql", "json"), "sql") == "json":
        return respond({"json": {"tables": []}})
    return respond({"sql": _EMPTY_DUMP.format(version=project.pg_version)})


def compare(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/compare_schema``: compare with the parent by default.

    Both branches must have the database. The difference is always empty.
    """
    project, branch = access.branch(tx, call)
    base_id = call.query.get("base_branch_id") or branch.parent_id
    if base_id is None:
        raise invalid(
            "invalid request: base_branch_id: query parameter required, because branch "
            f"{branch.id!r} has no parent"
        )
    base = access.branch_of(tx, project.id, base_id)
    for compared in (branch, base):
        branch_objects.get(tx, Database, compared.id, call.required("db_name"))
    for prefix in ("", "base_"):
        call.point_in_time(prefix)
    return respond({"diff": ""})
