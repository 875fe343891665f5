"""The desired contents of a cluster, and the SQL and settings that make a cluster match them."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec

from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.settings import server_refusal

GROUP: Final = "neon_superuser"
"""The role that all roles managed through the API are members of."""

RULES: Final = 1
"""The version of :func:`rule_statements`. A start runs them if the cluster's version differs."""

SERVER_ACCESS: Final = (
    "pg_execute_server_program",
    "pg_read_server_files",
    "pg_write_server_files",
)
"""The Postgres roles whose members can act with the rights of the server's account."""

DATABASE: Final = "database"
ROLE: Final = "role"

_ATTRIBUTES: Final = "INHERIT CREATEROLE CREATEDB BYPASSRLS"
_ITERATIONS: Final = 4096
_SCRAM: Final = re.compile(rf"SCRAM-SHA-256\${_ITERATIONS}:")
_VERIFIER: Final = re.compile(r"SCRAM-SHA-256\$\d+:|md5[0-9a-f]{32}$")


class RoleSpec(msgspec.Struct, frozen=True):
    """A role that is managed through the API. Without a password, the role cannot log in.

    As in SQL, ``password`` may be a verifier: the SCRAM or MD5 hash of a password. With an empty
    password, every login is refused.
    """

    name: str
    password: str | None

    def __repr__(self) -> str:
        shown = "None" if self.password is None else "'***'"
        return f"RoleSpec(name={self.name!r}, password={shown})"


class DatabaseSpec(msgspec.Struct, frozen=True):
    """A database that is managed through the API, and the role that owns it."""

    name: str
    owner: str


class Desired(msgspec.Struct, frozen=True):
    """The roles, databases and settings of a cluster. ``renamed`` maps old names to new ones."""

    roles: list[RoleSpec] = []
    databases: list[DatabaseSpec] = []
    settings: dict[str, str] = {}
    renamed: dict[str, str] = {}


class Content(msgspec.Struct, frozen=True):
    """The roles of a cluster with their verifiers, and its databases with their owners.

    The verifier is None for a role that cannot log in, and empty for a role without a password.
    """

    roles: dict[str, str | None]
    databases: dict[str, str]


class SqlChanges(msgspec.Struct, frozen=True):
    """The roles and databases of a cluster that clients created, changed or dropped in SQL.

    ``content`` is everything that the cluster contains now. ``changed`` is its new or changed part.
    """

    content: Content
    changed: Content
    dropped_roles: frozenset[str]
    dropped_databases: frozenset[str]

    def __bool__(self) -> bool:
        """Return whether there are any changes."""
        changed = self.changed.roles or self.changed.databases
        return bool(changed or self.dropped_roles or self.dropped_databases)


