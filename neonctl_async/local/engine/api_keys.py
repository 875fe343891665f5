"""API keys: who creates them, what they open, how they end (sections 2.1, 3.1, 4.1, 5)."""

import hashlib
import hmac
import logging
from typing import Final

from msgspec.structs import replace

from neonctl_async.local import ids
from neonctl_async.local.api.request import access, bodies
from neonctl_async.local.api.request.access import Level
from neonctl_async.local.api.request.calls import Answer, Call, Caller, Json, answer, present
from neonctl_async.local.clock import SECOND, in_seconds, in_seconds_or_none
from neonctl_async.local.errors import not_found, unauthorized
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import ApiKey, Project, User

RECOMMENDED_KEYS: Final = 10_000
"""Keys an account had better stay under (section 8); there is no strict limit."""

_LOCATOR: Final = 16
_ID_DIGITS: Final = 18
_logger = logging.getLogger(__name__)


def authenticate(tx: Transaction, authorization: str | None, address: str) -> Caller:
    """Whose key the ``Authorization`` header carries (section 5). Raises 401."""
    if authorization is None:
        raise unauthorized("the Authorization header is missing: send 'Bearer <API_KEY>'")
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise unauthorized("the Authorization header is malformed: send 'Bearer <API_KEY>'")
    key = _find(tx, token.strip())
    if key is None:
        raise unauthorized("the API key is not valid: it is unknown or was revoked")
    if (key.last_used_at or 0) // SECOND != tx.now // SECOND or key.last_used_from != address:
        tx.update(key, last_used_at=tx.now, last_used_from=address)
    return Caller(
        key_id=key.id,
        kind=key.kind,
        created_by=key.created_by,
        user_id=key.user_id,
        org_id=key.org_id,
        project_id=key.project_id,
    )


def is_known(tx: Transaction, authorization: str | None) -> bool:
    """Whether the ``Authorization`` header carries a key that was made here, ended or not."""
    _, _, token = (authorization or "").partition(" ")
    return _find(tx, token.strip(), with_ended=True) is not None


def refuse_if_ended(tx: Transaction, caller: Caller) -> None:
    """Raise 401 where the key ended after it was let in: a revocation takes effect at once."""
    if tx.first(ApiKey, "WHERE id = ? AND ended_at IS NULL", caller.key_id) is None:
        raise unauthorized("the API key is not valid: it was revoked")


def create_for_user(tx: Transaction, user_id: str, name: str) -> tuple[ApiKey, str]:
    """A new personal key and its token, as the console makes it: no key is asked for."""
    return _create(tx, "personal", name, created_by=user_id, user_id=user_id)


def list_personal(tx: Transaction, call: Call) -> Answer:
    """``GET /api_keys``: the caller's own."""
    keys = _live(tx, "user_id", access.personal(call))
    return answer([_listed(tx, key) for key in keys])


def create_personal(tx: Transaction, call: Call) -> Answer:
    """``POST /api_keys``: any user."""
    user_id = access.personal(call)
    key, token = create_for_user(tx, user_id, call.body(bodies.KeyCreate).key_name)
    return answer(_created(key, token))


def revoke_personal(tx: Transaction, call: Call) -> Answer:
    """``DELETE /api_keys/{key_id}``: the owner."""
    return answer(_revoke(tx, call, "user_id", access.personal(call)))


def list_organization(tx: Transaction, call: Call) -> Answer:
    """``GET /organizations/{org_id}/api_keys``: the organization's and its projects'."""
    organization = access.organization(tx, call)
    return answer([_listed(tx, key) for key in _live(tx, "org_id", organization.id)])


def create_organization(tx: Transaction, call: Call) -> Answer:
    """``POST /organizations/{org_id}/api_keys`` (section 4.1).

    An organization's key takes an administrator's personal key, a project's any member's.
    """
    organization = access.organization(tx, call)
    user_id = access.personal(call)
    body = call.body(bodies.KeyCreate)
    if body.project_id is None:
        access.organization(tx, call, Level.ADMIN)
        key, token = _create(
            tx, "organization", body.key_name, created_by=user_id, org_id=organization.id
        )
        return answer(_created(key, token))
    where = "WHERE id = ? AND org_id = ? AND deleted_at IS NULL"
    project = tx.first(Project, where, body.project_id, organization.id)
    if project is None:
        raise not_found("project", body.project_id)
    key, token = _create(
        tx,
        "project",
        body.key_name,
        created_by=user_id,
        org_id=organization.id,
        project_id=project.id,
    )
    return answer(_created(key, token))


