"""What is done to a branch that exists: update, restore, make it the default, recover."""

from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from neonctl_async.local import ids
from neonctl_async.local.api import branches, endpoints
from neonctl_async.local.api.branch_data import anonymized
from neonctl_async.local.api.operations import operation_records
from neonctl_async.local.api.request import access, bodies
from neonctl_async.local.api.request.calls import Call, Response, instant_of, respond
from neonctl_async.local.engine import computes, operations, timelines
from neonctl_async.local.engine.branches import inherit_objects, refuse_deleted, refuse_taken_name
from neonctl_async.local.engine.operations import Chain
from neonctl_async.local.errors import invalid, not_found, unprocessable
from neonctl_async.local.storage.database import SqlValue, Transaction
from neonctl_async.local.storage.tables import Branch, Endpoint

_DEFAULT_EXPIRES: Final = "the default branch of a project does not expire"


def update(tx: Transaction, call: Call) -> Response:
    """``PATCH /projects/{project_id}/branches/{branch_id}``: no work, so no operations."""
    _, branch = access.branch(tx, call)
    body = call.body(bodies.BranchUpdate).branch
    changes: dict[str, SqlValue] = {"updated_at": tx.now}
    if body.name is not UNSET and body.name != branch.name:
        refuse_taken_name(tx, branch.project_id, body.name)
        changes["name"] = body.name
    if body.protected is not UNSET:
        changes["protected"] = body.protected
    if body.expires_at is not UNSET:
        if body.expires_at is not None and branch.is_default:
            raise unprocessable(_DEFAULT_EXPIRES)
        changes["expires_at"] = branches.expiry(tx, body.expires_at)
    branch = tx.update(branch, **changes)
    timelines.watch(tx, branch.id, tx.now)
    return _changed(tx, branch, operations.Chain(tx, branch.project_id))


def set_default(tx: Transaction, call: Call) -> Response:
    """``POST .../branches/{branch_id}/set_as_default``, ``set_as_primary`` of old.

    The default branch is never archived.
    """
    _, branch = access.branch(tx, call)
    chain = operations.begin(tx, branch.project_id, branch.id)
    where = "WHERE project_id = ? AND is_default AND id <> ?"
    for other in tx.select(Branch, where, branch.project_id, branch.id):
        tx.update(other, is_default=False, updated_at=tx.now)
        timelines.watch(tx, other.id, tx.now)
    branch = tx.update(branch, is_default=True, expires_at=None, updated_at=tx.now)
    branch = timelines.unarchive(tx, branch, chain)
    timelines.watch(tx, branch.id, tx.now)
    return _changed(tx, branch, chain)


def restore(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/branches/{branch_id}/restore``.

    The branch takes over what its source has: its computes are suspended, the branch is created
    anew under its id, and what ran is started again. Under ``preserve_under_name`` its old state
    is kept as a new branch, which its children, and a restore to its own past, need.
    """
    project, branch = access.branch(tx, call)
    body = call.body(bodies.BranchRestore)
    source = access.branch_of(tx, project.id, body.source_branch_id)
    _refuse_to_lose(tx, branch, source, body.preserve_under_name)
    if source.id == branch.id and not (body.source_lsn or body.source_timestamp):
        raise invalid(
            "invalid request: source_timestamp: a branch is restored to its own past at a "
            "source_timestamp or a source_lsn"
        )
    chain = operations.begin(tx, project.id, branch.id, source.id)
    running = [
        computes.suspend(tx, endpoint, chain)
        for endpoint in computes.of_branch(tx, branch.id)
        if computes.in_use(endpoint, tx.now)
    ]
    branch = _take_over(tx, branch, source, body, chain)
    for endpoint in running:
        computes.start(tx, endpoint, chain)
    return _changed(tx, branch, chain)


def recover(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/branches/{branch_id}/recover``: no work, so no operations.

    Its computes come back with it, idle; it expires no more.
    """
    project = access.project(tx, call)
    where = "WHERE id = ? AND project_id = ? AND recoverable_until >= ?"
    branch = tx.first(Branch, where, call.path["branch_id"], project.id, tx.now)
    if branch is None:
        raise not_found("recoverable branch", call.path["branch_id"])
    refuse_taken_name(tx, project.id, branch.name)
    if branch.parent_id is not None:
        parent = tx.get(Branch, branch.parent_id)
        refuse_deleted(tx, "the parent of the branch", parent)
    tx.update(
        branch,
        deleted_at=None,
        deletion_method=None,
        recoverable_until=None,
        expires_at=None,
        updated_at=tx.now,
    )
    for endpoint in tx.select(Endpoint, "WHERE branch_id = ? AND deleted_with_branch", branch.id):
        computes.bring_back(tx, endpoint)
    timelines.watch(tx, branch.id, tx.now)
    kept = computes.of_branch(tx, branch.id)
    return respond(
        {
            "branch": branches.record(tx, tx.get(Branch, branch.id)),
            "endpoints": [endpoints.record(endpoint, tx.now) for endpoint in kept],
        }
    )


def _refuse_to_lose(tx: Transaction, branch: Branch, source: Branch, name: str | None) -> None:
    if name is not None:
        refuse_taken_name(tx, branch.project_id, name)
        return
    children = tx.first(Branch, "WHERE parent_id = ? AND deleted_at IS NULL", branch.id)
    if children is not None or source.id == branch.id:
        raise invalid(
            "invalid request: preserve_under_name: field required, for the branch has children "
            "or is its own source"
        )


def _take_over(
    tx: Transaction, branch: Branch, source: Branch, body: bodies.BranchRestore, chain: Chain
) -> Branch:
    kept = body.preserve_under_name and _preserve(tx, branch, body.preserve_under_name)
    created = chain.add("create_branch", branch_id=branch.id)
    if source.id != branch.id:
        for table in ("roles", "databases"):
            which = "WHERE branch_id = ? AND deleted_at IS NULL"
            sql = f"UPDATE {table} SET deleted_at = ? {which}"
            tx.execute(sql, tx.now, branch.id)
        inherit_objects(tx, source.id, branch.id)
        anonymized.begin_anew(tx, branch.id, created)
    at = body.source_timestamp
    return tx.update(
        branch,
        parent_id=kept if source.id == branch.id else source.id,
        parent_lsn=body.source_lsn or ids.lsn(),
        parent_timestamp=instant_of("source_timestamp", at) if at else tx.now,
        restored_from=source.id,
        restore_status=None,
        last_reset_at=tx.now,
        updated_at=tx.now,
        state_before=timelines.READY,
        state=timelines.READY,
        state_at=created.settles_at,
    )


def _preserve(tx: Transaction, branch: Branch, name: str) -> str:
    kept = replace(
        branch,
        id=ids.branch_id(),
        name=name,
        is_default=False,
        restored_as=branch.id,
        restore_status=None,
        created_at=tx.now,
        updated_at=tx.now,
        check_at=None,
    )
    tx.insert(kept)
    inherit_objects(tx, branch.id, kept.id)
    tx.execute(
        "UPDATE branches SET parent_id = ? WHERE parent_id = ? AND deleted_at IS NULL",
        kept.id,
        branch.id,
    )
    return kept.id


def _changed(tx: Transaction, branch: Branch, chain: Chain) -> Response:
    return respond({"branch": branches.record(tx, branch), "operations": operation_records(chain)})
