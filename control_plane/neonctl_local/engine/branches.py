"""Storing and deleting branches, and copying the roles, databases and Neon Auth of a branch."""

from typing import Final

from msgspec.structs import replace

from neonctl_local import ids
from neonctl_local.clock import Instant, span
from neonctl_local.engine import branch_objects, computes, timelines
from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.services import auth
from neonctl_local.engine.work import DeleteClusters
from neonctl_local.errors import conflict, unprocessable
from neonctl_local.storage.service_tables import DataApi
from neonctl_local.storage.tables import (
    AnonymizedBranch,
    Branch,
    Database,
    DeletionMethod,
    Operation,
    Role,
)
from neonctl_local.storage.transactions import Transaction

RECOVERY_SECONDS: Final = 7 * 86400.0
"""How long a deleted branch or project can be recovered, in seconds."""


def insert_branch(tx: Transaction, branch: Branch, creation: Operation) -> Branch:
    """Store a branch, which is ready once the operation ``creation`` has finished.

    Raise 409 if the name of the branch is in use.
    """
    check_name_free(tx, branch.project_id, branch.name)
    state = timelines.READY if creation.succeeds else branch.state
    return tx.insert(replace(branch, state=state, state_operation=creation.open_id))


def is_anonymized(tx: Transaction, branch_id: str) -> bool:
    """Return whether a branch is anonymized. Branches with real databases never are."""
    where = "WHERE id = ?"
    return tx.rules.postgres is None and tx.first(AnonymizedBranch, where, branch_id) is not None


def check_name_free(tx: Transaction, project_id: str, name: str) -> None:
    """Raise 409 if a branch of the project has this name."""
    if timelines.is_name_taken(tx, project_id, name):
        raise conflict(f"a branch named {name!r} already exists in the project")


def check_not_deleted(tx: Transaction, role: str, branch: Branch) -> None:
    """Raise 409 if a branch is deleted. ``role`` describes the branch in the message."""
    if branch.deleted_at is None:
        return
    recoverable = tx.now <= (branch.recoverable_until or 0)
    deleted = "deleted: recover it first" if recoverable else "permanently deleted"
    raise conflict(f"{role}, {branch.id!r}, is {deleted}")


def expiry_blocker(tx: Transaction, branch: Branch) -> str | None:
    """Return the kind of a branch, such as "a protected branch", if that kind cannot expire.

    Return ``None`` if the branch can expire.
    """
    kinds = {
        "the default branch": branch.is_default,
        "a protected branch": branch.protected,
        "a branch with children": _has_children(tx, branch),
        "a branch with a Data API": bool(tx.first(DataApi, "WHERE branch_id = ?", branch.id)),
    }
    return next((kind for kind, applies in kinds.items() if applies), None)


def check_may_expire(tx: Transaction, branch: Branch) -> None:
    """Raise 422 if a branch has an expiry time, but is of a kind that cannot expire."""
    if branch.expires_at is not None and (kind := expiry_blocker(tx, branch)):
        raise unprocessable(
            f"{kind} cannot have an expires_at: leave it out, or set the expires_at of branch "
            f"{branch.id!r} to null first"
        )


def deletion_blocker(tx: Transaction, branch: Branch) -> str | None:
    """Return the reason why a branch cannot be deleted, or ``None`` if it can be deleted."""
    if branch.parent_id is None and _is_first_root(tx, branch):
        return "the root branch of a project cannot be deleted"
    if branch.is_default:
        return "the default branch of a project cannot be deleted"
    if branch.protected:
        return "a protected branch cannot be deleted: unprotect it first"
    if _has_children(tx, branch):
        return "a branch with children cannot be deleted"
    return None


def _has_children(tx: Transaction, branch: Branch) -> bool:
    return tx.first(Branch, "WHERE parent_id = ? AND deleted_at IS NULL", branch.id) is not None


