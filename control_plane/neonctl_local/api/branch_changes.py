"""Requests that change a branch: update, set as default, restore and recover."""

from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from neonctl_local import ids
from neonctl_local.api import branches, endpoints, snapshots
from neonctl_local.api.operations import operation_records
from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.calls import Call, Response, instant_of, respond
from neonctl_local.clock import Instant, in_seconds, span
from neonctl_local.engine import computes, operations, points, restores, timelines
from neonctl_local.engine.branch_objects import check_not_applying
from neonctl_local.engine.branches import (
    check_may_expire,
    check_name_free,
    check_not_deleted,
    inherit_objects,
    is_anonymized,
    replace_objects,
)
from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.work import ReplaceCluster
from neonctl_local.errors import invalid, not_found, unprocessable
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import Branch, Endpoint, Operation
from neonctl_local.storage.transactions import Transaction

RESTORED_SECONDS: Final = 86400.0
"""The seconds during which the children of a branch restored from a snapshot cannot be reset."""


def update(tx: Transaction, call: Call) -> Response:
    """``PATCH /projects/{project_id}/branches/{branch_id}``: change a branch.

    This starts no operations, except that protecting an archived branch unarchives it.
    """
    _, branch = access.branch(tx, call)
    body = call.part("branch", bodies.BranchChanges)
    changes: dict[str, SqlValue] = {"updated_at": tx.now}
    if body.name is not UNSET and body.name != branch.name:
        check_name_free(tx, branch.project_id, body.name)
        changes["name"] = body.name
    if body.protected is not UNSET:
        changes["protected"] = body.protected
    if body.expires_at is not UNSET:
        changes |= branches.expiry(tx, body.expires_at)
    chain = OperationChain(tx, branch.project_id)
    if body.protected is True and branch.state == timelines.ARCHIVED:
        chain = operations.start_chain(tx, branch.project_id, branch.id)
        timelines.unarchive(tx, branch, chain)
    branch = tx.update(tx.get(Branch, branch.id), **changes)
    check_may_expire(tx, branch)
    timelines.schedule_archiving(tx, branch.id, tx.now)
    return _changed(tx, branch, chain)


def set_default(tx: Transaction, call: Call) -> Response:
    """``POST .../branches/{branch_id}/set_as_default``; the old name is ``set_as_primary``.

    An archived branch is unarchived, because the default branch is never archived.
    """
    _, branch = access.branch(tx, call)
    chain = operations.start_chain(tx, branch.project_id, branch.id)
    where = "WHERE project_id = ? AND is_default AND id <> ?"
    for other in tx.select(Branch, where, branch.project_id, branch.id):
        tx.update(other, is_default=False, updated_at=tx.now)
        timelines.schedule_archiving(tx, other.id, tx.now)
    branch = tx.update(branch, is_default=True, updated_at=tx.now)
    check_may_expire(tx, branch)
    branch = timelines.unarchive(tx, branch, chain)
    timelines.schedule_archiving(tx, branch.id, tx.now)
    return _changed(tx, branch, chain)