def revoke_organization(tx: Transaction, call: Call) -> Answer:
    """``DELETE /organizations/{org_id}/api_keys/{key_id}``: administrators."""
    organization = access.organization(tx, call, Level.ADMIN)
    return answer(_revoke(tx, call, "org_id", organization.id))


def end_for_project(tx: Transaction, project_id: str) -> None:
    """End the keys of a project that leaves its organization, for good (3.1)."""
    tx.execute(
        "UPDATE api_keys SET ended_at = ? WHERE project_id = ? AND ended_at IS NULL",
        tx.now,
        project_id,
    )


def _create(
    tx: Transaction,
    kind: ids.KeyKind,
    name: str,
    *,
    created_by: str,
    user_id: str | None = None,
    org_id: str | None = None,
    project_id: str | None = None,
) -> tuple[ApiKey, str]:
    token = ids.token(kind)
    digest = hashlib.sha256(token.encode()).digest()
    key = ApiKey(
        id=0,
        kind=kind,
        name=name,
        locator=digest.hex()[:_LOCATOR],
        digest=digest,
        created_at=tx.now,
        created_by=created_by,
        user_id=user_id,
        org_id=org_id,
        project_id=project_id,
    )
    key = replace(key, id=tx.insert(key))
    _warn_of_many(tx, key)
    return key, token


def _find(tx: Transaction, token: str, *, with_ended: bool = False) -> ApiKey | None:
    # Bytes that are no text come as surrogates; they are no key.
    digest = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
    where = "WHERE locator = ?" if with_ended else "WHERE locator = ? AND ended_at IS NULL"
    for key in tx.select(ApiKey, where, digest.hex()[:_LOCATOR]):
        if hmac.compare_digest(key.digest, digest):
            return key
    return None


def _live(tx: Transaction, owner: str, owner_id: str) -> list[ApiKey]:
    return tx.select(ApiKey, f"WHERE {owner} = ? AND ended_at IS NULL ORDER BY id", owner_id)


def _revoke(tx: Transaction, call: Call, owner: str, owner_id: str) -> Json:
    text = call.path["key_id"]
    where = f"WHERE id = ? AND {owner} = ? AND ended_at IS NULL"
    number = int(text) if text.isdecimal() and len(text) <= _ID_DIGITS else 0
    key = tx.first(ApiKey, where, number, owner_id)
    if key is None:
        raise not_found("API key", text)
    tx.update(key, ended_at=tx.now)
    return present(
        {
            "id": key.id,
            "name": key.name,
            "revoked": True,
            "created_at": in_seconds(key.created_at),
            "created_by": key.created_by,
            "project_id": key.project_id,
        }
    ) | _use(key)


def _created(key: ApiKey, token: str) -> Json:
    return present(
        {
            "id": key.id,
            "key": token,
            "name": key.name,
            "created_at": in_seconds(key.created_at),
            "created_by": key.created_by,
            "project_id": key.project_id,
        }
    )


def _listed(tx: Transaction, key: ApiKey) -> Json:
    creator = tx.first(User, "WHERE id = ?", key.created_by)
    return present(
        {
            "id": key.id,
            "name": key.name,
            "created_at": in_seconds(key.created_at),
            "created_by": {
                "id": key.created_by,
                "name": creator.name if creator else "",
                "image": "",
            },
            "project_id": key.project_id,
        }
    ) | _use(key)


def _use(key: ApiKey) -> Json:
    return {
        "last_used_at": in_seconds_or_none(key.last_used_at),
        "last_used_from_addr": key.last_used_from,
    }


def _warn_of_many(tx: Transaction, key: ApiKey) -> None:
    owner, owner_id = ("user_id", key.user_id) if key.user_id else ("org_id", key.org_id)
    sql = f"SELECT count(*) FROM api_keys WHERE {owner} = ? AND ended_at IS NULL"
    count = tx.number(sql, owner_id) or 0
    if count > RECOMMENDED_KEYS:
        _logger.warning(
            "account %s holds %d API keys; to stay under %d is recommended",
            owner_id,
            count,
            RECOMMENDED_KEYS,
        )
