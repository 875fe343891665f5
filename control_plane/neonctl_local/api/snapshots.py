"""Requests that manage snapshots, and the backup schedules of branches."""

import re
from typing import Final

from msgspec import UNSET

from neonctl_local import ids
from neonctl_local.api import branches
from neonctl_local.api.operations import operation_records
from neonctl_local.api.request import access
from neonctl_local.api.request.bodies import MAX_NAME_LENGTH, ScheduleItem, SnapshotChanges
from neonctl_local.api.request.calls import (
    Call,
    Json,
    Response,
    drop_none,
    instant_of,
    json_text,
    raw_json,
    respond,
)
from neonctl_local.clock import in_seconds, in_seconds_or_none
from neonctl_local.engine import branch_objects, operations, points, restores
from neonctl_local.engine.services import auth
from neonctl_local.engine.snapshots import SnapshotContent, delete_snapshot
from neonctl_local.engine.work import CopyCluster
from neonctl_local.errors import conflict, invalid, not_found, unprocessable
from neonctl_local.storage.tables import Branch, Project, Snapshot
from neonctl_local.storage.transactions import Transaction

RETENTION_SECONDS: Final = (3600, 35 * 86400)
"""The shortest and the longest retention of a scheduled snapshot."""

PREFIX: Final = "snap-"
"""The prefix of snapshot ids."""
_SLUG: Final = re.compile("[a-z]([a-z0-9-]*[a-z0-9])?")


