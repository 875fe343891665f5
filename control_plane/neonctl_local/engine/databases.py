"""The real databases: the required content of clusters, the running servers, and their use."""

from collections.abc import Collection
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from neonctl_local.clock import Instant, span
from neonctl_local.engine import (
    background,
    branch_objects,
    computes,
    points,
    quotas,
    timelines,
    work,
)
from neonctl_local.engine.branches import RECOVERY_SECONDS
from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.preload_libraries import PreloadLibraries, available
from neonctl_local.postgres.settings import permitted
from neonctl_local.storage.tables import (
    FINISHED,
    Branch,
    Endpoint,
    Operation,
    Project,
    Snapshot,
)
from neonctl_local.storage.transactions import Transaction

_EXISTING: Final = (
    "WHERE id = ? AND deleted_at IS NULL "
    "AND project_id IN (SELECT id FROM projects WHERE deleted_at IS NULL)"
)


class DesiredState(Struct, frozen=True, kw_only=True):
    """The roles, databases and settings that the cluster of a branch must contain.

    - ``roles``: the name of each role with its password, with the verifier of a password that was
      set with SQL, or with None if the role cannot log in.
    - ``databases``: the name and the owner of each database.
    - ``renamed``: the former names of databases, each with the current name. A database with a
      former name is renamed, unless the current name exists already.
    """

    roles: list[tuple[str, str | None]]
    databases: list[tuple[str, str]]
    settings: dict[str, str]
    renamed: dict[str, str]

    def __repr__(self) -> str:
        """Return a string without the passwords."""
        return f"<DesiredState of {len(self.roles)} roles, {len(self.databases)} databases>"


class ComputeRoute(NamedTuple):
    """The data of a compute that the proxy needs to connect a client to it."""

    project_id: str
    branch_id: str
    state: str
    disabled: bool
    type: str
    protected: bool
    project_settings: str


class _Settings(Struct, frozen=True):
    """The settings of a compute or project that affect the Postgres server."""

    pg_settings: dict[str, str] = {}
    preload_libraries: PreloadLibraries | None = None
    enable_logical_replication: bool = False


def check_kind(tx: Transaction, *, real: bool) -> None:
    """Raise RuntimeError if a file with real databases is used without them, or vice versa."""
    if not real:
        if tx.first(Operation, "WHERE work IS NOT NULL LIMIT 1") is not None:
            raise RuntimeError(
                "the data file has real databases: start it with postgres=True or --postgres"
            )
        return
    # With real databases, a create_timeline always has work.
    emulated = "WHERE action = 'create_timeline' AND outcome = ? AND work IS NULL LIMIT 1"
    if tx.first(Operation, emulated, FINISHED) is not None:
        raise RuntimeError(
            "the data file has branches without real databases: start it without "
            "postgres=True or --postgres, or use a new file"
        )


def is_branch(tx: Transaction, id: str) -> bool:
    """Return whether this is the id of a branch, deleted or not."""
    return tx.first(Branch, "WHERE id = ?", id) is not None


def is_deleted(tx: Transaction, branch_id: str) -> bool:
    """Return whether a branch has been deleted, even if it can be recovered."""
    return tx.first(Branch, "WHERE id = ? AND deleted_at IS NOT NULL", branch_id) is not None


def desired(
    tx: Transaction, branch_id: str, at: Instant | None = None, lsn: str | None = None
) -> DesiredState:
    """Return the roles, databases and settings that the cluster of a branch must contain.

    ``at`` or ``lsn`` selects the roles and databases for a copy of a point in time, with the
    current passwords.
    """
    roles, databases = branch_objects.at_point(tx, branch_id, at, lsn)
    return DesiredState(
        roles=[(role.name, None if role.no_login else role.password_or_verifier) for role in roles],
        databases=[(database.name, database.owner_name) for database in databases],
        settings=_postgres_settings(tx, tx.get(Branch, branch_id)),
        renamed={
            former: database.name
            for database in databases
            for former in branch_objects.former_names(database)
        },
    )


def route(tx: Transaction, endpoint_id: str) -> ComputeRoute | None:
    """Return the route to a compute, or None if no such compute exists."""
    endpoint = tx.first(Endpoint, _EXISTING, endpoint_id)
    if endpoint is None:
        return None
    return ComputeRoute(
        endpoint.project_id,
        endpoint.branch_id,
        computes.state(endpoint, tx.now),
        endpoint.disabled,
        endpoint.type,
        tx.get(Branch, endpoint.branch_id).protected,
        tx.get(Project, endpoint.project_id).settings,
    )


