"""Lists of API keys, one page at a time, because the API's complete lists take too long."""

import re
from typing import ClassVar, Literal, NamedTuple

import msgspec

from neonctl_local.clock import Instant, in_seconds, in_seconds_or_none
from neonctl_local.console.fields import natural_number
from neonctl_local.console.lists import ROWS, ListPage, ListQuery
from neonctl_local.errors import not_found
from neonctl_local.storage.rows import Row, SqlValue
from neonctl_local.storage.tables import ApiKey, User
from neonctl_local.storage.transactions import Transaction

_SEARCH = (
    r"AND (name LIKE ? ESCAPE '\' OR CAST(id AS TEXT) = ? OR project_id = ? "
    r"OR created_by IN (SELECT id FROM users WHERE name LIKE ? ESCAPE '\'))"
)


class Owner(NamedTuple):
    """The owner of keys: a user or an organization. The caller checks who may see the keys."""

    column: Literal["user_id", "org_id"]
    id: str


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """An API key that is not revoked, as pages show it."""

    id: int
    name: str
    created_at: str
    creator: str
    last_used_at: str | None
    last_used_from: str
    project_id: str | None


class KeyRow(Row, frozen=True):
    """The public columns of a key."""

    table: ClassVar[str] = "api_keys"

    id: int
    name: str
    created_at: Instant
    created_by: str
    project_id: str | None
    last_used_at: Instant | None
    last_used_from: str


def list_keys(tx: Transaction, owner: Owner, wanted: ListQuery) -> ListPage[Key]:
    """Return a page of keys, newest first. A search covers names, creators, ids and project ids."""
    mine = f"WHERE {owner.column} = ? AND ended_at IS NULL"
    values: tuple[SqlValue, ...] = (owner.id,)
    found = total = tx.number(f"SELECT count(*) FROM api_keys {mine}", *values) or 0
    if wanted.search:
        like = "%" + re.sub(r"([%_\\])", r"\\\1", wanted.search) + "%"
        mine = f"{mine} {_SEARCH}"
        values = (*values, like, wanted.search, wanted.search, like)
        found = tx.number(f"SELECT count(*) FROM api_keys {mine}", *values) or 0
    wanted = wanted.within(found)
    page = f"{mine} ORDER BY id DESC LIMIT ? OFFSET ?"
    rows = tx.select(KeyRow, page, *values, ROWS, wanted.first)
    return wanted.page(_shown(tx, rows), found=found, total=total)


def find_key(tx: Transaction, owner: Owner, key_id: str) -> Key:
    """Return a key that is not revoked. Raise 404 if the owner has no such key."""
    where = f"WHERE id = ? AND {owner.column} = ? AND ended_at IS NULL"
    row = tx.first(KeyRow, where, natural_number(key_id) or 0, owner.id)
    if row is None:
        raise not_found("API key", key_id)
    return _shown(tx, [row])[0]


def count_keys_created_by(tx: Transaction, owner: Owner, user_id: str) -> int:
    """Return how many of the owner's keys a user created."""
    where = f"WHERE {owner.column} = ? AND ended_at IS NULL AND created_by = ?"
    return tx.number(f"SELECT count(*) FROM api_keys {where}", owner.id, user_id) or 0


def _shown(tx: Transaction, rows: list[KeyRow]) -> list[Key]:
    uses = tx.not_stored(ApiKey)
    names: dict[str, str] = {}
    for row in rows:
        if row.created_by not in names:
            names[row.created_by] = tx.get(User, row.created_by).name
    return [
        _key(msgspec.structs.replace(row, **uses.get(row.id, {})), names[row.created_by])
        for row in rows
    ]


def _key(row: KeyRow, creator: str) -> Key:
    return Key(
        id=row.id,
        name=row.name,
        created_at=in_seconds(row.created_at),
        creator=creator,
        last_used_at=in_seconds_or_none(row.last_used_at),
        last_used_from=row.last_used_from,
        project_id=row.project_id,
    )
