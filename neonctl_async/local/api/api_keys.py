"""Requests that create, list and revoke API keys (sections 2.1, 3.1, 4.1 and 5)."""

from typing import Final

from neonctl_async.local.api.request import access, bodies
from neonctl_async.local.api.request.access import Level
from neonctl_async.local.api.request.calls import Call, Json, Response, fields, respond
from neonctl_async.local.clock import in_seconds_or_none
from neonctl_async.local.engine.api_keys import create_key, create_user_key
from neonctl_async.local.errors import not_found
from neonctl_async.local.ids import KeyKind
from neonctl_async.local.storage.tables import ApiKey, Project, User
from neonctl_async.local.storage.transactions import Transaction

_FIELDS: Final = ("id", "name", "created_at", "created_by", "project_id")
_MAX_ID_DIGITS: Final = 18


def list_personal(tx: Transaction, call: Call) -> Response:
    """``GET /api_keys``: list the caller's own keys."""
    keys = _active_keys(tx, "user_id", access.personal_user_id(call))
    return respond([_listed(tx, key) for key in keys])


def create_personal(tx: Transaction, call: Call) -> Response:
    """``POST /api_keys``: create a personal key. Any user can do this."""
    user_id = access.personal_user_id(call)
    key, token = create_user_key(tx, user_id, call.body(bodies.KeyCreate).key_name)
    return respond(_created(key, token))


def revoke_personal(tx: Transaction, call: Call) -> Response:
    """``DELETE /api_keys/{key_id}``: revoke a personal key. Only the owner can do this."""
    return respond(_revoke(tx, call, "user_id", access.personal_user_id(call)))


def list_organization(tx: Transaction, call: Call) -> Response:
    """``GET /organizations/{org_id}/api_keys``: list organization and project-scoped keys."""
    organization = access.organization(tx, call)
    return respond([_listed(tx, key) for key in _active_keys(tx, "org_id", organization.id)])


def create_organization(tx: Transaction, call: Call) -> Response:
    """``POST /organizations/{org_id}/api_keys`` (section 4.1).

    An organization key requires the personal key of an administrator. A project-scoped key
    requires the personal key of any member.
    """
    organization = access.organization(tx, call)
    user_id = access.personal_user_id(call)
    body = call.body(bodies.KeyCreate)
    name, project_id = body.key_name, body.project_id
    kind: KeyKind = "organization" if project_id is None else "project"
    where = "WHERE id = ? AND org_id = ? AND deleted_at IS NULL"
    if project_id is None:
        access.organization(tx, call, Level.ADMIN)
    elif not tx.first(Project, where, project_id, organization.id):
        raise not_found("project", project_id)
    key, token = create_key(
        tx, kind, name, created_by=user_id, org_id=organization.id, project_id=project_id
    )
    return respond(_created(key, token))


def revoke_organization(tx: Transaction, call: Call) -> Response:
    """``DELETE /organizations/{org_id}/api_keys/{key_id}``, for administrators."""
    organization = access.organization(tx, call, Level.ADMIN)
    return respond(_revoke(tx, call, "org_id", organization.id))


def _active_keys(tx: Transaction, owner: str, owner_id: str) -> list[ApiKey]:
    return tx.select(ApiKey, f"WHERE {owner} = ? AND ended_at IS NULL ORDER BY id", owner_id)


def _revoke(tx: Transaction, call: Call, owner: str, owner_id: str) -> Json:
    text = call.path["key_id"]
    where = f"WHERE id = ? AND {owner} = ? AND ended_at IS NULL"
    number = int(text) if text.isdecimal() and len(text) <= _MAX_ID_DIGITS else 0
    key = tx.first(ApiKey, where, number, owner_id)
    if key is None:
        raise not_found("API key", text)
    tx.update(key, ended_at=tx.now)
    return fields(key, *_FIELDS) | {"revoked": True} | _use(key)


def _created(key: ApiKey, token: str) -> Json:
    return fields(key, *_FIELDS) | {"key": token}


def _listed(tx: Transaction, key: ApiKey) -> Json:
    creator = tx.first(User, "WHERE id = ?", key.created_by)
    name = creator.name if creator else ""
    created_by = {"id": key.created_by, "name": name, "image": ""}
    return fields(key, *_FIELDS) | {"created_by": created_by} | _use(key)


def _use(key: ApiKey) -> Json:
    return {
        "last_used_at": in_seconds_or_none(key.last_used_at),
        "last_used_from_addr": key.last_used_from,
    }
