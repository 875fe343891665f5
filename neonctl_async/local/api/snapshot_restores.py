"""Branches restored from snapshots, and how they come to replace another."""

from typing import Final

import msgspec
from msgspec.structs import replace

from neonctl_async.local import ids
from neonctl_async.local.api import branches, endpoints, snapshots
from neonctl_async.local.api.operations import operation_records
from neonctl_async.local.api.request import access, bodies
from neonctl_async.local.api.request.bodies import FinalizeRestore, SnapshotRestore
from neonctl_async.local.api.request.calls import Call, Json, Response, respond
from neonctl_async.local.engine import computes, operations, timelines
from neonctl_async.local.engine.branches import (
    insert_branch,
    is_name_taken,
    refuse_deleted,
    refuse_taken_name,
)
from neonctl_async.local.engine.operations import Chain
from neonctl_async.local.engine.snapshots import SnapshotContent
from neonctl_async.local.errors import conflict, unprocessable
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import Branch, Endpoint, Snapshot

RESTORED: Final = "restored"
FINALIZED: Final = "finalized"


def restore(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/snapshots/{snapshot_id}/restore``: create_branch.

    Finalized at once, the new branch replaces its target as :func:`finalize` has it, unless its
    creation fails.
    """
    snapshot = snapshots.find(tx, call)
    if not snapshot.taken:
        raise conflict(f"snapshot {snapshot.id!r} was not taken, for its operation failed")
    body = call.body(SnapshotRestore)
    if body.target_branch_id:
        access.branch_of(tx, snapshot.project_id, body.target_branch_id)
    chain = operations.begin(
        tx, snapshot.project_id, snapshot.source_branch_id, body.target_branch_id
    )
    branch = _create(tx, call, snapshot, body, chain)
    shown: Json = {}
    if body.finalize_restore and branch.state == timelines.READY:
        branch, moved = _replace_target(tx, branch, None, chain)
        shown["endpoints"] = [endpoints.record(endpoint, tx.now) for endpoint in moved]
    return respond(
        {"branch": branches.record(tx, branch), "operations": operation_records(chain)} | shown
    )


def finalize(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/branches/{branch_id}/finalize_restore``.

    The computes of the target move to the restored branch, what runs by a suspend_compute and a
    start_compute. The restored branch takes over its name, whether it is the default and
    protected, its expiry, its backup schedule and its JWKS.
    """
    project, branch = access.branch(tx, call)
    body = call.body(FinalizeRestore)
    if branch.restore_status != RESTORED:
        raise unprocessable(
            f"branch {branch.id!r} was not restored from a snapshot, or its restore is finalized"
        )
    if branch.state == timelines.INIT:
        raise conflict(f"branch {branch.id!r} was not restored, for its operation failed")
    chain = operations.begin(tx, project.id, branch.id, branch.restored_as)
    _replace_target(tx, branch, body.name, chain)
    # Last, for a client that finds the branch locked knows to try again.
    if timelines.state(branch, tx.now) == timelines.INIT:
        raise conflict(
            f"branch {branch.id!r} is being restored: finalize it once its create_branch has ended"
        )
    return respond({"operations": operation_records(chain)})


def _create(
    tx: Transaction, call: Call, snapshot: Snapshot, body: SnapshotRestore, chain: Chain
) -> Branch:
    branch_id = ids.branch_id()
    creation = chain.add("create_branch", branch_id=branch_id)
    branch = Branch(
        id=branch_id,
        project_id=snapshot.project_id,
        parent_id=None,
        parent_lsn=None,
        parent_timestamp=None,
        name=body.name or call.text("name", bodies.LONGEST_NAME) or branch_id,
        is_default=False,
        protected=False,
        init_source="parent-data",
        annotation="{}",
        created_by=call.principal.created_by,
        created_at=tx.now,
        updated_at=tx.now,
        state_before=timelines.INIT,
        state=timelines.READY if creation.succeeds else timelines.INIT,
        state_at=creation.settles_at,
        restored_from=snapshot.id,
        restored_as=body.target_branch_id or snapshot.source_branch_id,
        restore_status=RESTORED,
    )
    insert_branch(tx, branch)
    timelines.watch(tx, branch.id, tx.now)
    content = msgspec.json.decode(snapshot.content, type=SnapshotContent)
    for held in (*content.roles, *content.databases):
        tx.insert(replace(held, id=0, branch_id=branch.id))
    return branch


def _replace_target(
    tx: Transaction, branch: Branch, kept_as: str | None, chain: Chain
) -> tuple[Branch, list[Endpoint]]:
    target = _target(tx, branch)
    kept_as = kept_as or _name_of_old(tx, target, branch)
    if kept_as != branch.name:
        refuse_taken_name(tx, target.project_id, kept_as)
    branch = timelines.unarchive(tx, branch, chain)
    moved = _move_computes(tx, target, branch, chain)
    branch = _take_place(tx, branch, target, kept_as)
    for changed in (target, branch):
        computes.watch_branch(tx, changed.id)
        timelines.watch(tx, changed.id, tx.now)
    return branch, moved


def _target(tx: Transaction, branch: Branch) -> Branch:
    target = tx.get(Branch, branch.restored_as or "")
    refuse_deleted(tx, f"the branch that {branch.id!r} is to replace", target)
    return target


def _take_place(tx: Transaction, branch: Branch, target: Branch, kept_as: str) -> Branch:
    # Names are taken once at any moment: the target may be given the one that its successor has.
    tx.update(branch, name=ids.uuid_text())
    tx.update(
        target,
        name=kept_as,
        is_default=False,
        expires_at=None,
        backup_schedule="[]",
        updated_at=tx.now,
    )
    scoped = "UPDATE jwks SET branch_id = ?, updated_at = ? WHERE branch_id = ?"
    tx.execute(scoped, branch.id, tx.now, target.id)
    is_default = target.is_default or branch.is_default
    return tx.update(
        branch,
        name=target.name,
        is_default=is_default,
        protected=target.protected or branch.protected,
        expires_at=None if is_default else target.expires_at,
        backup_schedule=target.backup_schedule,
        restore_status=FINALIZED,
        updated_at=tx.now,
    )


def _name_of_old(tx: Transaction, target: Branch, branch: Branch) -> str:
    name = _with_suffix(target.name, " (old)")
    taken = name != branch.name and is_name_taken(tx, target.project_id, name)
    return _with_suffix(target.name, f" (old {target.id})") if taken else name


def _with_suffix(name: str, suffix: str) -> str:
    return name[: bodies.LONGEST_NAME - len(suffix)] + suffix


def _move_computes(tx: Transaction, target: Branch, branch: Branch, chain: Chain) -> list[Endpoint]:
    moved: list[Endpoint] = []
    for endpoint in computes.of_branch(tx, target.id):
        computes.refuse_second_writer(tx, branch.id, endpoint.type)
        moved.append(_move_compute(tx, endpoint, branch, chain))
    return moved


def _move_compute(tx: Transaction, endpoint: Endpoint, branch: Branch, chain: Chain) -> Endpoint:
    if not computes.in_use(endpoint, tx.now):
        return tx.update(endpoint, branch_id=branch.id, updated_at=tx.now)
    suspended = computes.suspend(tx, endpoint, chain)
    return computes.start(tx, tx.update(suspended, branch_id=branch.id), chain)