def past_route(tx: Transaction, endpoint_id: str) -> ComputeRoute | None:
    """Return the route to a branch's past, or None if there is no such branch or compute.

    ``endpoint_id`` is the id of the branch or of one of its computes.
    """
    branch = tx.first(Branch, _EXISTING, endpoint_id)
    if branch is None:
        return route(tx, endpoint_id)
    settings = tx.get(Project, branch.project_id).settings
    return ComputeRoute(
        branch.project_id,
        branch.id,
        computes.IDLE,
        disabled=False,
        type="read_only",
        protected=branch.protected,
        project_settings=settings,
    )


def check_past(tx: Transaction, point: points.PointInTime) -> None:
    """Raise ApiError if the tables show that nobody can connect to a branch at a point in time."""
    branch = tx.get(Branch, point.branch_id)
    quotas.check(tx, tx.get(Project, branch.project_id))
    points.check(tx, {point}, branch, point.at, point.lsn, "neon_timestamp")


def wake(tx: Transaction, endpoint_id: str) -> Operation | None:
    """Start a compute for a connection, unless it is active or starting.

    Return the operation that starts the compute, or None if the compute is already active. A
    connection counts as a request on the project. Raise 412 if the project exceeds a quota.
    """
    endpoint = tx.get(Endpoint, endpoint_id)
    background.on_project_request(tx, tx.get(Project, endpoint.project_id))
    endpoint = tx.get(Endpoint, endpoint_id)
    is_changing = endpoint.state_operation is not None or tx.now < endpoint.state_at
    if endpoint.state != computes.ACTIVE or not (is_changing or endpoint.running_on):
        quotas.check(tx, tx.get(Project, endpoint.project_id))
        computes.start(tx, endpoint, OperationChain(tx, endpoint.project_id))
    elif not is_changing:
        if endpoint.idle_at is not None and endpoint.idle_at <= tx.now:
            # The check that is about to suspend it may have begun before this connection.
            _note_use(tx, endpoint, tx.now)
        return None
    where = "WHERE project_id = ? AND endpoint_id = ? AND action = 'start_compute'"
    return tx.first(
        Operation, f"{where} ORDER BY position DESC LIMIT 1", endpoint.project_id, endpoint_id
    )


def is_shared(tx: Transaction, branch_id: str, endpoint_id: str) -> bool:
    """Return whether another compute uses the server of a branch, which must then keep running."""
    where = "WHERE running_on = ? AND id <> ? AND deleted_at IS NULL"
    return tx.first(Endpoint, where, branch_id, endpoint_id) is not None


def unused_servers(tx: Transaction, ids: set[str]) -> set[str]:
    """Return the clusters of ``ids`` whose servers no compute and no unfinished work uses."""
    where = "WHERE running_on IS NOT NULL AND deleted_at IS NULL"
    running = {endpoint.running_on or "" for endpoint in tx.select(Endpoint, where)}
    return ids - running - _touched(tx)


def unreferenced(tx: Transaction, ids: set[str]) -> set[str]:
    """Return the clusters of ``ids`` that no branch, snapshot or unfinished work needs.

    A deleted branch needs its cluster until the branch can no longer be recovered, and so do the
    branches and snapshots of a deleted project. A temporary cluster like ``br-1.new`` is needed
    while work on ``br-1`` is unfinished. The caller must collect ``ids`` before the transaction
    starts, because a cluster that is created later would seem to be unneeded.
    """
    touched = _touched(tx)
    return {key for key in ids - _kept(tx) if key.partition(".")[0] not in touched}


def needed(tx: Transaction) -> set[str]:
    """Return the clusters that finished work has created, and that a branch or snapshot needs.

    Clusters with unfinished work are left out, because that work may have removed them already.
    """
    kinds = [kind.__name__ for kind in work.MAKING]
    where = f"WHERE outcome = ? AND json_extract(work, '$.type') IN ({', '.join('?' * len(kinds))})"
    made: set[str] = set()
    for operation in tx.select(Operation, where, FINISHED, *kinds):
        made |= work.touches(work.of(operation)).exclusive
    return (_kept(tx) & made) - _touched(tx)


