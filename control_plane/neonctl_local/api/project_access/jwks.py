"""JWKS URLs: a project verifies the tokens of its users with the keys at these URLs."""

from typing import Final

from neonctl_local import ids
from neonctl_local.api.operations import operation_records
from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.calls import (
    Call,
    Json,
    Response,
    fields,
    json_text,
    raw_json,
    respond,
)
from neonctl_local.engine import computes, operations
from neonctl_local.engine.operations import OperationChain
from neonctl_local.errors import not_found
from neonctl_local.storage.tables import Jwks
from neonctl_local.storage.transactions import Transaction

_LIVE: Final = (
    "WHERE project_id = ? AND (branch_id IS NULL "
    "OR EXISTS (SELECT 1 FROM branches WHERE id = jwks.branch_id AND deleted_at IS NULL))"
)


def list_project(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/jwks``: oldest first, without those of deleted branches."""
    project = access.project(tx, call)
    found = tx.select(Jwks, f"{_LIVE} ORDER BY created_at, rowid", project.id)
    return respond({"jwks": [_record(jwks) for jwks in found]})


def add(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/jwks``: add a URL.

    This starts an ``apply_config`` operation for each running compute that uses the URL.
    """
    project = access.project(tx, call)
    body = call.body(bodies.JwksCreate)
    if body.branch_id is not None:
        access.branch_of(tx, project.id, body.branch_id)
    jwks = Jwks(
        id=ids.uuid_text(),
        project_id=project.id,
        branch_id=body.branch_id,
        jwks_url=body.jwks_url,
        provider_name=body.provider_name,
        jwt_audience=body.jwt_audience,
        role_names=json_text(body.role_names),
        created_at=tx.now,
        updated_at=tx.now,
    )
    chain = _configure(tx, tx.insert(jwks))
    return respond({"jwks": _record(jwks), "operations": operation_records(chain)}, 201)


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE /projects/{project_id}/jwks/{jwks_id}``."""
    project = access.project(tx, call)
    jwks_id = call.path["jwks_id"]
    jwks = tx.first(Jwks, f"{_LIVE} AND id = ?", project.id, jwks_id)
    if jwks is None:
        raise not_found("JWKS", jwks_id)
    tx.execute("DELETE FROM jwks WHERE id = ?", jwks.id)
    return respond(_record(jwks))


def _configure(tx: Transaction, jwks: Jwks) -> OperationChain:
    running = [
        endpoint
        for endpoint in computes.list_running(tx, jwks.project_id)
        if jwks.branch_id in (None, endpoint.branch_id)
    ]
    chain = operations.start_chain(
        tx, jwks.project_id, *(endpoint.branch_id for endpoint in running)
    )
    for endpoint in running:
        computes.configure(tx, endpoint, chain)
    return chain


def _record(jwks: Jwks) -> Json:
    shown = fields(jwks, "id", "project_id", "branch_id", "jwks_url", "provider_name")
    if jwks.role_names != "[]":
        shown["role_names"] = raw_json(jwks.role_names)
    return shown | fields(jwks, "jwt_audience", "created_at", "updated_at")