class Applied(msgspec.Struct, frozen=True):
    """The configuration last applied to a cluster. Copies of the cluster contain it too.

    ``roles`` contains the verifier of each role's password, and ``databases`` the owner of each
    database. Roles and databases that clients created in SQL are added as soon as they are found;
    their names are then also in ``found_roles`` and ``found_databases``. ``left`` contains the
    kinds and names of the roles and databases that could not be dropped.
    """

    roles: dict[str, str | None] = {}
    databases: dict[str, str] = {}
    settings: dict[str, str] = {}
    rules: int = 0
    found_roles: frozenset[str] = frozenset()
    found_databases: frozenset[str] = frozenset()
    left: frozenset[tuple[str, str]] = frozenset()

    def matches(self, desired: Desired) -> bool:
        """Return whether ``desired`` requires no changes."""
        return (
            self.rules == RULES
            and self.roles.keys() == {role.name for role in desired.roles}
            and all(verifies(self.roles[role.name], role.password) for role in desired.roles)
            and self.databases == {each.name: each.owner for each in desired.databases}
            and self.settings == desired.settings
        )

    def after(self, desired: Desired) -> "Applied":
        """Return the record after ``desired`` is applied. Verifiers of unchanged passwords stay."""
        roles = {
            role.name: known
            if (known := self.roles.get(role.name)) and verifies(known, role.password)
            else make_verifier(role.password)
            for role in desired.roles
        }
        databases = {database.name: database.owner for database in desired.databases}
        found = (self.found_roles, self.found_databases)
        return Applied(roles, databases, desired.settings, RULES, *found)

    def dropped(self, desired: Desired, content: Content) -> list[tuple[str, str]]:
        """Return the kinds and names of what ``desired`` no longer contains: databases, then roles.

        What clients created in SQL is left out, unless this record contains it.
        """
        databases = self.databases.keys() & content.databases.keys() - desired.renamed.keys()
        roles = self.roles.keys() & content.roles.keys()
        return [
            *((DATABASE, name) for name in sorted(databases - {d.name for d in desired.databases})),
            *((ROLE, name) for name in sorted(roles - {role.name for role in desired.roles})),
        ]

    def keeping(self, before: "Applied", left: Collection[tuple[str, str]]) -> "Applied":
        """Return the record with the roles and databases in ``left``, as they were in ``before``.

        ``left`` contains the kinds and names of what Postgres could not drop.
        """
        roles = {name: before.roles[name] for kind, name in left if kind == ROLE}
        databases = {name: before.databases[name] for kind, name in left if kind == DATABASE}
        return msgspec.structs.replace(
            self,
            roles=self.roles | roles,
            databases=self.databases | databases,
            left=frozenset(left),
        )

    def changes_to(self, content: Content) -> SqlChanges:
        """Return what clients changed in SQL, given that the cluster now contains ``content``."""
        roles, databases = content.roles.items(), content.databases.items()
        return SqlChanges(
            content,
            Content(dict(roles - self.roles.items()), dict(databases - self.databases.items())),
            frozenset(self.roles.keys() - content.roles),
            frozenset(self.databases.keys() - content.databases),
        )

    def with_found(self, content: Content) -> "Applied":
        """Return the record after ``content`` was found in the cluster."""
        found_roles = self.found_roles | (content.roles.keys() - self.roles)
        found_databases = self.found_databases | (content.databases.keys() - self.databases)
        return Applied(
            content.roles,
            content.databases,
            self.settings,
            self.rules,
            found_roles & content.roles.keys(),
            found_databases & content.databases.keys(),
            self.left,
        )

    def without_found(self, desired: Desired) -> "Applied":
        """Return the record without found roles and databases, except for those in ``desired``.

        Applying a configuration does not drop what is not in the record.
        """
        roles = self.found_roles - {role.name for role in desired.roles}
        databases = self.found_databases - {database.name for database in desired.databases}
        return msgspec.structs.replace(
            self,
            roles={name: known for name, known in self.roles.items() if name not in roles},
            databases={
                name: owner for name, owner in self.databases.items() if name not in databases
            },
            found_roles=self.found_roles - roles,
            found_databases=self.found_databases - databases,
        )


def quote_name(name: str) -> str:
    """Quote an identifier for SQL."""
    if not name or "\0" in name or len(name.encode()) > 63:
        raise ClusterError(f"Postgres cannot use the name {name!r}: expected 1 to 63 bytes")
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Quote a string for SQL."""
    if "\0" in text:
        raise ClusterError("Postgres cannot store a text with a zero byte")
    escape = "E" if "\\" in text else ""
    return f"{escape}'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def is_verifier(password: str) -> bool:
    """Return whether a password needs no hashing, because it is a verifier or empty."""
    return not password or _VERIFIER.match(password) is not None


def make_verifier(password: str | None) -> str | None:
    """Return the SCRAM verifier of a password, as Postgres stores it."""
    if password is None or is_verifier(password):
        return password
    return scram_verifier(password, secrets.token_bytes(16))


def scram_verifier(password: str, salt: bytes, iterations: int = _ITERATIONS) -> str:
    """Return the SCRAM verifier of a password that is not a verifier itself."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, iterations)
    client = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    encoded = [base64.b64encode(part).decode() for part in (salt, client, server)]
    return f"SCRAM-SHA-256${iterations}:{encoded[0]}${encoded[1]}:{encoded[2]}"


@lru_cache(maxsize=1024)
def verifies(verifier: str | None, password: str | None) -> bool:
    """Return whether ``verifier`` belongs to ``password``. Hashing takes milliseconds."""
    if password is None or is_verifier(password) or not _SCRAM.match(verifier or ""):
        return verifier == password
    assert verifier is not None
    salt = base64.b64decode(verifier.split("$")[1].split(":")[1])
    return hmac.compare_digest(verifier, scram_verifier(password, salt))


