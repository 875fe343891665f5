"""Branches: created with or without computes, read, listed, deleted."""

from datetime import datetime
from typing import Final

import msgspec

from neonctl_async.local import ids
from neonctl_async.local.api import connection_uris, databases, roles
from neonctl_async.local.api.request import access, bodies, paging
from neonctl_async.local.api.request.calls import (
    Answer,
    Call,
    Caller,
    Json,
    answer,
    instant_of,
    present,
    raw,
    stored,
)
from neonctl_async.local.clock import Instant, in_seconds, in_seconds_or_none, span
from neonctl_async.local.engine import branch_objects, computes, operations, timelines
from neonctl_async.local.engine.operations import Chain
from neonctl_async.local.errors import conflict, invalid, unprocessable
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import (
    Branch,
    Database,
    DeletionMethod,
    Endpoint,
    Project,
    Role,
    User,
)

MAXIMUM_LIMIT: Final = 10_000
SORTS: Final = ("name", "created_at", "updated_at")
RECOVERABLE: Final = 7 * 86400.0
"""How long a deleted branch can be recovered, in seconds."""


def create(tx: Transaction, call: Call) -> Answer:
    """``POST /projects/{project_id}/branches``: create_branch, then a start_compute a compute."""
    project = access.project(tx, call)
    return created(tx, *make(tx, project, call.caller, call.body(bodies.BranchCreate)))


def make(
    tx: Transaction, project: Project, caller: Caller, body: bodies.BranchCreate
) -> tuple[Branch, list[Endpoint], Chain]:
    """Create a branch and its computes."""
    spec = body.branch
    parent = access.branch_or_default(tx, project.id, spec.parent_id)
    since = spec.parent_timestamp
    parent_timestamp = instant_of("parent_timestamp", since) if since else tx.now
    chain = operations.begin(tx, project.id, parent.id)
    branch_id = ids.branch_id()
    creation = chain.add("create_branch", branch_id=branch_id)
    branch = Branch(
        id=branch_id,
        project_id=project.id,
        parent_id=parent.id,
        parent_lsn=spec.parent_lsn or ids.lsn(),
        parent_timestamp=parent_timestamp,
        name=spec.name or branch_id,
        is_default=False,
        protected=spec.protected,
        init_source=spec.init_source,
        annotation=stored(body.annotation_value),
        created_by=caller.created_by,
        created_at=tx.now,
        updated_at=tx.now,
        state_before=timelines.INIT,
        state=timelines.READY if creation.succeeds else timelines.INIT,
        state_at=creation.settles_at,
        expires_at=expiry(tx, spec.expires_at),
    )
    insert(tx, branch)
    timelines.watch(tx, branch.id, tx.now)
    inherit(tx, parent.id, branch.id)
    made = [computes.add(tx, project, branch, wanted, chain) for wanted in body.endpoints]
    if spec.archived:
        branch = timelines.archive(tx, branch, chain)
    return branch, made, chain


def created(tx: Transaction, branch: Branch, made: list[Endpoint], chain: Chain) -> Answer:
    """The answer to a branch that was created, with its computes."""
    shown: Json = {
        "branch": record(tx, branch),
        "endpoints": [computes.record(endpoint, tx.now) for endpoint in made],
        "operations": chain.records(),
        "roles": [roles.record(role) for role in branch_objects.of_branch(tx, Role, branch.id)],
        "databases": [
            databases.record(found) for found in branch_objects.of_branch(tx, Database, branch.id)
        ],
    }
    if made:
        shown["connection_uris"] = connection_uris.of_branch(tx, branch, made[0])
    return answer(shown, 201)


def list_page(tx: Transaction, call: Call) -> Answer:
    """``GET /projects/{project_id}/branches``: pages that name the ``next`` one."""
    project = access.project(tx, call)
    page = paging.Sorted.of(call, SORTS, "updated_at", MAXIMUM_LIMIT, MAXIMUM_LIMIT)
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
    found, pagination = page.cut(tx.select(Branch, where, *values))
    annotations = {branch.id: _annotation(branch) for branch in found if branch.annotation != "{}"}
    return answer(
        {
            "branches": [record(tx, branch) | _recovery(branch) for branch in found],
            "annotations": annotations,
            "pagination": pagination,
        }
    )


def count(tx: Transaction, call: Call) -> Answer:
    """``GET /projects/{project_id}/branches/count``."""
    project = access.project(tx, call)
    sql = (
        "SELECT count(*) FROM branches "
        "WHERE project_id = ? AND deleted_at IS NULL AND instr(name, ?)"
    )
    return answer({"count": tx.number(sql, project.id, call.query.get("search", "")) or 0})


def get(tx: Transaction, call: Call) -> Answer:
    """``GET /projects/{project_id}/branches/{branch_id}``."""
    _, branch = access.branch(tx, call)
    return answer({"branch": record(tx, branch), "annotation": _annotation(branch)})


def delete(tx: Transaction, call: Call) -> Answer:
    """``DELETE /projects/{project_id}/branches/{branch_id}``; 204 where it already was.

    With ``hard_delete`` it cannot be recovered, even if it could be before.
    """
    project = access.project(tx, call)
    hard = call.flag("hard_delete")
    where = "WHERE id = ? AND project_id = ? AND deleted_at IS NOT NULL"
    if deleted := tx.first(Branch, where, call.path["branch_id"], project.id):
        if hard:
            tx.update(deleted, recoverable_until=None)
        return Answer(204)
    branch = access.branch_of(tx, project.id, call.path["branch_id"])
    reason = why_kept(tx, branch)
    if reason is not None:
        raise unprocessable(reason)
    chain = operations.begin(tx, project.id, branch.id)
    branch = remove(tx, branch, chain, "user")
    if hard:
        branch = tx.update(branch, recoverable_until=None)
    return answer({"branch": record(tx, branch), "operations": chain.records()})


