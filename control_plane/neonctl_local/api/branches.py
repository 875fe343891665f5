"""Requests that create, read, list and delete branches."""

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from neonctl_local import ids
from neonctl_local.api import databases, endpoints, roles
from neonctl_local.api.operations import operation_records
from neonctl_local.api.request import access, bodies, paging
from neonctl_local.api.request.calls import (
    Call,
    Json,
    Response,
    drop_none,
    fields,
    instant_of,
    json_text,
    raw_json,
    respond,
)
from neonctl_local.clock import SECOND, Instant, in_seconds, in_seconds_or_none, span
from neonctl_local.engine import branch_objects, operations, points, restores, timelines
from neonctl_local.engine.branches import (
    check_may_expire,
    delete_branch,
    deletion_blocker,
    inherit_objects,
    insert_branch,
    is_anonymized,
)
from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.services import data_apis
from neonctl_local.engine.work import CopyCluster
from neonctl_local.errors import invalid, unprocessable
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import Branch, Database, Endpoint, Project, Role, User
from neonctl_local.storage.transactions import Transaction

MAXIMUM_LIMIT: Final = 10_000
MAXIMUM_TTL_SECONDS: Final = 30 * 86400.0
SORT_FIELDS: Final = ("name", "created_at", "updated_at")

_WITH_RULES: Final = frozenset(
    {"name", "parent_id", "parent_lsn", "parent_timestamp", "archived", "expires_at"}
)
_PLAIN: Final = [name for name in bodies.BranchSpec.__struct_fields__ if name not in _WITH_RULES]
"""The settings of a new branch that are stored and shown unchanged."""

_RESTRICTED: Final = [
    {"name": name, "reason": "the branch is anonymized"}
    for name in ("restore", "delete-rw-endpoint")
]