def known(tx: Transaction) -> frozenset[str]:
    """Return the ids of all branches and snapshots that were ever stored, deleted or not."""
    branches = frozenset(branch.id for branch in tx.select(Branch, ""))
    return branches | {snapshot.id for snapshot in tx.select(Snapshot, "")}


def _kept(tx: Transaction) -> set[str]:
    """Return the ids of the branches and snapshots that exist, or that can be recovered."""
    projects = "SELECT id FROM projects WHERE deleted_at IS NULL OR deleted_at >= ?"
    oldest = tx.now - span(RECOVERY_SECONDS)
    where = f"WHERE project_id IN ({projects})"
    kept = f"{where} AND (deleted_at IS NULL OR recoverable_until >= ?)"
    unreachable = _unreachable(tx)
    selected = tx.select(Branch, kept, oldest, tx.now)
    branches = [branch for branch in selected if branch.id not in unreachable]
    snapshots = tx.select(Snapshot, f"{where} AND deleted_at IS NULL", oldest)
    return {branch.id for branch in branches} | {snapshot.id for snapshot in snapshots}


def _unreachable(tx: Transaction) -> set[str]:
    """Return the ids of the deleted branches that can never be recovered.

    A branch cannot be recovered while its parent is deleted, so it is lost together with its
    parent.
    """
    deleted = tx.select(Branch, "WHERE deleted_at IS NOT NULL")
    lost: set[str] = set()
    found = {branch.id for branch in deleted if (branch.recoverable_until or 0) < tx.now}
    while found:
        lost |= found
        found = {branch.id for branch in deleted if branch.parent_id in found} - lost
    return lost


class Deleted(NamedTuple):
    """A deleted branch or project that can be recovered, and the clusters of its data."""

    deleted_at: Instant
    id: str
    clusters: frozenset[str]


def recoverable(tx: Transaction) -> list[Deleted]:
    """Return the deleted branches and projects that can be recovered, oldest first.

    Those whose clusters are in use by unfinished work are left out.
    """
    oldest = tx.now - span(RECOVERY_SECONDS)
    where = "WHERE deleted_at IS NULL AND id = ?"
    branches = tx.select(Branch, "WHERE deleted_at IS NOT NULL AND recoverable_until >= ?", tx.now)
    found = [
        Deleted(branch.deleted_at or 0, branch.id, frozenset([branch.id]))
        for branch in branches
        if tx.first(Project, where, branch.project_id) is not None
    ]
    for project in tx.select(Project, "WHERE deleted_at >= ?", oldest):
        clusters = {branch.id for branch in tx.select(Branch, "WHERE project_id = ?", project.id)}
        clusters |= {item.id for item in tx.select(Snapshot, "WHERE project_id = ?", project.id)}
        found.append(Deleted(project.deleted_at or 0, project.id, frozenset(clusters)))
    touched = _touched(tx)
    return sorted(item for item in found if item.clusters.isdisjoint(touched))


def forget(tx: Transaction, id: str) -> bool:
    """Make a deleted branch or project impossible to recover.

    Return False if it is not :func:`recoverable`.
    """
    if not any(item.id == id for item in recoverable(tx)):
        return False
    if (branch := tx.first(Branch, "WHERE id = ?", id)) is not None:
        tx.update(branch, recoverable_until=None)
    else:
        project = tx.get(Project, id)
        tx.update(project, deleted_at=tx.now - span(RECOVERY_SECONDS) - 1)
    return True


def note_activity(
    tx: Transaction,
    branch_id: str,
    *,
    busy: bool,
    last_active: Instant | None,
    logical_size: int | None,
) -> None:
    """Postpone the suspension of a branch's computes if it is in use, and store its size.

    ``busy`` means that a client is running a query or transaction. ``last_active`` is the time at
    which the last one ended, on the clock of the control plane. Neither brings a suspension
    forward.
    """
    used_at = tx.now if busy else min(last_active or 0, tx.now)
    where = "WHERE running_on = ? AND deleted_at IS NULL AND state_operation IS NULL"
    for endpoint in tx.select(Endpoint, where, branch_id):
        _note_use(tx, endpoint, used_at)
    branch = tx.first(Branch, "WHERE id = ?", branch_id)
    if branch is not None and logical_size not in (None, branch.logical_size):
        tx.update(branch, logical_size=logical_size)