def restore(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/branches/{branch_id}/restore``.

    The branch gets the roles, databases and data of its source, and keeps its id. Its running
    computes are suspended first, and started again afterwards.

    With ``preserve_under_name``, the old state is kept as a new branch. This is required if the
    branch has children, or is restored to its own past.
    """
    project, branch = access.branch(tx, call)
    body = call.body(bodies.BranchRestore)
    source = access.branch_of(tx, project.id, body.source_branch_id)
    if is_anonymized(tx, branch.id):
        raise unprocessable("an anonymized branch cannot be restored: create another one instead")
    _check_preserve_name(tx, branch, source, body.preserve_under_name)
    if source.id == branch.id and not (body.source_lsn or body.source_timestamp):
        raise invalid(
            "invalid request: source_timestamp: a restore to the same branch requires "
            "source_timestamp or source_lsn"
        )
    is_reset = source.id == branch.parent_id and not (body.source_lsn or body.source_timestamp)
    if branch.protected and is_reset:
        raise unprocessable("a protected branch cannot be reset: unprotect it first")
    for involved in (branch, source):
        restores.check_not_restoring(tx, involved.id)
    check_not_applying(tx, branch.id)
    at = None
    if body.source_timestamp is not None:
        at = instant_of("source_timestamp", body.source_timestamp)
    if is_reset:
        _check_not_restored(tx, source)
    elif body.source_lsn or body.source_timestamp:
        _check_has_history(source)
    points.check(tx, call.checked_points, source, at, body.source_lsn, "source_timestamp")
    chain = operations.start_chain(tx, project.id, branch.id, source.id)
    suspended = [
        computes.suspend(tx, endpoint, chain)
        for endpoint in computes.of_branch(tx, branch.id)
        if computes.needs_suspend(endpoint, tx.now)
    ]
    branch = _replace_content(tx, branch, source, body, at, chain)
    if is_reset and branch.expires_at is not None:
        lifetime = branch.ttl_interval_seconds or 0
        branch = tx.update(branch, expires_at=max(branch.expires_at, tx.now + span(lifetime)))
    for endpoint in suspended:
        computes.start(tx, endpoint, chain)
    return _changed(tx, branch, chain)


def recover(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/branches/{branch_id}/recover``: recover a branch.

    This starts no operations. The computes that were deleted with the branch are recovered too, in
    the idle state. The expiry of the branch is removed.
    """
    project = access.project(tx, call)
    where = "WHERE id = ? AND project_id = ? AND recoverable_until >= ?"
    branch = tx.first(Branch, where, call.path["branch_id"], project.id, tx.now)
    if branch is None:
        raise not_found("recoverable branch", call.path["branch_id"])
    check_name_free(tx, project.id, branch.name)
    if branch.parent_id is not None:
        parent = tx.get(Branch, branch.parent_id)
        check_not_deleted(tx, "the parent branch", parent)
    tx.update(
        branch,
        deleted_at=None,
        deletion_method=None,
        recoverable_until=None,
        **branches.expiry(tx, None),
        updated_at=tx.now,
    )
    for endpoint in tx.select(Endpoint, "WHERE branch_id = ? AND deleted_with_branch", branch.id):
        computes.recover(tx, endpoint)
    timelines.schedule_archiving(tx, branch.id, tx.now)
    branch_record = branches.record(tx, tx.get(Branch, branch.id))
    recovered = computes.of_branch(tx, branch.id)
    shown = [endpoints.record(tx, endpoint) for endpoint in recovered]
    return respond({"branch": branch_record, "endpoints": shown})


def _check_preserve_name(tx: Transaction, branch: Branch, source: Branch, name: str | None) -> None:
    if name is not None:
        check_name_free(tx, branch.project_id, name)
        return
    children = tx.first(Branch, "WHERE parent_id = ? AND deleted_at IS NULL", branch.id)
    if children is not None or source.id == branch.id:
        raise invalid(
            "invalid request: preserve_under_name: field required, because the branch has "
            "children or is restored from itself"
        )


def _check_has_history(source: Branch) -> None:
    """Raise 422 if a branch cannot be the source of a restore to a point in time."""
    reason = None
    if source.parent_id is not None:
        reason = "is no root branch: use one, or leave out source_timestamp and source_lsn"
    elif _is_of_snapshot(source):
        reason = "was restored from a snapshot: leave out source_timestamp and source_lsn"
    if reason is not None:
        raise unprocessable(
            f"no branch can be restored to a point in time of branch {source.id!r}, which {reason}"
        )


def _check_not_restored(tx: Transaction, parent: Branch) -> None:
    if _is_of_snapshot(parent) and tx.now < parent.created_at + span(RESTORED_SECONDS):
        raise unprocessable(
            f"the parent {parent.id!r} was restored from a snapshot: reset its children after "
            f"{in_seconds(parent.created_at + span(RESTORED_SECONDS))}, a day later"
        )


def _is_of_snapshot(branch: Branch) -> bool:
    return (branch.restored_from or "").startswith(snapshots.PREFIX)


def _replace_content(
    tx: Transaction,
    branch: Branch,
    source: Branch,
    body: bodies.BranchRestore,
    at: Instant | None,
    chain: OperationChain,
) -> Branch:
    preserved_id = ids.object_id("br-") if body.preserve_under_name else None
    replacement = ReplaceCluster(
        branch.id,
        source.id,
        at=at,
        lsn=body.source_lsn,
        preserved_id=preserved_id,
    )
    creation = chain.add("create_branch", branch_id=branch.id, work=replacement)
    replaced = restores.before_restore(tx, branch, preserved_id)
    if preserved_id and body.preserve_under_name:
        _preserve(tx, branch, preserved_id, body.preserve_under_name, creation)
    if source.id != branch.id or at is not None or body.source_lsn is not None:
        replace_objects(tx, source, branch, at, body.source_lsn)
    tx.update(
        branch,
        parent_id=None if branch.parent_id is None else source.id,
        parent_lsn=points.shown_lsn(tx, body.source_lsn),
        parent_timestamp=tx.now if at is None else at,
        restored_from=source.id,
        restore_status=None,
        last_reset_at=tx.now,
        updated_at=tx.now,
        state_before=timelines.READY,
        state=timelines.READY,
        state_at=creation.settles_at,
        state_operation=creation.open_id,
    )
    check_may_expire(tx, source)
    restores.undo_on_failure(tx, creation, replaced)
    return tx.get(Branch, branch.id)


def _preserve(
    tx: Transaction, branch: Branch, preserved_id: str, name: str, creation: Operation
) -> None:
    preserved = replace(
        branch,
        id=preserved_id,
        name=name,
        is_default=False,
        expires_at=None,
        ttl_interval_seconds=None,
        restored_as=branch.id,
        restore_status=None,
        created_at=tx.now,
        updated_at=tx.now,
        check_at=None,
    )
    if creation.is_open:
        # The old cluster gets the new id during the restore.
        preserved = replace(
            preserved,
            state_before=timelines.INIT,
            state=timelines.READY,
            state_at=creation.settles_at,
            state_operation=creation.id,
        )
    tx.insert(preserved)
    inherit_objects(tx, branch.id, preserved.id)
    sql = "UPDATE branches SET parent_id = ? WHERE parent_id = ? AND deleted_at IS NULL"
    tx.execute(sql, preserved.id, branch.id)
    timelines.schedule_archiving(tx, preserved.id, tx.now)


def _changed(tx: Transaction, branch: Branch, chain: OperationChain) -> Response:
    return respond({"branch": branches.record(tx, branch), "operations": operation_records(chain)})
