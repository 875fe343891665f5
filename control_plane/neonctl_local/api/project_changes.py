"""Requests that update, delete and recover a project."""

from typing import Final

import msgspec
from msgspec import UNSET

from neonctl_local.api import branches, project_settings, projects
from neonctl_local.api.operations import operation_records
from neonctl_local.api.project_access import transfers
from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.access import Level
from neonctl_local.api.request.calls import Call, Response, json_text, respond
from neonctl_local.clock import span
from neonctl_local.engine import computes, operations, timelines
from neonctl_local.engine.api_keys import revoke_project_keys
from neonctl_local.engine.branches import RECOVERY_SECONDS
from neonctl_local.engine.work import StopClusters
from neonctl_local.errors import not_found, unprocessable
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import Branch
from neonctl_local.storage.transactions import Transaction

_JSON_FIELDS: Final = ("settings", "default_endpoint_settings")


def update(tx: Transaction, call: Call) -> Response:
    """``PATCH /projects/{project_id}``.

    A new history retention starts an ``apply_storage_config`` operation. New settings start an
    ``apply_config`` operation for each running compute. If they enable logical replication, the
    computes are suspended instead.
    """
    project = access.project(tx, call)
    body = call.part("project", bodies.ProjectChanges)
    enables_replication = False
    if body.settings is not UNSET:
        project_settings.check(tx, body.settings, project.pg_version)
        enables_replication = project_settings.enables_replication(body.settings, project.settings)
    if (defaults := body.default_endpoint_settings) is not UNSET:
        project_settings.check_computes(defaults, "project.default_endpoint_settings")
    chain = operations.start_chain(tx, project.id, *projects.branch_ids(tx, project.id))
    changes: dict[str, SqlValue] = {"updated_at": tx.now}
    for name in body.__struct_fields__:
        value = getattr(body, name)
        if value is not UNSET:
            is_json = name in _JSON_FIELDS
            changes[name] = _merged(getattr(project, name), value) if is_json else value
    retention = body.history_retention_seconds
    if retention is not UNSET and retention != project.history_retention_seconds:
        chain.add_for_project("apply_storage_config")
    if body.settings is not UNSET:
        for endpoint in computes.list_running(tx, project.id):
            if enables_replication:
                computes.suspend(tx, endpoint, chain)
            else:
                computes.configure(tx, endpoint, chain)
    project = tx.update(project, **changes)
    if defaults is not UNSET:
        project_settings.check_default_sizes(project)
    record = projects.record(tx, project, call.principal)
    return respond({"project": record, "operations": operation_records(chain)})


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE /projects/{project_id}``: start a ``delete_tenant`` operation.

    Only administrators can do this, so a project-scoped key cannot delete its project. Afterwards,
    only the operations of the project can still be read.
    """
    project = access.project(tx, call, Level.ADMIN)
    where = "WHERE project_id = ? AND protected AND deleted_at IS NULL"
    if (protected := tx.first(Branch, where, project.id)) is not None:
        raise unprocessable(
            f"a project with a protected branch cannot be deleted: unprotect {protected.name!r} "
            "first"
        )
    record = projects.record(tx, project, call.principal)
    chain = operations.start_chain(tx, project.id, *projects.branch_ids(tx, project.id))
    for endpoint in computes.list_running(tx, project.id):
        computes.note_end(tx, endpoint)
    work = StopClusters(projects.branch_ids(tx, project.id))
    chain.add_for_project("delete_tenant", work=work)
    tx.execute(
        "UPDATE endpoints SET state_before = 'idle', state = 'idle', state_at = ?, idle_at = NULL, "
        "state_operation = NULL, running_on = NULL WHERE project_id = ?",
        tx.now,
        project.id,
    )
    tx.execute(
        "UPDATE branches SET check_at = NULL, archive_at = NULL, expires_at = NULL, "
        "ttl_interval_seconds = NULL WHERE project_id = ?",
        project.id,
    )
    own = "SELECT id FROM branches WHERE project_id = ?"
    tx.execute(f"DELETE FROM data_apis WHERE branch_id IN ({own})", project.id)
    tx.update(project, deleted_at=tx.now, detach_at=None)
    revoke_project_keys(tx, project.id)
    transfers.close_requests(tx, project.id)
    return respond({"project": record, "operations": operation_records(chain)})


def recover(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/recover``: start a ``tenant_attach`` operation.

    The keys of the project stay revoked.
    """
    project = access.project(tx, call, Level.ADMIN, deleted=True)
    if project.deleted_at is None or tx.now > project.deleted_at + span(RECOVERY_SECONDS):
        raise not_found("deleted project", project.id)
    chain = operations.start_chain(tx, project.id)
    chain.add_for_project("tenant_attach")
    project = tx.update(project, deleted_at=None, updated_at=tx.now)
    where = "WHERE project_id = ? AND deleted_at IS NULL ORDER BY created_at, rowid"
    recovered = tx.select(Branch, where, project.id)
    for branch in recovered:
        computes.schedule_checks(tx, branch.id)
        timelines.schedule_archiving(tx, branch.id, tx.now)
    # Snapshots that expired while the project was deleted expire now. An operation with an earlier
    # time would fall into the period in which the project was deleted.
    where = "project_id = ? AND expires_at < ?"
    tx.execute(f"UPDATE snapshots SET expires_at = ? WHERE {where}", tx.now, project.id, tx.now)
    return respond(
        {
            "project": projects.record(tx, project, call.principal),
            "branches": [branches.record(tx, branch) for branch in recovered],
            "operations": operation_records(chain),
        }
    )


def _merged(before: str, changes: object) -> str:
    merged = msgspec.json.decode(before, type=dict[str, object])
    merged |= msgspec.to_builtins(changes)
    return json_text(merged)