def create(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/branches/{branch_id}/snapshot``: create a snapshot.

    This starts a ``create_branch`` operation.
    """
    project, branch = access.branch(tx, call)
    _check_root(branch, "snapshots")
    lsn, at = call.point_in_time()
    if at is not None:
        points.check_window(tx, branch, at, "timestamp")
    points.check(tx, call.checked_points, branch, at, lsn, "timestamp")
    expires_at = call.timestamp("expires_at")
    restores.check_not_restoring(tx, branch.id)
    name = call.name("name", MAX_NAME_LENGTH)
    _check_name_free(tx, project.id, name)
    chain = operations.start_chain(tx, project.id, branch.id)
    snapshot_id = ids.object_id(PREFIX)
    slug = _slug(tx, call, project) or snapshot_id.removeprefix(PREFIX)
    copy = CopyCluster(snapshot_id, branch.id, at=at, lsn=lsn)
    creation = chain.add("create_branch", branch_id=branch.id, work=copy)
    roles, databases = branch_objects.at_point(tx, branch.id, at, lsn)
    content = SnapshotContent(roles, databases, auth.content(tx, branch.id))
    snapshot = Snapshot(
        id=snapshot_id,
        project_id=project.id,
        source_branch_id=branch.id,
        name=name or snapshot_id,
        slug=slug,
        full_size=branch.logical_size or 0,
        lsn=points.shown_lsn(tx, lsn) or "",
        timestamp=at,
        content=json_text(content),
        taken=creation.succeeds,
        creation=creation.open_id,
        created_at=tx.now,
        expires_at=None if expires_at is None else branches.future_time(tx, expires_at),
    )
    return respond(
        {"snapshot": record(tx.insert(snapshot)), "operations": operation_records(chain)}
    )


def list_project(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/snapshots``: newest first."""
    project = access.project(tx, call)
    where = "WHERE project_id = ? AND deleted_at IS NULL ORDER BY created_at DESC, rowid DESC"
    found = tx.select(Snapshot, where, project.id)
    return respond({"snapshots": [record(snapshot) for snapshot in found]})


def update(tx: Transaction, call: Call) -> Response:
    """``PATCH /projects/{project_id}/snapshots/{snapshot_id}``: change the name or expiry time."""
    snapshot = find(tx, call)
    body = call.part("snapshot", SnapshotChanges)
    if body.name is not UNSET and body.name != snapshot.name:
        _check_name_free(tx, snapshot.project_id, body.name)
        snapshot = tx.update(snapshot, name=body.name)
    if body.expires_at is not UNSET:
        at = body.expires_at
        new = None if at is None else branches.future_time(tx, instant_of("expires_at", at))
        snapshot = tx.update(snapshot, expires_at=new)
    return respond({"snapshot": record(snapshot)})


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE .../snapshots/{snapshot_id}``: start a ``delete_timeline`` operation."""
    snapshot = find(tx, call)
    chain = operations.start_chain(tx, snapshot.project_id, snapshot.source_branch_id)
    delete_snapshot(tx, snapshot, chain)
    return respond({"operations": operation_records(chain)}, 202)


def get_schedule(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/backup_schedule``."""
    _, branch = access.branch(tx, call)
    return respond({"schedule": raw_json(branch.backup_schedule)})


def update_schedule(tx: Transaction, call: Call) -> Response:
    """``PUT .../backup_schedule``: store the schedule, which has no effect here."""
    _, branch = access.branch(tx, call)
    schedule = call.part("schedule", list[ScheduleItem])
    _check_root(branch, "a backup schedule")
    for number, item in enumerate(schedule):
        _check_item(item, f"schedule[{number}]")
    tx.update(branch, backup_schedule=json_text(schedule), updated_at=tx.now)
    return respond({})


def find(tx: Transaction, call: Call) -> Snapshot:
    """Return the snapshot in the path."""
    project = access.project(tx, call)
    snapshot_id = call.path["snapshot_id"]
    where = "WHERE id = ? AND project_id = ? AND deleted_at IS NULL"
    found = tx.first(Snapshot, where, snapshot_id, project.id)
    if found is None:
        raise not_found("snapshot", snapshot_id)
    return found


def record(snapshot: Snapshot) -> Json:
    """Return a snapshot as the API shows it."""
    return drop_none(
        {
            "id": snapshot.id,
            "name": snapshot.name,
            "slug": snapshot.slug,
            "lsn": snapshot.lsn or None,
            "timestamp": in_seconds_or_none(snapshot.timestamp),
            "source_branch_id": snapshot.source_branch_id,
            "created_at": in_seconds(snapshot.created_at),
            "expires_at": in_seconds_or_none(snapshot.expires_at),
            "manual": True,
            "full_size": snapshot.full_size,
        }
    )


def _check_root(branch: Branch, what: str) -> None:
    if branch.parent_id is not None:
        raise unprocessable(
            f"branch {branch.id!r} is no root branch: only root branches have {what}"
        )


def _check_name_free(tx: Transaction, project_id: str, name: str | None) -> None:
    where = "WHERE project_id = ? AND name = ? AND deleted_at IS NULL"
    if name is not None and tx.first(Snapshot, where, project_id, name):
        raise conflict(f"a snapshot named {name!r} already exists in the project")


def _check_item(item: ScheduleItem, field: str) -> None:
    """Raise 400, naming the field, if a schedule's field is missing or out of range."""
    days = {"weekly": (1, 7), "monthly": (1, 31)}.get(item.frequency)
    ranges = {"hour": (0, 23), "day": days, "retention_seconds": RETENTION_SECONDS}
    for name, limits in ranges.items():
        value = getattr(item, name)
        if limits is None or (value is UNSET and name == "retention_seconds"):
            continue
        if value is UNSET or not limits[0] <= value <= limits[1]:
            raise invalid(
                f"invalid request: {field}.{name}: a {item.frequency} schedule needs a value from "
                f"{limits[0]} to {limits[1]}"
            )


def _slug(tx: Transaction, call: Call, project: Project) -> str | None:
    """Return the slug of a request. Raise 400 if it is invalid, and 409 if it is taken."""
    slug = call.query.get("slug")
    if slug is None:
        return None
    if len(slug) > MAX_NAME_LENGTH or not _SLUG.fullmatch(slug):
        raise invalid(
            f"invalid request: slug: {slug!r} is invalid: expected lowercase letters, digits and "
            f"hyphens, with a letter first and no hyphen last, at most {MAX_NAME_LENGTH} characters"
        )
    where = "WHERE project_id = ? AND slug = ? AND deleted_at IS NULL"
    if tx.first(Snapshot, where, project.id, slug):
        raise conflict(f"the slug {slug!r} is taken by another snapshot of the project")
    return slug
