"""Projects change hands: moved by their owner, or offered and accepted."""

from neonctl_async.local import ids
from neonctl_async.local.api import vpc_endpoints
from neonctl_async.local.api.project_access import permissions
from neonctl_async.local.api.request import access, bodies
from neonctl_async.local.api.request.access import Level
from neonctl_async.local.api.request.calls import Call, Response, respond
from neonctl_async.local.clock import in_seconds, span
from neonctl_async.local.engine.api_keys import end_project_keys
from neonctl_async.local.errors import conflict, invalid, not_found
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import Project, TransferRequest


def from_user(tx: Transaction, call: Call) -> Response:
    """``POST /users/me/projects/transfer``: the caller's own projects, to an organization."""
    user_id = access.personal(call)
    return _transfer(tx, call, "user_id", user_id)


def from_organization(tx: Transaction, call: Call) -> Response:
    """``POST /organizations/{source_org_id}/projects/transfer``: an administrator's, to another."""
    source = access.organization(tx, call, Level.ADMIN, parameter="source_org_id")
    return _transfer(tx, call, "org_id", source.id)


def create_request(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/transfer_requests``: an offer to whoever is told its id."""
    project = access.project(tx, call, Level.ADMIN)
    lifetime = call.body(bodies.TransferRequestCreate).ttl_seconds
    request = TransferRequest(
        id=ids.uuid_text(),
        project_id=project.id,
        user_id=call.principal.user_id,
        created_at=tx.now,
        expires_at=tx.now + span(lifetime),
    )
    tx.insert(request)
    shown = {
        "id": request.id,
        "project_id": project.id,
        "created_at": in_seconds(request.created_at),
        "expires_at": in_seconds(request.expires_at),
    }
    return respond(shown, 201)


def accept_request(tx: Transaction, call: Call) -> Response:
    """``PUT /projects/{project_id}/transfer_requests/{request_id}``.

    Who accepts need not reach the project: to know the id of the request is enough.
    """
    project = _offered(tx, call)
    body = call.body(bodies.TransferRequestAccept)
    user_id, org_id = access.new_owner(tx, call.principal, body.org_id)
    if (user_id, org_id) == (project.user_id, project.org_id):
        raise invalid("invalid request: org_id: the project is there already")
    _move(tx, project, user_id=user_id, org_id=org_id)
    return Response(204)


def end_requests(tx: Transaction, project_id: str) -> None:
    """End every offer of a project that changes hands or is deleted, for good."""
    where = "project_id = ? AND ended_at IS NULL"
    tx.execute(f"UPDATE transfer_requests SET ended_at = ? WHERE {where}", tx.now, project_id)


def _transfer(tx: Transaction, call: Call, owner: str, owner_id: str) -> Response:
    body = call.body(bodies.ProjectsTransfer)
    destination = body.destination_org_id or body.org_id
    if not destination:
        raise invalid(
            "invalid request: decode application/json: invalid: destination_org_id (field required)"
        )
    if access.level_in(tx, call.principal, destination) is Level.NONE:
        raise not_found("organization", destination)
    if destination == owner_id:
        raise invalid("invalid request: destination_org_id: the projects are there already")
    for project_id in dict.fromkeys(body.project_ids):
        where = f"WHERE id = ? AND {owner} = ? AND deleted_at IS NULL"
        project = tx.first(Project, where, project_id, owner_id)
        if project is None:
            raise not_found("project", project_id)
        _move(tx, project, user_id=None, org_id=destination)
    return respond({})


def _offered(tx: Transaction, call: Call) -> Project:
    project_id, request_id = call.path["project_id"], call.path["request_id"]
    where = "WHERE id = ? AND project_id = ?"
    request = tx.first(TransferRequest, where, request_id, project_id)
    project = tx.first(Project, "WHERE id = ? AND deleted_at IS NULL", project_id)
    if request is None or project is None:
        raise not_found("transfer request", request_id)
    if request.ended_at is not None:
        raise conflict(
            f"the project has changed hands, or was deleted, since request {request_id!r} was made"
        )
    if request.expires_at <= tx.now:
        raise conflict(f"transfer request {request_id!r} has expired: ask for a new one")
    if request.user_id and not access.administers(tx, request.user_id, project):
        raise conflict(
            f"whoever made transfer request {request_id!r} no longer administers the project"
        )
    return project


def _move(tx: Transaction, project: Project, *, user_id: str | None, org_id: str | None) -> None:
    """Give a project to its new owner. What it had of the organization that it leaves, it loses."""
    tx.update(project, user_id=user_id, org_id=org_id, updated_at=tx.now)
    end_project_keys(tx, project.id)
    permissions.revoke_own(tx, project.id, user_id)
    vpc_endpoints.lift_restrictions(tx, project.id)
    end_requests(tx, project.id)
