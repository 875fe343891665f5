"""Requests that manage computes, which the API calls endpoints."""

from msgspec import UNSET

from neonctl_local import ids
from neonctl_local.api import project_settings
from neonctl_local.api.operations import operation_records
from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.calls import (
    Call,
    Json,
    Response,
    drop_none,
    json_text,
    raw_json,
    respond,
)
from neonctl_local.clock import in_seconds, in_seconds_or_none
from neonctl_local.engine import computes, operations, quotas, timelines
from neonctl_local.engine.branches import is_anonymized
from neonctl_local.engine.operations import OperationChain
from neonctl_local.errors import conflict, invalid, unprocessable
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import Branch, Endpoint, Project
from neonctl_local.storage.transactions import Transaction


def create(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/endpoints``: create and start a compute."""
    project = access.project(tx, call)
    spec = call.part("endpoint", bodies.NewEndpoint)
    branch = access.branch_of(tx, project.id, spec.branch_id)
    if spec.region_id not in {None, project.region_id}:
        raise invalid(
            f"invalid request: endpoint.region_id is {spec.region_id!r}: use the region of the "
            f"project, {project.region_id!r}, or leave it out"
        )
    chain = operations.start_chain(tx, project.id, branch.id)
    endpoint = add(tx, project, branch, spec, chain)
    return _changed(tx, endpoint, chain, 201)


def list_project(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/endpoints``."""
    project = access.project(tx, call)
    where = "WHERE project_id = ? AND deleted_at IS NULL ORDER BY created_at, rowid"
    return _listed(tx, tx.select(Endpoint, where, project.id))


def list_branch(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/branches/{branch_id}/endpoints``."""
    _, branch = access.branch(tx, call)
    return _listed(tx, computes.of_branch(tx, branch.id))


def get(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/endpoints/{endpoint_id}``."""
    _, endpoint = access.endpoint(tx, call)
    return respond({"endpoint": record(tx, endpoint)})


def update(tx: Transaction, call: Call) -> Response:
    """``PATCH /projects/{project_id}/endpoints/{endpoint_id}``: change a compute.

    Changes start an ``apply_config`` operation. Disabling a compute suspends it. If the compute
    moves to an archived branch, that branch is unarchived first.
    """
    project, before = access.endpoint(tx, call)
    endpoint = before
    body = call.part("endpoint", bodies.EndpointChanges)
    if body.settings is not UNSET:
        _check_settings(tx, project, body.settings)
    destination = _destination(tx, endpoint, body)
    changed_branches = (endpoint.branch_id, destination.id if destination else None)
    chain = operations.start_chain(tx, endpoint.project_id, *changed_branches)
    if destination is not None:
        computes.check_single_writer(tx, destination.id, endpoint.type)
        timelines.unarchive(tx, destination, chain)
        endpoint = _move(tx, endpoint, destination, chain)
    changes = _changes(body)
    if changes:
        endpoint = tx.update(endpoint, updated_at=tx.now, **changes)
        if changes.keys() & {"autoscaling_limit_min_cu", "autoscaling_limit_max_cu"}:
            _check_sizes(endpoint)
        endpoint = computes.configure(tx, endpoint, chain)
        if body.disabled is True and endpoint.state == computes.ACTIVE:
            endpoint = computes.suspend(tx, endpoint, chain)
        computes.schedule_checks(tx, before.branch_id)
        computes.schedule_checks(tx, endpoint.branch_id)
    if destination is not None:
        timelines.schedule_archiving(tx, before.branch_id, tx.now)
        timelines.schedule_archiving(tx, destination.id, tx.now)
    return _changed(tx, endpoint, chain)


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE /projects/{project_id}/endpoints/{endpoint_id}``: return 204 if already deleted."""
    project = access.project(tx, call)
    where = "WHERE id = ? AND project_id = ? AND deleted_at IS NOT NULL"
    if tx.first(Endpoint, where, call.path["endpoint_id"], project.id):
        return Response(204)
    _, endpoint = access.endpoint(tx, call)
    if tx.get(Branch, endpoint.branch_id).protected:
        raise unprocessable(
            "a compute of a protected branch cannot be deleted: unprotect the branch first"
        )
    if endpoint.type == "read_write" and is_anonymized(tx, endpoint.branch_id):
        raise unprocessable("the read_write compute of an anonymized branch cannot be deleted")
    chain = operations.start_chain(tx, endpoint.project_id, endpoint.branch_id)
    return _changed(tx, computes.remove(tx, endpoint, chain), chain)


def start(tx: Transaction, call: Call) -> Response:
    """``POST .../endpoints/{endpoint_id}/start``: start a compute, unless it is running."""
    project, endpoint = access.endpoint(tx, call)
    _check_startable(tx, project, endpoint)
    chain = operations.start_chain(tx, endpoint.project_id, endpoint.branch_id)
    if endpoint.state != computes.ACTIVE:
        endpoint = computes.start(tx, endpoint, chain)
    return _changed(tx, endpoint, chain)


def suspend(tx: Transaction, call: Call) -> Response:
    """``POST .../endpoints/{endpoint_id}/suspend``: suspend a compute, unless it is idle."""
    _, endpoint = access.endpoint(tx, call)
    chain = operations.start_chain(tx, endpoint.project_id, endpoint.branch_id)
    if endpoint.state == computes.ACTIVE:
        endpoint = computes.suspend(tx, endpoint, chain)
    return _changed(tx, endpoint, chain)


def restart(tx: Transaction, call: Call) -> Response:
    """``POST .../endpoints/{endpoint_id}/restart``: suspend and start a running compute."""
    project, endpoint = access.endpoint(tx, call)
    _check_startable(tx, project, endpoint)
    if endpoint.state == computes.IDLE:
        raise unprocessable(f"endpoint {endpoint.id!r} is idle: start it, or connect to it")
    chain = operations.start_chain(tx, endpoint.project_id, endpoint.branch_id)
    endpoint = computes.suspend(tx, endpoint, chain)
    return _changed(tx, computes.start(tx, endpoint, chain), chain)


def _check_settings(tx: Transaction, project: Project, settings: bodies.EndpointSettings) -> None:
    libraries = settings.preload_libraries
    project_settings.check_libraries(tx, project.pg_version, libraries, "endpoint.settings")
    project_settings.check_computes(settings, "endpoint.settings")


def _destination(
    tx: Transaction, endpoint: Endpoint, body: bodies.EndpointChanges
) -> Branch | None:
    if body.branch_id is UNSET or body.branch_id == endpoint.branch_id:
        return None
    return access.branch_of(tx, endpoint.project_id, body.branch_id)


def _move(
    tx: Transaction, endpoint: Endpoint, destination: Branch, chain: OperationChain
) -> Endpoint:
    """With real databases, move a running compute to the server of another branch."""
    if tx.rules.postgres is None or not computes.needs_suspend(endpoint, tx.now):
        return endpoint
    suspended = computes.suspend(tx, endpoint, chain)
    # Even if the suspension fails, the compute does not run on the other branch yet.
    moved = tx.update(suspended, branch_id=destination.id, state=computes.IDLE)
    return computes.start(tx, moved, chain)


def _changes(body: bodies.EndpointChanges) -> dict[str, SqlValue]:
    changes: dict[str, SqlValue] = {}
    for name in body.__struct_fields__:
        value = getattr(body, name)
        if value is not UNSET:
            changes[name] = json_text(value) if name == "settings" else value
    return changes


def _check_startable(tx: Transaction, project: Project, endpoint: Endpoint) -> None:
    quotas.check(tx, project)
    if endpoint.disabled:
        raise conflict(f"endpoint {endpoint.id!r} is disabled: enable it first")


def _changed(
    tx: Transaction, endpoint: Endpoint, chain: OperationChain, status: int = 200
) -> Response:
    body = {"endpoint": record(tx, endpoint), "operations": operation_records(chain)}
    return respond(body, status)


def _listed(tx: Transaction, found: list[Endpoint]) -> Response:
    return respond({"endpoints": [record(tx, endpoint) for endpoint in found]})


def add(
    tx: Transaction,
    project: Project,
    branch: Branch,
    spec: bodies.EndpointSpec,
    chain: OperationChain,
) -> Endpoint:
    """Store a compute, and start it unless it is disabled.

    Raise 409 for a second read_write compute, and 412 if the project exceeds a quota.
    """
    computes.check_single_writer(tx, branch.id, spec.type)
    _check_settings(tx, project, spec.settings)
    options = spec if isinstance(spec, bodies.NewEndpoint) else None
    minimum, maximum, timeout = _limits(project, spec)
    endpoint = Endpoint(
        id=ids.object_id("ep-"),
        project_id=project.id,
        branch_id=branch.id,
        name=options.name if options else None,
        type=spec.type,
        region_id=project.region_id,
        provisioner=spec.provisioner or project.provisioner,
        autoscaling_limit_min_cu=minimum,
        autoscaling_limit_max_cu=maximum,
        suspend_timeout_seconds=timeout,
        settings=json_text(spec.settings),
        pooler_enabled=options.pooler_enabled if options else False,
        disabled=options.disabled if options else False,
        passwordless_access=options.passwordless_access if options else True,
        created_at=tx.now,
        updated_at=tx.now,
        state_before=computes.INIT,
        state=computes.IDLE if options and options.disabled else computes.INIT,
        state_at=tx.now,
    )
    _check_sizes(endpoint)
    if not endpoint.disabled:
        quotas.check(tx, project)
    tx.insert(endpoint)
    computes.schedule_checks(tx, branch.id)
    return endpoint if endpoint.disabled else computes.start(tx, endpoint, chain)


def _limits(project: Project, spec: bodies.EndpointSpec) -> tuple[float, float, int]:
    defaults = project_settings.default_computes(project)
    minimum = spec.autoscaling_limit_min_cu or defaults.autoscaling_limit_min_cu
    maximum = spec.autoscaling_limit_max_cu or max(minimum, defaults.autoscaling_limit_max_cu)
    if spec.suspend_timeout_seconds is None:
        return minimum, maximum, defaults.suspend_timeout_seconds
    return minimum, maximum, spec.suspend_timeout_seconds


def _check_sizes(endpoint: Endpoint) -> None:
    computes.check_sizes(endpoint.autoscaling_limit_min_cu, endpoint.autoscaling_limit_max_cu)


def record(tx: Transaction, endpoint: Endpoint) -> Json:
    """Return a compute as the API shows it."""
    now = tx.now
    pending = endpoint.state if now < endpoint.state_at else None
    started = endpoint.started_at if (endpoint.started_at or now) <= now else None
    last_active = None if started is None else max(started, endpoint.used_at or 0)
    suspended = endpoint.suspended_at if (endpoint.suspended_at or now) <= now else None
    return drop_none(
        {
            "id": endpoint.id,
            "host": computes.host(tx, endpoint),
            "name": endpoint.name,
            "project_id": endpoint.project_id,
            "branch_id": endpoint.branch_id,
            "region_id": endpoint.region_id,
            "type": endpoint.type,
            "current_state": computes.state(endpoint, now),
            "pending_state": pending,
            "autoscaling_limit_min_cu": endpoint.autoscaling_limit_min_cu,
            "autoscaling_limit_max_cu": endpoint.autoscaling_limit_max_cu,
            "settings": raw_json(endpoint.settings),
            "pooler_enabled": endpoint.pooler_enabled,
            "pooler_mode": "transaction",
            "disabled": endpoint.disabled,
            "passwordless_access": endpoint.passwordless_access,
            "last_active": in_seconds_or_none(last_active),
            "creation_source": "console",
            "created_at": in_seconds(endpoint.created_at),
            "updated_at": in_seconds(endpoint.updated_at),
            "started_at": in_seconds_or_none(started),
            "suspended_at": in_seconds_or_none(suspended),
            "proxy_host": computes.proxy_host(tx, endpoint.region_id),
            "suspend_timeout_seconds": endpoint.suspend_timeout_seconds,
            "provisioner": endpoint.provisioner,
        }
    )