def insert(tx: Transaction, branch: Branch) -> None:
    """Store a branch. Raises 409 where its name is taken."""
    refuse_taken_name(tx, branch.project_id, branch.name)
    tx.insert(branch)


def is_taken(tx: Transaction, project_id: str, name: str) -> bool:
    """Whether a branch of the project has that name."""
    where = "WHERE project_id = ? AND name = ? AND deleted_at IS NULL"
    return tx.first(Branch, where, project_id, name) is not None


def refuse_taken_name(tx: Transaction, project_id: str, name: str) -> None:
    """Raise 409 where a branch of the project has that name."""
    if is_taken(tx, project_id, name):
        raise conflict(f"a branch named {name!r} already exists in the project")


def refuse_deleted(tx: Transaction, what: str, branch: Branch) -> None:
    """Raise 409 where a branch that is needed is deleted."""
    if branch.deleted_at is None:
        return
    recoverable = tx.now <= (branch.recoverable_until or 0)
    deleted = "deleted: recover it first" if recoverable else "deleted for good"
    raise conflict(f"{what}, {branch.id!r}, is {deleted}")


def why_kept(tx: Transaction, branch: Branch) -> str | None:
    """Why a branch cannot be deleted, if it cannot."""
    root = "WHERE project_id = ? AND id <> ? AND parent_id IS NULL AND deleted_at IS NULL"
    if branch.parent_id is None and not tx.first(Branch, root, branch.project_id, branch.id):
        return "the root branch of a project cannot be deleted"
    if branch.is_default:
        return "the default branch of a project cannot be deleted"
    if branch.protected:
        return "a protected branch cannot be deleted: unprotect it first"
    if tx.first(Branch, "WHERE parent_id = ? AND deleted_at IS NULL", branch.id):
        return "a branch with children cannot be deleted"
    return None


def remove(tx: Transaction, branch: Branch, chain: Chain, method: DeletionMethod) -> Branch:
    """Delete a branch, its computes suspended first. Both can be recovered."""
    for endpoint in computes.of_branch(tx, branch.id):
        tx.update(computes.remove(tx, endpoint, chain), deleted_with_branch=True)
    chain.add("delete_timeline", branch_id=branch.id)
    return tx.update(
        branch,
        deleted_at=tx.now,
        deletion_method=method,
        recoverable_until=tx.now + span(RECOVERABLE),
        updated_at=tx.now,
        check_at=None,
        archive_at=None,
    )


def expiry(tx: Transaction, moment: datetime | None) -> Instant | None:
    """When a branch is to be deleted by itself. Raises 400 for a time that has passed."""
    if moment is None:
        return None
    return upcoming(tx, instant_of("expires_at", moment))


def upcoming(tx: Transaction, at: Instant) -> Instant:
    """When something is to be deleted by itself. Raises 400 for a time that has passed."""
    if at <= tx.now:
        raise invalid(f"invalid request: expires_at: {in_seconds(at)} has passed")
    return at


def inherit(tx: Transaction, source_id: str, branch_id: str) -> None:
    """Give a branch the roles and databases of its source."""
    for role in branch_objects.of_branch(tx, Role, source_id):
        tx.insert(msgspec.structs.replace(role, id=0, branch_id=branch_id))
    for database in branch_objects.of_branch(tx, Database, source_id):
        tx.insert(msgspec.structs.replace(database, id=0, branch_id=branch_id))


def record(tx: Transaction, branch: Branch) -> Json:
    """A branch as the API shows it now."""
    creator = tx.first(User, "WHERE id = ?", branch.created_by)
    waiting = tx.now < branch.state_at and branch.state != branch.state_before
    return present(
        {
            "id": branch.id,
            "project_id": branch.project_id,
            "parent_id": branch.parent_id,
            "parent_lsn": branch.parent_lsn,
            "parent_timestamp": in_seconds_or_none(branch.parent_timestamp),
            "name": branch.name,
            "current_state": timelines.state(branch, tx.now),
            "pending_state": branch.state if waiting else None,
            "state_changed_at": in_seconds(min(branch.state_at, tx.now)),
            "logical_size": 0,
            "creation_source": "console",
            "primary": branch.is_default,
            "default": branch.is_default,
            "protected": branch.protected,
            "cpu_used_sec": 0,
            "compute_time_seconds": 0,
            "active_time_seconds": 0,
            "written_data_bytes": 0,
            "data_transfer_bytes": 0,
            "created_at": in_seconds(branch.created_at),
            "updated_at": in_seconds(branch.updated_at),
            "expires_at": in_seconds_or_none(branch.expires_at),
            "last_reset_at": in_seconds_or_none(branch.last_reset_at),
            "created_by": {"name": creator.name if creator else "", "image": ""},
            "init_source": branch.init_source,
            "restored_from": branch.restored_from,
            "restored_as": branch.restored_as,
            "restore_status": branch.restore_status,
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
        "value": raw(branch.annotation),
        "created_at": in_seconds(branch.created_at),
        "updated_at": in_seconds(branch.updated_at),
    }
