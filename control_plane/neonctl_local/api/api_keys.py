"""Requests that create, list and revoke API keys."""

from collections.abc import Callable
from typing import Final

from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.access import Level
from neonctl_local.api.request.calls import Call, Json, Response, fields, json_text, respond
from neonctl_local.clock import SECOND, in_seconds_or_none
from neonctl_local.engine.api_keys import create_key, create_user_key
from neonctl_local.errors import not_found
from neonctl_local.ids import KeyKind
from neonctl_local.storage.tables import ApiKey, Project, User
from neonctl_local.storage.transactions import Transaction

_FIELDS: Final = ("id", "name", "created_at", "created_by", "project_id")
_MAX_ID_DIGITS: Final = 18

# The lists have no pages, so SQLite encodes them as JSON: 10,000 keys take 10 ms, during which
# other threads can run. Python would take 130 ms.


def _in_seconds(column: str) -> str:
    """Return SQL that formats an instant as :func:`clock.in_seconds` does."""
    return f"replace(datetime({column} / {SECOND}, 'unixepoch'), ' ', 'T') || 'Z'"


def _used(column: str, position: int) -> str:
    """Return SQL for a last-use column, in which values that are not stored yet take precedence."""
    use_id, value = "json_extract(value, '$[0]')", f"json_extract(value, '$[{position}]')"
    newer = f"SELECT {value} FROM json_each(:uses) WHERE {use_id} = api_keys.id"
    ids = f"SELECT {use_id} FROM json_each(:uses)"
    return f"iif(api_keys.id IN ({ids}), ({newer}), {column})"


def _last_use(used_at: str, used_from: str) -> str:
    return f"'last_used_at', {_in_seconds(used_at)}, 'last_used_from_addr', {used_from}"


_RECORD: Final = (
    f"'id', api_keys.id, 'name', api_keys.name, 'created_at', {_in_seconds('api_keys.created_at')}"
)
_CREATOR: Final = "'created_by', json_object('id', created_by, 'name', users.name, 'image', '')"
_STORED_USE: Final = _last_use("last_used_at", "last_used_from")
_LATEST_USE: Final = _last_use(_used("last_used_at", 1), _used("last_used_from", 2))

# In these indexes, each owner's rows are sorted by id, which saves 3 ms. A CROSS JOIN keeps
# this order.


def _personal(use: str) -> str:
    record = f"json_object({_RECORD}, 'created_by', json(:creator), {use})"
    return (
        f"SELECT CAST(json_group_array({record}) AS BLOB) "
        "FROM (SELECT * FROM api_keys INDEXED BY api_keys_by_user "
        "WHERE user_id = :owner AND ended_at IS NULL ORDER BY id DESC) AS api_keys"
    )


def _organization(use: str) -> str:
    return (
        "SELECT CAST(json_group_array(CASE WHEN project_id IS NULL "
        f"THEN json_object({_RECORD}, {_CREATOR}, {use}) "
        f"ELSE json_object({_RECORD}, {_CREATOR}, 'project_id', project_id, {use}) END) AS BLOB) "
        "FROM (SELECT * FROM api_keys INDEXED BY api_keys_by_organization "
        "WHERE org_id = :owner AND ended_at IS NULL ORDER BY id DESC) AS api_keys "
        "CROSS JOIN users ON users.id = created_by"
    )


def list_personal(tx: Transaction, call: Call) -> Response:
    """``GET /api_keys``: list the caller's own keys."""
    # A personal key is created by its owner.
    owner = tx.get(User, access.personal_user_id(call))
    creator = json_text({"id": owner.id, "name": owner.name, "image": ""})
    return _content(tx, _personal, owner=owner.id, creator=creator)


def create_personal(tx: Transaction, call: Call) -> Response:
    """``POST /api_keys``: create a personal key. Any user can do this."""
    user_id = access.personal_user_id(call)
    key, token = create_user_key(tx, user_id, call.body(bodies.KeyCreate).key_name)
    return respond(_created(key, token))


def revoke_personal(tx: Transaction, call: Call) -> Response:
    """``DELETE /api_keys/{key_id}``: revoke a personal key. Only the owner can do this."""
    return respond(_revoke(tx, call, "user_id", access.personal_user_id(call)))


def list_organization(tx: Transaction, call: Call) -> Response:
    """``GET /organizations/{org_id}/api_keys``: list all keys, including project-scoped ones."""
    organization = access.organization(tx, call)
    return _content(tx, _organization, owner=organization.id)


def create_organization(tx: Transaction, call: Call) -> Response:
    """``POST /organizations/{org_id}/api_keys``: create a key.

    An organization key requires the personal key of an administrator. A project-scoped key
    requires the personal key of any member.
    """
    organization = access.organization(tx, call)
    user_id = access.personal_user_id(call)
    body = call.body(bodies.OrganizationKeyCreate)
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


def _content(tx: Transaction, sql: Callable[[str], str], **values: str) -> Response:
    uses = tx.not_stored(ApiKey).items()
    not_stored = [[key, use["last_used_at"], use["last_used_from"]] for key, use in uses]
    query = sql(_LATEST_USE if not_stored else _STORED_USE)
    return Response(200, tx.content(query, {"uses": json_text(not_stored), **values}))


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


def _use(key: ApiKey) -> Json:
    return {
        "last_used_at": in_seconds_or_none(key.last_used_at),
        "last_used_from_addr": key.last_used_from,
    }
