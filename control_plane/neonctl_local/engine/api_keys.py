"""API keys: creation, authentication and revocation."""

import hashlib
import hmac
import logging
from typing import Final

import msgspec

from neonctl_local import ids
from neonctl_local.clock import SECOND
from neonctl_local.errors import unauthorized
from neonctl_local.ids import KeyKind
from neonctl_local.storage.tables import ApiKey
from neonctl_local.storage.transactions import Transaction

RECOMMENDED_KEYS: Final = 10_000
"""The largest recommended number of keys for an account. Creating more logs a warning."""

_LOCATOR: Final = 16
_logger = logging.getLogger(__name__)


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The API key of a request, with its owner.

    The owner of a personal key is ``user_id``. The owner of every other key is ``org_id``. A person
    who is signed in to the console has the rights of a personal key, but ``key_id`` is None.
    """

    key_id: int | None
    kind: KeyKind
    created_by: str
    user_id: str | None
    org_id: str | None
    project_id: str | None

    @property
    def account(self) -> str:
        """The id of the user or organization that the rate limits apply to."""
        return self.user_id or self.org_id or ""

    @property
    def watches(self) -> bool:
        """True for the console. Unlike requests with a key, its reads do not wake a project."""
        return self.key_id is None


def authenticate(tx: Transaction, authorization: str | None, address: str) -> Principal:
    """Return the principal of the ``Authorization`` header. Raise 401 unless its key is valid.

    ``address`` is the client's address, which is stored with the time of the key's last use.
    """
    if authorization is None:
        raise unauthorized("the Authorization header is missing: send 'Bearer <API_KEY>'")
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise unauthorized("the Authorization header is malformed: send 'Bearer <API_KEY>'")
    key = _find(tx, token.strip())
    if key is None:
        raise unauthorized("the API key is not valid: it is unknown or was revoked")
    if (key.last_used_at or 0) // SECOND != tx.now // SECOND or key.last_used_from != address:
        tx.update_later(key, last_used_at=tx.now, last_used_from=address)
    return Principal(
        key_id=key.id,
        kind=key.kind,
        created_by=key.created_by,
        user_id=key.user_id,
        org_id=key.org_id,
        project_id=key.project_id,
    )


def is_known(tx: Transaction, authorization: str | None) -> bool:
    """Return whether the ``Authorization`` header contains a known key, revoked or not."""
    _, _, token = (authorization or "").partition(" ")
    return _find(tx, token.strip(), with_revoked=True) is not None


def check_not_revoked(tx: Transaction, principal: Principal) -> None:
    """Raise 401 if the key was revoked after it was authenticated."""
    if principal.key_id is None:
        return
    if tx.first(ApiKey, "WHERE id = ? AND ended_at IS NULL", principal.key_id) is None:
        raise unauthorized("the API key is not valid: it was revoked")


def create_user_key(tx: Transaction, user_id: str, name: str) -> tuple[ApiKey, str]:
    """Create a personal key, as Neon's console does. Return its record and its token."""
    return create_key(tx, "personal", name, created_by=user_id, user_id=user_id)


def revoke_project_keys(tx: Transaction, project_id: str) -> None:
    """Revoke the keys of a project that is being deleted or moved out of its organization."""
    sql = "UPDATE api_keys SET ended_at = ? WHERE project_id = ? AND ended_at IS NULL"
    tx.execute(sql, tx.now, project_id)


def create_key(
    tx: Transaction,
    kind: KeyKind,
    name: str,
    *,
    created_by: str,
    user_id: str | None = None,
    org_id: str | None = None,
    project_id: str | None = None,
) -> tuple[ApiKey, str]:
    """Store a new key. Return its record and its token."""
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
    key = tx.insert(key)
    _warn_if_many(tx, key)
    return key, token


def _find(tx: Transaction, token: str, *, with_revoked: bool = False) -> ApiKey | None:
    # aiohttp decodes invalid UTF-8 in a header to surrogates, which a plain encode() rejects.
    digest = hashlib.sha256(token.encode(errors="surrogateescape")).digest()
    where = "WHERE locator = ?" if with_revoked else "WHERE locator = ? AND ended_at IS NULL"
    for key in tx.select(ApiKey, where, digest.hex()[:_LOCATOR]):
        if hmac.compare_digest(key.digest, digest):
            return key
    return None


def _warn_if_many(tx: Transaction, key: ApiKey) -> None:
    owner, owner_id = ("user_id", key.user_id) if key.user_id else ("org_id", key.org_id)
    sql = f"SELECT count(*) FROM api_keys WHERE {owner} = ? AND ended_at IS NULL"
    count = tx.number(sql, owner_id) or 0
    if count > RECOMMENDED_KEYS:
        _logger.warning(
            "account %s has %d API keys; the recommended maximum is %d",
            owner_id,
            count,
            RECOMMENDED_KEYS,
        )