def create(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/branches``: create a branch and its computes.

    This starts a ``create_branch`` operation, and a ``start_compute`` operation for each compute.
    """
    project = access.project(tx, call)
    return created_response(tx, *add(tx, project, call, call.body(bodies.BranchCreate)))


def add(
    tx: Transaction, project: Project, call: Call, body: bodies.BranchCreate
) -> tuple[Branch, list[Endpoint], OperationChain]:
    """Create a branch and its computes. Return them with their operations."""
    spec = body.branch
    parent = access.branch_or_default(tx, project.id, spec.parent_id)
    at = spec.parent_timestamp
    parent_timestamp = instant_of("parent_timestamp", at) if at else tx.now
    restores.check_not_restoring(tx, parent.id)
    past = parent_timestamp if at else None
    points.check(tx, call.checked_points, parent, past, spec.parent_lsn, "parent_timestamp")
    chain = operations.start_chain(tx, project.id, parent.id)
    branch_id = ids.object_id("br-")
    copy = CopyCluster(
        branch_id,
        parent.id,
        at=past,
        lsn=spec.parent_lsn,
        schema_only=spec.init_source == "schema-only",
    )
    timelines.unarchive(tx, parent, chain)
    name = spec.name or branch_id
    creation = chain.add("create_branch", branch_id=branch_id, new_name=name, work=copy)
    branch = Branch(
        id=branch_id,
        project_id=project.id,
        name=name,
        annotation=json_text(body.annotation_value),
        created_by=call.principal.created_by,
        created_at=tx.now,
        updated_at=tx.now,
        state_at=creation.settles_at,
        **{name: getattr(spec, name) for name in _PLAIN},
    )
    branch = replace(branch, **expiry(tx, spec.expires_at))
    if not copy.schema_only:
        branch = replace(
            branch,
            parent_id=parent.id,
            parent_lsn=points.shown_lsn(tx, spec.parent_lsn),
            parent_timestamp=parent_timestamp,
        )
    branch = insert_branch(tx, branch, creation)
    for involved in (parent, branch):
        check_may_expire(tx, involved)
    for scheduled in (parent, branch):
        timelines.schedule_archiving(tx, scheduled.id, tx.now)
    inherit_objects(
        tx,
        parent.id,
        branch.id,
        schema_only=copy.schema_only,
        new_passwords=parent.protected,
        at=past,
        lsn=spec.parent_lsn,
    )
    if not copy.schema_only and branch.expires_at is None:
        data_apis.copy(tx, parent.id, branch.id)
    created = [endpoints.add(tx, project, branch, endpoint, chain) for endpoint in body.endpoints]
    if spec.archived:
        branch = timelines.archive(tx, branch, chain)
    return branch, created, chain


def created_response(
    tx: Transaction, branch: Branch, created: list[Endpoint], chain: OperationChain
) -> Response:
    """Return the response for a new branch and its computes."""
    return respond(created_body(tx, branch, created, chain), 201)


def created_body(
    tx: Transaction,
    branch: Branch,
    created: list[Endpoint],
    chain: OperationChain,
    *,
    passwords: bool = False,
) -> Json:
    """Return a new branch with its computes, operations, roles, databases and connection URIs.

    Like Neon, leave out the URIs if the branch has more than one role or database.
    """
    own_roles = branch_objects.of_branch(tx, Role, branch.id)
    own_databases = branch_objects.of_branch(tx, Database, branch.id)
    body: Json = {
        "branch": record(tx, branch),
        "endpoints": [endpoints.record(tx, endpoint) for endpoint in created],
        "operations": operation_records(chain),
        "roles": [roles.record(role, password=passwords) for role in own_roles],
        "databases": [databases.record(database) for database in own_databases],
    }
    if created and len(own_roles) < 2 and len(own_databases) < 2:
        body["connection_uris"] = databases.uris_of_branch(tx, branch, created[0])
    return body


def list_page(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/branches``: return a page and the cursor of the ``next`` one."""
    project = access.project(tx, call)
    page = paging.SortedPage.from_call(call, SORT_FIELDS, "updated_at", MAXIMUM_LIMIT)
    search = call.query.get("search", "")
    where, values = page.clauses(
        "project_id = ? AND (deleted_at IS NULL OR ? AND recoverable_until >= ?) "
        "AND (instr(name, ?) OR id = ?)",
        project.id,
        call.flag("include_deleted"),
        tx.now,
        search,
        search,
    )
    found, pagination = page.paginate(tx.select(Branch, where, *values))
    annotations = {branch.id: _annotation(branch) for branch in found if branch.annotation != "{}"}
    return respond(
        {
            "branches": [record(tx, branch) | _recovery(branch) for branch in found],
            "annotations": annotations,
            "pagination": pagination,
        }
    )


def count(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/branches/count``."""
    project = access.project(tx, call)
    sql = (
        "SELECT count(*) FROM branches "
        "WHERE project_id = ? AND deleted_at IS NULL AND instr(name, ?)"
    )
    return respond({"count": tx.number(sql, project.id, call.query.get("search", "")) or 0})


def get(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/branches/{branch_id}``."""
    _, branch = access.branch(tx, call)
    return respond({"branch": record(tx, branch), "annotation": _annotation(branch)})


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE /projects/{project_id}/branches/{branch_id}``: return 204 if already deleted.

    With ``hard_delete``, the branch cannot be recovered, even if it was deleted before.
    """
    project = access.project(tx, call)
    hard = call.flag("hard_delete")
    where = "WHERE id = ? AND project_id = ? AND deleted_at IS NOT NULL"
    if deleted := tx.first(Branch, where, call.path["branch_id"], project.id):
        if hard:
            tx.update(deleted, recoverable_until=None)
        return Response(204)
    branch = access.branch_of(tx, project.id, call.path["branch_id"])
    reason = deletion_blocker(tx, branch)
    if reason is not None:
        raise unprocessable(reason)
    chain = operations.start_chain(tx, project.id, branch.id)
    branch = delete_branch(tx, branch, chain, "user", hard=hard)
    shown = record(tx, branch) | {"pending_state": "storage_deleted"}
    return respond({"branch": shown, "operations": operation_records(chain)})


def expiry(tx: Transaction, moment: datetime | None) -> dict[str, SqlValue]:
    """Return a branch's expiry columns. Raise 400 if the time is past or over 30 days ahead."""
    at = None if moment is None else future_time(tx, instant_of("expires_at", moment))
    if at is not None and at > tx.now + span(MAXIMUM_TTL_SECONDS):
        raise invalid(
            f"invalid request: expires_at: {in_seconds(at)} is more than 30 days ahead: "
            f"use at most {in_seconds(tx.now + span(MAXIMUM_TTL_SECONDS))}"
        )
    ttl = None if at is None else (at - tx.now) // SECOND
    return {"expires_at": at, "ttl_interval_seconds": ttl}


def future_time(tx: Transaction, at: Instant) -> Instant:
    """Return an expiry time. Raise 400 if it is in the past."""
    if at <= tx.now:
        raise invalid(f"invalid request: expires_at: {in_seconds(at)} is in the past")
    return at


def record(tx: Transaction, branch: Branch) -> Json:
    """Return a branch as the API shows it now."""
    creator = tx.get_unchanging(User, branch.created_by)
    changing = tx.now < branch.state_at and branch.state != branch.state_before
    return drop_none(
        {
            "id": branch.id,
            "project_id": branch.project_id,
            "parent_id": branch.parent_id,
            "parent_lsn": branch.parent_lsn,
            "parent_timestamp": in_seconds_or_none(branch.parent_timestamp),
            "name": branch.name,
            "current_state": timelines.state(branch, tx.now),
            "pending_state": branch.state if changing else None,
            "state_changed_at": in_seconds(min(branch.state_at, tx.now)),
            "logical_size": branch.logical_size if tx.rules.postgres else 0,
            "creation_source": "console",
            "primary": branch.is_default,
            "default": branch.is_default,
            "cpu_used_sec": 0,
            "compute_time_seconds": 0,
            "active_time_seconds": 0,
            "written_data_bytes": 0,
            "data_transfer_bytes": 0,
            "created_at": in_seconds(branch.created_at),
            "updated_at": in_seconds(branch.updated_at),
            "expires_at": in_seconds_or_none(branch.expires_at),
            "ttl_interval_seconds": branch.ttl_interval_seconds,
            "last_reset_at": in_seconds_or_none(branch.last_reset_at),
            "created_by": {"name": creator.name if creator else "", "image": ""},
            "restored_from": branch.restored_from,
            "restored_as": branch.restored_as,
            "restore_status": branch.restore_status,
            "restricted_actions": _RESTRICTED if is_anonymized(tx, branch.id) else None,
            **fields(branch, *_PLAIN),
        }
    )


def _recovery(branch: Branch) -> Json:
    if branch.deleted_at is None or branch.recoverable_until is None:
        return {}
    recovery = {
        "deleted_at": in_seconds(branch.deleted_at),
        "recoverable_until": in_seconds(branch.recoverable_until),
        "deletion_method": branch.deletion_method,
    }
    return {"recovery": recovery}


def _annotation(branch: Branch) -> Json:
    return {
        "object": {"type": "console/branch", "id": branch.id},
        "value": raw_json(branch.annotation),
        "created_at": in_seconds(branch.created_at),
        "updated_at": in_seconds(branch.updated_at),
    }
