"""Requests that list and read operations, and the JSON of operations in responses."""

from typing import Final

from neonctl_local import clock
from neonctl_local.api.request import access
from neonctl_local.api.request.calls import Call, Json, Response, drop_none, respond
from neonctl_local.clock import Instant
from neonctl_local.engine import lifecycle
from neonctl_local.engine.operations import OperationChain, shows_retry_at
from neonctl_local.errors import invalid, not_found
from neonctl_local.storage.tables import Operation
from neonctl_local.storage.transactions import Transaction

DEFAULT_LIMIT: Final = 100


def list_page(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/operations``: newest first.

    The cursor of a page is the position of its last operation. The last page is empty and has
    no cursor.
    """
    project = access.project(tx, call, deleted=True)
    limit = call.integer("limit", DEFAULT_LIMIT)
    before = cursor_position(call)
    page = tx.select(
        Operation,
        "WHERE project_id = ? AND position < ? ORDER BY position DESC LIMIT ?",
        project.id,
        before,
        limit,
    )
    body: Json = {"operations": [record(operation, tx.now) for operation in page]}
    if page:
        body["pagination"] = {"cursor": clock.exactly(page[-1].position)}
    return respond(body)


def get(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}/operations/{operation_id}``."""
    project = access.project(tx, call, deleted=True)
    operation_id = call.path["operation_id"]
    where = "WHERE id = ? AND project_id = ?"
    operation = tx.first(Operation, where, operation_id, project.id)
    if operation is None:
        raise not_found("operation", operation_id)
    return respond({"operation": record(operation, tx.now)})


def cursor_position(call: Call) -> Instant:
    """Return the position in the query parameter ``cursor``, by default the start of the list."""
    text = call.query.get("cursor")
    if not text:
        return (1 << 63) - 1
    try:
        return clock.parse(text)
    except ValueError:
        raise invalid(f"invalid request: cursor: {text!r} is not a cursor of this list") from None


def record(operation: Operation, now: Instant) -> Json:
    """Return an operation as the API shows it at ``now``.

    ``retry_at`` is exact, because clients act on it. The other times are whole seconds.
    """
    state = lifecycle.state_at(operation, now)
    retry_at = None
    if state.retry_at is not None and shows_retry_at(operation):
        retry_at = clock.exactly(state.retry_at)
    return drop_none(
        {
            "id": operation.id,
            "project_id": operation.project_id,
            "branch_id": operation.branch_id,
            "endpoint_id": operation.endpoint_id,
            "action": operation.action,
            "status": state.status,
            "error": state.error,
            "failures_count": state.failures_count,
            "retry_at": retry_at,
            "created_at": clock.in_seconds(operation.created_at),
            "updated_at": clock.in_seconds(state.updated_at),
            "total_duration_ms": state.duration // 1000,
        }
    )


def operation_records(chain: OperationChain) -> list[Json]:
    """Return the operations of a request, as its response lists them."""
    return [record(operation, chain.now) for operation in chain.operations]