def _note_use(tx: Transaction, endpoint: Endpoint, used_at: Instant) -> None:
    if endpoint.state != computes.ACTIVE or used_at <= (endpoint.used_at or 0):
        return
    timeout = computes.suspend_timeout(tx, endpoint)
    idle_at = endpoint.idle_at
    if timeout is not None and idle_at is not None:
        idle_at = max(idle_at, used_at + span(timeout))
    tx.update(endpoint, used_at=used_at, idle_at=idle_at)


def note_lsn(tx: Transaction, id: str, lsn: str) -> None:
    """Store the LSN at which a branch or snapshot was copied, unless it is stored already."""
    if lsn:
        sql = "UPDATE branches SET parent_lsn = ? WHERE id = ? AND parent_lsn IS NULL"
        tx.execute(sql, lsn, id)
        tx.execute("UPDATE snapshots SET lsn = ? WHERE id = ? AND lsn = ''", lsn, id)


def crashed(tx: Transaction, branch_id: str, reason: str) -> None:
    """Record that the server of a branch stopped unexpectedly, so its computes are idle.

    The operations of the project show the crash as a failed check_availability with the reason. The
    next connection starts a compute again.
    """
    endpoints = tx.select(Endpoint, "WHERE running_on = ?", branch_id)
    for endpoint in endpoints:
        _stop(tx, endpoint)
    branch = tx.first(Branch, "WHERE id = ?", branch_id)
    if branch is None or not endpoints:
        return
    chain = OperationChain(tx, branch.project_id)
    endpoint_id = endpoints[0].id
    chain.add_done("check_availability", branch_id=branch.id, endpoint_id=endpoint_id, error=reason)


def stopped(tx: Transaction, branch_id: str) -> None:
    """Record that the server of a branch is not running, so the next connection must start it."""
    for endpoint in tx.select(Endpoint, "WHERE running_on = ?", branch_id):
        _stop(tx, endpoint)


def stop_all(tx: Transaction, running: Collection[str] = ()) -> None:
    """Record that only the servers of the ``running`` branches are running.

    All other computes are idle.
    """
    for endpoint in tx.select(Endpoint, "WHERE running_on IS NOT NULL OR state = 'active'"):
        if endpoint.running_on not in running:
            _stop(tx, endpoint)


def _stop(tx: Transaction, endpoint: Endpoint) -> None:
    """Record that the server of a compute is not running.

    An unfinished operation still changes the state of the compute when it ends.
    """
    at = computes.note_end(tx, endpoint)
    tx.update(endpoint, running_on=None, state_before=computes.IDLE, updated_at=tx.now)
    if endpoint.state_operation is None:
        tx.update(endpoint, state=computes.IDLE, state_at=tx.now, suspended_at=at, idle_at=None)
    timelines.schedule_archiving(tx, endpoint.branch_id, tx.now)


def _touched(tx: Transaction) -> set[str]:
    """Return the clusters that unfinished work changes or reads."""
    touched = (work.touches(work.of(operation)) for operation in work.unfinished(tx))
    return {key for item in touched for key in item.exclusive | item.shared}


def _postgres_settings(tx: Transaction, branch: Branch) -> dict[str, str]:
    """Return the settings of the project, overridden by those of the branch's computes.

    The size of a compute sets the number of connections. Stored settings that a request could not
    have chosen are left out, because an imported file can contain anything. The settings of a
    read_write compute override those of other computes, because the server belongs to it.
    """
    project = tx.get(Project, branch.project_id)
    # "read_only" sorts before "read_write".
    endpoints = sorted(computes.of_branch(tx, branch.id), key=lambda endpoint: endpoint.type)
    texts = [project.default_endpoint_settings, *(endpoint.settings for endpoint in endpoints)]
    own, *sources = (
        msgspec.json.decode(text, type=_Settings) for text in (project.settings, *texts)
    )
    settings: dict[str, str] = {}
    if endpoints and endpoints[-1].autoscaling_limit_max_cu > computes.MINIMUM_CU:
        settings["max_connections"] = str(computes.max_connections(endpoints[-1]))
    for source in sources:
        settings |= permitted(source.pg_settings)
    if own.enable_logical_replication:
        settings["wal_level"] = "logical"
    chosen = [each.preload_libraries for each in (own, *sources) if each.preload_libraries]
    libraries = chosen[-1] if chosen else PreloadLibraries(use_defaults=True)
    names = libraries.names(available(tx, project.pg_version))
    if names:
        settings["shared_preload_libraries"] = ",".join(names)
    return settings
