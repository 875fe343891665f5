"""Project transfers, made directly by the owner or by accepting a transfer request."""

from neonctl_local import ids
from neonctl_local.api import vpc_endpoints
from neonctl_local.api.project_access import members, permissions
from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.access import Level
from neonctl_local.api.request.calls import Call, Response, fields, respond
from neonctl_local.clock import span
from neonctl_local.engine.api_keys import revoke_project_keys
from neonctl_local.errors import conflict, invalid, not_found
from neonctl_local.storage.tables import ApiKey, Project, TransferRequest
from neonctl_local.storage.transactions import Transaction


def from_user(tx: Transaction, call: Call) -> Response:
    """``POST /users/me/projects/transfer``: move the user's projects to an organization."""
    user_id = access.personal_user_id(call)
    return _transfer(tx, call, "user_id", user_id)


def from_organization(tx: Transaction, call: Call) -> Response:
    """``POST /organizations/{source_org_id}/projects/transfer``, for administrators."""
    source = access.organization(tx, call, Level.ADMIN, parameter="source_org_id")
    return _transfer(tx, call, "org_id", source.id)


def create_request(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/transfer_requests``: anyone who knows the id can accept it."""
    project = access.project(tx, call, Level.ADMIN)
    if project.org_id is not None:
        access.organization_of(tx, call.principal, project.org_id, Level.ADMIN)
    ttl_seconds = call.body(bodies.TransferRequestCreate).ttl_seconds
    request = TransferRequest(
        id=ids.uuid_text(),
        project_id=project.id,
        user_id=call.principal.user_id,
        created_at=tx.now,
        expires_at=tx.now + span(ttl_seconds),
        key_id=call.principal.key_id,
    )
    tx.insert(request)
    return respond(fields(request, "id", "project_id", "created_at", "expires_at"), 201)


def accept_request(tx: Transaction, call: Call) -> Response:
    """``PUT /projects/{project_id}/transfer_requests/{request_id}``.

    The key needs no access to the project: knowing the id of the transfer request is enough.
    """
    project = _requested_project(tx, call)
    body = call.body(bodies.TransferRequestAccept)
    user_id, org_id = access.new_owner(tx, call.principal, body.org_id)
    if (user_id, org_id) == (project.user_id, project.org_id):
        raise invalid("invalid request: org_id: the project already belongs to this account")
    _move(tx, project, user_id=user_id, org_id=org_id)
    return Response(204)


def close_requests(tx: Transaction, project_id: str) -> None:
    """Close all transfer requests for a project that is being moved or deleted."""
    where = "project_id = ? AND ended_at IS NULL"
    tx.execute(f"UPDATE transfer_requests SET ended_at = ? WHERE {where}", tx.now, project_id)


def _transfer(tx: Transaction, call: Call, owner: str, owner_id: str) -> Response:
    body = call.body(bodies.ProjectsTransfer)
    destination = body.destination_org_id or body.org_id
    if not destination:
        raise invalid(
            "invalid request: decode application/json: invalid: destination_org_id (field required)"
        )
    access.check_organization_visible(tx, call.principal, destination)
    if destination == owner_id:
        raise invalid(
            "invalid request: destination_org_id: the projects already belong to this organization"
        )
    for project_id in dict.fromkeys(body.project_ids):
        where = f"WHERE id = ? AND {owner} = ? AND deleted_at IS NULL"
        project = tx.first(Project, where, project_id, owner_id)
        if project is None:
            raise not_found("project", project_id)
        _move(tx, project, user_id=None, org_id=destination)
    return respond({})


def _requested_project(tx: Transaction, call: Call) -> Project:
    project_id, request_id = call.path["project_id"], call.path["request_id"]
    where = "WHERE id = ? AND project_id = ?"
    request = tx.first(TransferRequest, where, request_id, project_id)
    project = tx.first(Project, "WHERE id = ? AND deleted_at IS NULL", project_id)
    if request is None or project is None:
        raise not_found("transfer request", request_id)
    if request.ended_at is not None:
        raise conflict(
            f"the project was moved or deleted after transfer request {request_id!r} was created"
        )
    if request.expires_at <= tx.now:
        raise conflict(f"transfer request {request_id!r} has expired: create a new one")
    if request.user_id and not access.administers(tx, request.user_id, project):
        raise conflict(
            f"the creator of transfer request {request_id!r} is no longer an administrator "
            "of the project"
        )
    by_key = request.key_id is not None or request.user_id is None
    valid = "WHERE id = ? AND ended_at IS NULL"
    if by_key and tx.first(ApiKey, valid, request.key_id) is None:
        raise conflict(
            f"the API key that created transfer request {request_id!r} was revoked, or is not "
            "known: create a new one"
        )
    return project


def _move(tx: Transaction, project: Project, *, user_id: str | None, org_id: str | None) -> None:
    """Move a project to a new owner.

    Its keys, VPC restrictions, member roles and transfer requests become invalid.
    """
    tx.update(project, user_id=user_id, org_id=org_id, updated_at=tx.now)
    revoke_project_keys(tx, project.id)
    permissions.revoke_of_owner(tx, project.id, user_id)
    vpc_endpoints.remove_restrictions(tx, project.id)
    members.remove_roles(tx, project.id)
    close_requests(tx, project.id)