def _is_first_root(tx: Transaction, branch: Branch) -> bool:
    """Return whether a root branch is its project's first branch, or has replaced it."""
    where = (
        "WHERE project_id = ? AND parent_id IS NULL AND deleted_at IS NULL AND id NOT IN "
        "(SELECT restored_as FROM branches WHERE restore_status = 'finalized' AND "
        "deleted_at IS NULL) ORDER BY created_at, rowid"
    )
    first = tx.first(Branch, where, branch.project_id)
    return first is not None and first.id == branch.id


def delete_branch(
    tx: Transaction,
    branch: Branch,
    chain: OperationChain,
    method: DeletionMethod,
    *,
    hard: bool = False,
) -> Branch:
    """Suspend the computes of a branch, then delete them and the branch.

    The branch and its computes can be recovered, unless ``hard`` is true.
    """
    for endpoint in computes.of_branch(tx, branch.id):
        tx.update(computes.remove(tx, endpoint, chain), deleted_with_branch=True)
    work = DeleteClusters([branch.id]) if hard else None
    chain.add("delete_timeline", branch_id=branch.id, work=work)
    deleted = tx.update(
        branch,
        deleted_at=tx.now,
        deletion_method=method,
        recoverable_until=None if hard else tx.now + span(RECOVERY_SECONDS),
        updated_at=tx.now,
        check_at=None,
        archive_at=None,
    )
    timelines.schedule_archiving(tx, branch.parent_id or "", tx.now)
    return deleted


def replace_objects(
    tx: Transaction,
    source: Branch,
    branch: Branch,
    at: Instant | None = None,
    lsn: str | None = None,
) -> None:
    """Replace the roles, databases and Neon Auth of a branch with copies of the source's.

    The source may be the branch itself ``at`` an earlier time, or at an ``lsn``. A child of a
    protected source keeps the passwords of its own roles, and its new roles get new passwords.
    """
    objects = _objects(tx, source.id, at, lsn)
    if source.protected and source.id == branch.parent_id:
        own = {role.name: role for role in branch_objects.of_branch(tx, Role, branch.id)}
        objects = [_with_password_of(own.get(row.name), row) for row in objects]
    for table in ("roles", "databases"):
        where = "WHERE branch_id = ? AND deleted_at IS NULL"
        tx.execute(f"UPDATE {table} SET deleted_at = ? {where}", tx.now, branch.id)
    _insert(tx, branch.id, objects)
    auth.replace_content(tx, branch.id, auth.content(tx, source.id))


def inherit_objects(
    tx: Transaction,
    source_id: str,
    branch_id: str,
    *,
    schema_only: bool = False,
    new_passwords: bool = False,
    at: Instant | None = None,
    lsn: str | None = None,
) -> None:
    """Copy the roles, databases and Neon Auth of the source to a branch.

    With ``at`` or ``lsn``, copy the roles and databases of that point in time. With
    ``new_passwords``, replace all passwords. With ``schema_only``, do not copy Neon Auth, because
    it consists of rows of a database.
    """
    objects = _objects(tx, source_id, at, lsn)
    _insert(tx, branch_id, [*map(_with_new_password, objects)] if new_passwords else objects)
    if not schema_only:
        auth.replace_content(tx, branch_id, auth.content(tx, source_id))


def _objects(
    tx: Transaction, branch_id: str, at: Instant | None, lsn: str | None
) -> list[Role | Database]:
    roles, databases = branch_objects.at_point(tx, branch_id, at, lsn)
    return [*roles, *databases]


def _with_new_password(row: Role | Database) -> Role | Database:
    if isinstance(row, Database) or row.password_or_verifier == "":
        return row
    return replace(row, password_seed=ids.password_seed(), verifier=None)


def _with_password_of(own: Role | None, row: Role | Database) -> Role | Database:
    if own is None or isinstance(row, Database) or own.password_or_verifier == "":
        return _with_new_password(row)
    return replace(row, password_seed=own.password_seed, verifier=own.verifier)


def _insert(tx: Transaction, branch_id: str, objects: list[Role | Database]) -> None:
    for row in objects:
        tx.insert(replace(row, id=0, branch_id=branch_id))
