"""Restores of snapshots to new branches. A finalized restore replaces its target branch."""

from typing import Final

import msgspec
from msgspec.structs import replace

from neonctl_local import ids
from neonctl_local.api import branches, endpoints, snapshots
from neonctl_local.api.operations import operation_records
from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.bodies import FinalizeRestore, SnapshotRestore
from neonctl_local.api.request.calls import Call, Json, Response, respond
from neonctl_local.engine import computes, operations, restores, timelines
from neonctl_local.engine.branches import (
    check_name_free,
    check_not_deleted,
    expiry_blocker,
    insert_branch,
)
from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.services import auth, data_apis
from neonctl_local.engine.snapshots import SnapshotContent
from neonctl_local.engine.work import CopyCluster
from neonctl_local.errors import conflict, unprocessable
from neonctl_local.storage.tables import Branch, Endpoint, Snapshot
from neonctl_local.storage.transactions import Transaction

RESTORED: Final = "restored"
FINALIZED: Final = "finalized"


def restore(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/snapshots/{snapshot_id}/restore``: restore to a new branch.

    This starts a ``create_branch`` operation.

    With ``finalize_restore``, the new branch replaces its target as in :func:`finalize`, unless
    its creation fails.
    """
    snapshot = snapshots.find(tx, call)
    if not snapshot.taken:
        raise conflict(f"snapshot {snapshot.id!r} was not taken, because its operation failed")
    body = call.body(SnapshotRestore)
    if body.target_branch_id is not None:
        access.branch_of(tx, snapshot.project_id, body.target_branch_id)
    chain = operations.start_chain(
        tx, snapshot.project_id, snapshot.source_branch_id, body.target_branch_id
    )
    branch = _create_branch(tx, call, snapshot, body, chain)
    response: Json = {}
    if body.finalize_restore and branch.state == timelines.READY:
        before = restores.before_finalize(tx, branch, _target(tx, branch))
        branch, moved = _replace_target(tx, branch, None, chain)
        restores.undo_on_failure(tx, chain.operations[0], before)
        response["endpoints"] = [endpoints.record(tx, endpoint) for endpoint in moved]
    response |= {"branch": branches.record(tx, branch), "operations": operation_records(chain)}
    return respond(response)


def finalize(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/branches/{branch_id}/finalize_restore``.

    The computes of the target move to the restored branch. A running compute is suspended and
    started again. The restored branch also gets the name, the default and protected settings, the
    expiry and the backup schedule of the target. The JWKS and Data APIs of the target move, too.
    """
    project, branch = access.branch(tx, call)
    body = call.body(FinalizeRestore)
    if branch.restore_status != RESTORED:
        raise unprocessable(
            f"branch {branch.id!r} was not restored from a snapshot, or is already finalized"
        )
    if branch.state == timelines.INIT:
        raise conflict(f"branch {branch.id!r} was not restored, because its operation failed")
    chain = operations.start_chain(tx, project.id, branch.id, branch.restored_as)
    _replace_target(tx, branch, body.name, chain)
    # Checked last: a locked branch must return 423, after which clients retry.
    if timelines.state(branch, tx.now) == timelines.INIT:
        raise conflict(
            f"branch {branch.id!r} is being restored: "
            "finalize it after its create_branch has finished"
        )
    return respond({"operations": operation_records(chain)})


def _create_branch(
    tx: Transaction, call: Call, snapshot: Snapshot, body: SnapshotRestore, chain: OperationChain
) -> Branch:
    branch_id = ids.object_id("br-")
    copy = CopyCluster(branch_id, snapshot.id)
    deprecated_name = call.name("name", bodies.MAX_NAME_LENGTH)
    name = body.name or deprecated_name or branch_id
    creation = chain.add("create_branch", branch_id=branch_id, new_name=name, work=copy)
    branch = Branch(
        id=branch_id,
        project_id=snapshot.project_id,
        name=name,
        created_by=call.principal.created_by,
        created_at=tx.now,
        updated_at=tx.now,
        state_at=creation.settles_at,
        restored_from=snapshot.id,
        restored_as=body.target_branch_id or snapshot.source_branch_id,
        restore_status=RESTORED,
    )
    branch = insert_branch(tx, branch, creation)
    timelines.schedule_archiving(tx, branch.id, tx.now)
    content = msgspec.json.decode(snapshot.content, type=SnapshotContent)
    for row in (*content.roles, *content.databases):
        tx.insert(replace(row, id=0, branch_id=branch.id))
    auth.replace_content(tx, branch.id, content.auth)
    return branch


def _replace_target(
    tx: Transaction, branch: Branch, target_name: str | None, chain: OperationChain
) -> tuple[Branch, list[Endpoint]]:
    target = _target(tx, branch)
    target_name = target_name or _free_target_name(tx, target, branch)
    if target_name != branch.name:
        check_name_free(tx, target.project_id, target_name)
    branch = timelines.unarchive(tx, branch, chain)
    moved = _move_computes(tx, target, branch, chain)
    branch = _move_settings(tx, branch, target, target_name)
    for changed in (target, branch):
        computes.schedule_checks(tx, changed.id)
        timelines.schedule_archiving(tx, changed.id, tx.now)
    return branch, moved


def _target(tx: Transaction, branch: Branch) -> Branch:
    target = tx.get(Branch, branch.restored_as or "")
    check_not_deleted(tx, f"the target of the restored branch {branch.id!r}", target)
    return target


def _move_settings(tx: Transaction, branch: Branch, target: Branch, target_name: str) -> Branch:
    # Names are unique at any time, and the target may get the current name of the branch.
    tx.update(branch, name=ids.uuid_text())
    tx.update(
        target,
        name=target_name,
        is_default=False,
        protected=False,
        **branches.expiry(tx, None),
        backup_schedule="[]",
        updated_at=tx.now,
    )
    sql = "UPDATE jwks SET branch_id = ?, updated_at = ? WHERE branch_id = ?"
    tx.execute(sql, branch.id, tx.now, target.id)
    data_apis.move(tx, target.id, branch.id)
    is_default = target.is_default or branch.is_default
    branch = tx.update(
        branch,
        name=target.name,
        is_default=is_default,
        protected=target.protected or branch.protected,
        expires_at=target.expires_at,
        ttl_interval_seconds=target.ttl_interval_seconds,
        backup_schedule=target.backup_schedule,
        restore_status=FINALIZED,
        updated_at=tx.now,
    )
    return tx.update(branch, **branches.expiry(tx, None)) if expiry_blocker(tx, branch) else branch


def _free_target_name(tx: Transaction, target: Branch, branch: Branch) -> str:
    name = _with_suffix(target.name, " (old)")
    in_use = name != branch.name and timelines.is_name_taken(tx, target.project_id, name)
    return _with_suffix(target.name, f" (old {target.id})") if in_use else name


def _with_suffix(name: str, suffix: str) -> str:
    return name[: bodies.MAX_NAME_LENGTH - len(suffix)] + suffix


def _move_computes(
    tx: Transaction, target: Branch, branch: Branch, chain: OperationChain
) -> list[Endpoint]:
    moved: list[Endpoint] = []
    for endpoint in computes.of_branch(tx, target.id):
        computes.check_single_writer(tx, branch.id, endpoint.type)
        moved.append(_move_compute(tx, endpoint, branch, chain))
    return moved


def _move_compute(
    tx: Transaction, endpoint: Endpoint, branch: Branch, chain: OperationChain
) -> Endpoint:
    if not computes.needs_suspend(endpoint, tx.now):
        return tx.update(endpoint, branch_id=branch.id, updated_at=tx.now)
    suspended = computes.suspend(tx, endpoint, chain)
    return computes.start(tx, tx.update(suspended, branch_id=branch.id), chain)