def login(password: str | None, verifier: str | None) -> str:
    """Return the options of CREATE ROLE or ALTER ROLE for a password.

    Passwords that are not ASCII are passed in clear text, because Postgres normalizes them before
    it hashes them.
    """
    if password is None or verifier is None:
        return "NOLOGIN PASSWORD NULL"
    return f"LOGIN PASSWORD {quote_text(verifier if password.isascii() else password)}"


def group_statements(major: int) -> Iterator[str]:
    """Yield the statements that create the role ``neon_superuser``."""
    group = quote_name(GROUP)
    yield f"CREATE ROLE {group} NOLOGIN CREATEDB CREATEROLE BYPASSRLS REPLICATION"
    yield f"GRANT pg_read_all_data, pg_write_all_data TO {group}"
    with_option = ["pg_monitor", "pg_signal_backend"]
    if major >= 16:
        with_option.append("pg_create_subscription")
    yield f"GRANT {', '.join(with_option)} TO {group} WITH ADMIN OPTION"


def rule_statements(major: int) -> Iterator[str]:
    """Yield the statements that keep a branch's roles from acting as the server's account.

    Before Postgres 16, a role with CREATEROLE may grant itself every role that is not a superuser.
    The roles that act as the account cannot be dropped, so their rows are deleted. Postgres does
    not need the rows, because it knows these roles by their OIDs, which no other role gets.
    """
    if major < 16:
        names = ", ".join(map(quote_text, SERVER_ACCESS))
        found = f"SELECT oid FROM pg_authid WHERE rolname IN ({names})"
        yield f"DELETE FROM pg_auth_members WHERE roleid IN ({found})"
        yield f"DELETE FROM pg_authid WHERE oid IN ({found})"


def _may_replicate(settings: Mapping[str, str], major: int) -> bool:
    """Return whether roles have the attribute REPLICATION.

    Before Postgres 16, a role that has it cannot change its own password. In those versions, roles
    have the attribute only in projects with logical replication.
    """
    return major >= 16 or settings.get("wal_level") == "logical"


def role_statements(
    desired: Desired, applied: Applied, after: Applied, existing: frozenset[str], major: int
) -> Iterator[str]:
    """Yield the statements that create roles and change their passwords and attributes."""
    replicate = _may_replicate(desired.settings, major)
    changes = replicate != _may_replicate(applied.settings, major)
    replication = "REPLICATION" if replicate else "NOREPLICATION"
    attributes = f"{_ATTRIBUTES} {replication}"
    for role in desired.roles:
        name, options = quote_name(role.name), login(role.password, after.roles[role.name])
        if role.name not in existing and role.name in applied.roles:
            continue  # a client dropped it in SQL
        if role.name not in existing:
            yield f"CREATE ROLE {name} {attributes} {options} IN ROLE {quote_name(GROUP)}"
            continue
        if role.name not in applied.roles:
            yield f"ALTER ROLE {name} {attributes} {options}"
            yield f"GRANT {quote_name(GROUP)} TO {name}"
            continue
        if changes:
            yield f"ALTER ROLE {name} {replication}"
        if applied.roles[role.name] != after.roles[role.name]:
            yield f"ALTER ROLE {name} {options}"


def database_statements(
    desired: Desired, applied: Applied, existing: Mapping[str, str]
) -> Iterator[str]:
    """Yield the statements that create databases and change their owners.

    ``existing`` maps each database of the cluster to its owner.
    """
    for database in desired.databases:
        if applied.databases.get(database.name) == database.owner:
            continue  # a client may have dropped it in SQL, or changed its owner
        name, owner = quote_name(database.name), quote_name(database.owner)
        if database.name not in existing:
            yield f"CREATE DATABASE {name} OWNER {owner} TEMPLATE template0"
            yield f"GRANT ALL ON DATABASE {name} TO {quote_name(GROUP)}"
        elif existing[database.name] != database.owner:
            yield f"ALTER DATABASE {name} OWNER TO {owner}"


def render_settings(settings: Mapping[str, str]) -> str:
    """Return the text of a Postgres configuration file.

    Raise ClusterError for a setting that no configuration file may contain.
    """
    lines = ["# Written by neonctl-async. Changes are overwritten.\n"]
    for name, value in settings.items():
        if reason := server_refusal(name, value):
            raise ClusterError(reason)
        escaped = value.replace("\\", "\\\\").replace("'", "''")
        lines.append(f"{name} = '{escaped}'\n")
    return "".join(lines)
