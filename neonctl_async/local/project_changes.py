"""What is done to a project that exists: update, transfer, delete, recover."""

from typing import Final

import msgspec
from msgspec import UNSET

from neonctl_async.local import access, bodies, branches, computes, keys, operations, projects
from neonctl_async.local.access import Level
from neonctl_async.local.calls import Answer, Call, answer, stored
from neonctl_async.local.clock import span
from neonctl_async.local.database import SqlValue, Transaction
from neonctl_async.local.errors import invalid, not_found
from neonctl_async.local.operations import Chain
from neonctl_async.local.rows import Branch, Endpoint, Project

_JSON: Final = ("settings", "default_endpoint_settings")


def update(tx: Transaction, call: Call) -> Answer:
    """``PATCH /projects/{project_id}``.

    A new history retention is an apply_storage_config; new settings are an apply_config of each
    compute that runs (section 2.3).
    """
    project = access.project(tx, call)
    body = call.body(bodies.ProjectUpdate).project
    chain = operations.begin(tx, project.id, *projects.branch_ids(tx, project.id))
    changes: dict[str, SqlValue] = {"updated_at": tx.now}
    for name in body.__struct_fields__:
        value = getattr(body, name)
        if value is not UNSET:
            changes[name] = _merged(getattr(project, name), value) if name in _JSON else value
    retention = body.history_retention_seconds
    if retention is not UNSET and retention != project.history_retention_seconds:
        chain.add("apply_storage_config")
    if body.settings is not UNSET:
        _apply_to_running(tx, project, chain)
    project = tx.update(project, **changes)
    return answer({"project": projects.record(tx, project), "operations": chain.records()})


def delete(tx: Transaction, call: Call) -> Answer:
    """``DELETE /projects/{project_id}``: delete_tenant.

    It takes an administrator, so no project-scoped key deletes its project (2.1, rule 1). The
    project is gone at once; the records of its operations stay.
    """
    project = access.project(tx, call, Level.ADMIN)
    shown = projects.record(tx, project)
    chain = operations.begin(tx, project.id, *projects.branch_ids(tx, project.id))
    chain.add("delete_tenant")
    tx.execute(
        "UPDATE endpoints SET state_before = 'idle', state = 'idle', state_at = ?, idle_at = NULL "
        "WHERE project_id = ?",
        tx.now,
        project.id,
    )
    tx.execute(
        "UPDATE branches SET check_at = NULL, archive_at = NULL, expires_at = NULL "
        "WHERE project_id = ?",
        project.id,
    )
    tx.execute("UPDATE snapshots SET expires_at = NULL WHERE project_id = ?", project.id)
    tx.update(project, deleted_at=tx.now, detach_at=None)
    keys.end_for_project(tx, project.id)
    return answer({"project": shown, "operations": chain.records()})


def recover(tx: Transaction, call: Call) -> Answer:
    """``POST /projects/{project_id}/recover``: tenant_attach. Keys that ended stay ended."""
    project = access.project(tx, call, Level.ADMIN, deleted=True)
    if project.deleted_at is None or tx.now > project.deleted_at + span(projects.RECOVERABLE):
        raise not_found("deleted project", project.id)
    chain = operations.begin(tx, project.id)
    chain.add("tenant_attach")
    project = tx.update(project, deleted_at=None, updated_at=tx.now)
    where = "WHERE project_id = ? AND deleted_at IS NULL ORDER BY created_at, rowid"
    kept = tx.select(Branch, where, project.id)
    for branch in kept:
        computes.watch_branch(tx, branch.id)
    return answer(
        {
            "project": projects.record(tx, project),
            "branches": [branches.record(tx, branch) for branch in kept],
            "operations": chain.records(),
        }
    )


def transfer_from_user(tx: Transaction, call: Call) -> Answer:
    """``POST /users/me/projects/transfer``: the caller's own projects, to an organization."""
    user_id = access.personal(call)
    return _transfer(tx, call, "user_id", user_id)


def transfer_from_organization(tx: Transaction, call: Call) -> Answer:
    """``POST /organizations/{source_org_id}/projects/transfer``: an administrator's, to another.

    Project-scoped keys stop working (2.1, rule 4).
    """
    source = access.organization(tx, call, Level.ADMIN, parameter="source_org_id")
    return _transfer(tx, call, "org_id", source.id)


def _transfer(tx: Transaction, call: Call, owner: str, owner_id: str) -> Answer:
    body = call.body(bodies.ProjectsTransfer)
    destination = body.destination_org_id or body.org_id
    if not destination:
        raise invalid(
            "invalid request: decode application/json: invalid: destination_org_id (field required)"
        )
    if access.level_in(tx, call.caller, destination) is Level.NONE:
        raise not_found("organization", destination)
    if destination == owner_id:
        raise invalid("invalid request: destination_org_id: the projects are there already")
    for project_id in dict.fromkeys(body.project_ids):
        where = f"WHERE id = ? AND {owner} = ? AND deleted_at IS NULL"
        project = tx.first(Project, where, project_id, owner_id)
        if project is None:
            raise not_found("project", project_id)
        tx.update(project, user_id=None, org_id=destination, updated_at=tx.now)
        keys.end_for_project(tx, project.id)
    return answer({})


def _apply_to_running(tx: Transaction, project: Project, chain: Chain) -> None:
    running = "WHERE project_id = ? AND state = 'active' AND deleted_at IS NULL ORDER BY created_at"
    for endpoint in tx.select(Endpoint, running, project.id):
        computes.apply(tx, endpoint, chain)


def _merged(before: str, changes: object) -> str:
    merged = msgspec.json.decode(before, type=dict[str, object])
    merged |= msgspec.to_builtins(changes)
    return stored(merged)
