"""Undoes a restore of a branch if its operation fails.

A restore immediately gives a branch the roles, databases and Neon Auth of its source. If the copy
of the data fails, the branch still has its old data in Postgres. The next start would drop the old
databases, because they no longer belong to the branch. So undoing a failed restore brings back the
roles, databases and Neon Auth that it replaced.

The restore of a snapshot can immediately replace a branch with the new branch. If the copy of the
snapshot fails, the new branch has no data. So the replaced branch gets its name and computes back.
"""

import msgspec

from neonctl_local import ids
from neonctl_local.engine import branch_objects, timelines
from neonctl_local.engine.services import auth, data_apis
from neonctl_local.engine.services.auth import AuthContent
from neonctl_local.errors import locked
from neonctl_local.storage.service_tables import DataApi
from neonctl_local.storage.tables import NEVER, Branch, Database, Endpoint, Jwks, Operation, Role
from neonctl_local.storage.transactions import Transaction


class Replaced(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A branch before its restore, with the ids of its roles and databases, and its Neon Auth.

    ``preserved_id`` is the id of the new branch for the old data, if there is one.
    """

    branch: Branch
    role_ids: list[int]
    database_ids: list[int]
    preserved_id: str | None
    auth: AuthContent = AuthContent()


class Finalized(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The new branch from a snapshot and the ``target`` that it replaces, before the replacement.

    ``endpoint_ids``, ``jwks_ids`` and ``data_api_ids`` are the ids of the target's computes, JWKS
    and Data APIs.
    """

    branch: Branch
    target: Branch
    endpoint_ids: list[str]
    jwks_ids: list[str]
    data_api_ids: list[int] = []


def before_restore(tx: Transaction, branch: Branch, preserved_id: str | None) -> Replaced:
    """Return the current state of a branch that is about to be restored."""
    return Replaced(
        branch=branch,
        role_ids=[role.id for role in branch_objects.of_branch(tx, Role, branch.id)],
        database_ids=[row.id for row in branch_objects.of_branch(tx, Database, branch.id)],
        preserved_id=preserved_id,
        auth=auth.content(tx, branch.id),
    )


def before_finalize(tx: Transaction, branch: Branch, target: Branch) -> Finalized:
    """Return the current state of two branches, one of which is about to replace the other."""
    jwks = tx.select(Jwks, "WHERE branch_id = ?", target.id)
    endpoints = tx.select(Endpoint, "WHERE branch_id = ? AND deleted_at IS NULL", target.id)
    own_apis = tx.select(DataApi, "WHERE branch_id = ?", target.id)
    return Finalized(
        branch=branch,
        target=target,
        endpoint_ids=[endpoint.id for endpoint in endpoints],
        jwks_ids=[row.id for row in jwks],
        data_api_ids=[row.id for row in own_apis],
    )


def undo_on_failure(tx: Transaction, operation: Operation, before: Replaced | Finalized) -> None:
    """Undo the restore at once if its operation has failed, or later if the operation fails.

    Emulated databases have no data to protect, so nothing is undone for them.
    """
    if tx.rules.postgres is None:
        return
    if operation.is_open:
        tx.update(operation, undo=msgspec.json.encode(before).decode())
    elif not operation.succeeds:
        _undo(tx, before)


def open_restore(tx: Transaction, branch_id: str) -> Operation | None:
    """Return the unfinished operation that restores a branch, or None.

    Until it ends, the tables describe the new data of the branch, and its cluster has the old data.
    """
    where = "WHERE branch_id = ? AND undo IS NOT NULL AND work IS NOT NULL AND settles_at >= ?"
    return tx.first(Operation, where, branch_id, NEVER)


def check_not_restoring(tx: Transaction, branch_id: str) -> None:
    """Raise 423 while a branch is being restored, because a failure would undo other changes."""
    operation = open_restore(tx, branch_id)
    if operation is not None:
        raise locked(
            f"branch {branch_id!r} is being restored by the operation {operation.id}: "
            "retry after it has finished"
        )


def undo_failed(tx: Transaction, operation: Operation) -> None:
    """Undo the restore that an operation performed, if the operation has failed."""
    if operation.undo is not None and not operation.succeeds:
        before: Replaced | Finalized = msgspec.json.decode(
            operation.undo, type=Replaced | Finalized
        )
        _undo(tx, before)


def _undo(tx: Transaction, before: Replaced | Finalized) -> None:
    if isinstance(before, Replaced):
        _undo_replacement(tx, before)
    elif tx.get(Branch, before.target.id).deleted_at is None:
        _undo_finalization(tx, before)


def _undo_finalization(tx: Transaction, before: Finalized) -> None:
    branch, target = tx.get(Branch, before.branch.id), tx.get(Branch, before.target.id)
    # Names must always be unique, so the failed branch first gets its id as its name.
    tx.update(
        branch,
        name=ids.uuid_text()
        if timelines.is_name_taken(tx, branch.project_id, branch.id)
        else branch.id,
        is_default=False,
        protected=before.branch.protected,
        expires_at=before.branch.expires_at,
        ttl_interval_seconds=before.branch.ttl_interval_seconds,
        backup_schedule=before.branch.backup_schedule,
        restore_status=before.branch.restore_status,
        updated_at=tx.now,
    )
    # If the failed branch was deleted, another one may have taken its name.
    is_taken = timelines.is_name_taken(tx, branch.project_id, branch.name)
    tx.update(
        target,
        name=target.name if is_taken else branch.name,
        is_default=branch.is_default,
        protected=before.target.protected,
        expires_at=before.target.expires_at,
        ttl_interval_seconds=before.target.ttl_interval_seconds,
        backup_schedule=before.target.backup_schedule,
        updated_at=tx.now,
    )
    for table, row_ids in (("endpoints", before.endpoint_ids), ("jwks", before.jwks_ids)):
        for row_id in row_ids:
            sql = f"UPDATE {table} SET branch_id = ? WHERE id = ? AND branch_id = ?"
            tx.execute(sql, target.id, row_id, branch.id)
    data_apis.move_back(tx, before.data_api_ids, branch.id, target.id)
    for changed in (branch, target):
        timelines.schedule_archiving(tx, changed.id, tx.now)


def _undo_replacement(tx: Transaction, replaced: Replaced) -> None:
    branch = replaced.branch
    for table, row_ids in (("roles", replaced.role_ids), ("databases", replaced.database_ids)):
        # Delete the copies: the branch should never have had them, even at an earlier time.
        tx.execute(f"DELETE FROM {table} WHERE branch_id = ? AND deleted_at IS NULL", branch.id)
        for row_id in row_ids:
            tx.execute(f"UPDATE {table} SET deleted_at = NULL WHERE id = ?", row_id)
    auth.replace_content(tx, branch.id, replaced.auth)
    tx.update(
        branch,
        parent_id=branch.parent_id,
        parent_lsn=branch.parent_lsn,
        parent_timestamp=branch.parent_timestamp,
        restored_from=branch.restored_from,
        restore_status=branch.restore_status,
        last_reset_at=branch.last_reset_at,
        updated_at=tx.now,
    )
    if replaced.preserved_id is not None:
        _delete_preserved(tx, replaced.preserved_id, branch.id)


def _delete_preserved(tx: Transaction, preserved_id: str, branch_id: str) -> None:
    sql = "UPDATE branches SET parent_id = ? WHERE parent_id = ?"
    tx.execute(sql, branch_id, preserved_id)
    for column, table in (("id", "branches"), ("branch_id", "endpoints")):
        where = f"WHERE {column} = ? AND deleted_at IS NULL"
        tx.execute(f"UPDATE {table} SET deleted_at = ? {where}", tx.now, preserved_id)
    timelines.schedule_archiving(tx, preserved_id, tx.now)
