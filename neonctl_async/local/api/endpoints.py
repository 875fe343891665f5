"""The requests about computes, which the API calls endpoints."""

from msgspec import UNSET

from neonctl_async.local.api.request import access, bodies
from neonctl_async.local.api.request.calls import Answer, Call, answer, stored
from neonctl_async.local.engine import computes, operations, timelines
from neonctl_async.local.engine.operations import Chain
from neonctl_async.local.errors import conflict
from neonctl_async.local.storage.database import SqlValue, Transaction
from neonctl_async.local.storage.tables import Branch, Endpoint


def create(tx: Transaction, call: Call) -> Answer:
    """``POST /projects/{project_id}/endpoints``: the compute is started."""
    project = access.project(tx, call)
    spec = call.body(bodies.EndpointCreate).endpoint
    branch = access.branch_of(tx, project.id, spec.branch_id)
    chain = operations.begin(tx, project.id, branch.id)
    endpoint = computes.add(tx, project, branch, spec, chain)
    return answer(
        {"endpoint": computes.record(endpoint, tx.now), "operations": chain.records()}, 201
    )


def list_project(tx: Transaction, call: Call) -> Answer:
    """``GET /projects/{project_id}/endpoints``."""
    project = access.project(tx, call)
    where = "WHERE project_id = ? AND deleted_at IS NULL ORDER BY created_at, rowid"
    return _listed(tx, tx.select(Endpoint, where, project.id))


def list_branch(tx: Transaction, call: Call) -> Answer:
    """``GET /projects/{project_id}/branches/{branch_id}/endpoints``."""
    _, branch = access.branch(tx, call)
    return _listed(tx, computes.of_branch(tx, branch.id))


def get(tx: Transaction, call: Call) -> Answer:
    """``GET /projects/{project_id}/endpoints/{endpoint_id}``."""
    _, endpoint = access.endpoint(tx, call)
    return answer({"endpoint": computes.record(endpoint, tx.now)})


def update(tx: Transaction, call: Call) -> Answer:
    """``PATCH /projects/{project_id}/endpoints/{endpoint_id}``: apply_config.

    A branch that it moves onto is brought back from the archive first.
    """
    _, before = access.endpoint(tx, call)
    endpoint = before
    body = call.body(bodies.EndpointUpdate).endpoint
    destination = _destination(tx, endpoint, body)
    touched = (endpoint.branch_id, destination.id if destination else None)
    chain = operations.begin(tx, endpoint.project_id, *touched)
    if destination is not None:
        computes.refuse_second_writer(tx, destination.id, endpoint.type)
        timelines.unarchive(tx, destination, chain)
    changes = _changes(body)
    if changes:
        endpoint = tx.update(endpoint, updated_at=tx.now, **changes)
        computes.refuse_crossed_limits(endpoint)
        endpoint = computes.apply(tx, endpoint, chain)
        computes.watch_branch(tx, before.branch_id)
        computes.watch_branch(tx, endpoint.branch_id)
    if destination is not None:
        timelines.watch(tx, before.branch_id, tx.now)
        timelines.watch(tx, destination.id, tx.now)
    return _changed(tx, endpoint, chain)


def delete(tx: Transaction, call: Call) -> Answer:
    """``DELETE /projects/{project_id}/endpoints/{endpoint_id}``; 204 where it already was."""
    project = access.project(tx, call)
    where = "WHERE id = ? AND project_id = ? AND deleted_at IS NOT NULL"
    if tx.first(Endpoint, where, call.path["endpoint_id"], project.id):
        return Answer(204)
    _, endpoint = access.endpoint(tx, call)
    chain = operations.begin(tx, endpoint.project_id, endpoint.branch_id)
    return _changed(tx, computes.remove(tx, endpoint, chain), chain)


def start(tx: Transaction, call: Call) -> Answer:
    """``POST .../endpoints/{endpoint_id}/start``: nothing to do for one that runs."""
    _, endpoint = access.endpoint(tx, call)
    _refuse_disabled(endpoint)
    chain = operations.begin(tx, endpoint.project_id, endpoint.branch_id)
    if endpoint.state != computes.ACTIVE:
        endpoint = computes.start(tx, endpoint, chain)
    return _changed(tx, endpoint, chain)


def suspend(tx: Transaction, call: Call) -> Answer:
    """``POST .../endpoints/{endpoint_id}/suspend``: nothing to do for one that is idle."""
    _, endpoint = access.endpoint(tx, call)
    chain = operations.begin(tx, endpoint.project_id, endpoint.branch_id)
    if endpoint.state == computes.ACTIVE:
        endpoint = computes.suspend(tx, endpoint, chain)
    return _changed(tx, endpoint, chain)


def restart(tx: Transaction, call: Call) -> Answer:
    """``POST .../endpoints/{endpoint_id}/restart``: suspend_compute if it runs, start_compute."""
    _, endpoint = access.endpoint(tx, call)
    _refuse_disabled(endpoint)
    chain = operations.begin(tx, endpoint.project_id, endpoint.branch_id)
    if endpoint.state == computes.ACTIVE:
        endpoint = computes.suspend(tx, endpoint, chain)
    return _changed(tx, computes.start(tx, endpoint, chain), chain)


def _destination(
    tx: Transaction, endpoint: Endpoint, body: bodies.EndpointChanges
) -> Branch | None:
    if body.branch_id is UNSET or body.branch_id == endpoint.branch_id:
        return None
    return access.branch_of(tx, endpoint.project_id, body.branch_id)


def _changes(body: bodies.EndpointChanges) -> dict[str, SqlValue]:
    changes: dict[str, SqlValue] = {}
    for name in body.__struct_fields__:
        value = getattr(body, name)
        if value is not UNSET:
            changes[name] = stored(value) if name == "settings" else value
    return changes


def _refuse_disabled(endpoint: Endpoint) -> None:
    if endpoint.disabled:
        raise conflict(f"endpoint {endpoint.id!r} is disabled: enable it first")


def _changed(tx: Transaction, endpoint: Endpoint, chain: Chain) -> Answer:
    return answer({"endpoint": computes.record(endpoint, tx.now), "operations": chain.records()})


def _listed(tx: Transaction, found: list[Endpoint]) -> Answer:
    return answer({"endpoints": [computes.record(endpoint, tx.now) for endpoint in found]})
