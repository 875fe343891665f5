"""The versions of the schema, and the migrations between them.

``migrations/0001_first.sql`` creates schema 1, and each later file changes the schema before it.
``schema.sql`` is the newest schema as a whole. A file stores the number of its schema.
"""

import sqlite3
from importlib import resources
from typing import Final

import msgspec

_FOLDER: Final = resources.files("neonctl_local.storage")

APPLICATION_ID: Final = 0x4E4C4350
"""Marks the files of the local control plane ("NLCP"), in their header."""
FIRST_CHECKSUM: Final = 1057332376
"""The checksum that files of schema 1 store instead of a number. They have no application id."""


class Migration(msgspec.Struct, frozen=True):
    """The statements that change schema ``version - 1`` to schema ``version``."""

    version: int
    sql: str


def _migrations() -> tuple[Migration, ...]:
    folder = _FOLDER.joinpath("migrations")
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple(
        Migration(int(name.partition("_")[0]), folder.joinpath(name).read_text(encoding="utf-8"))
        for name in files
    )


MIGRATIONS: Final = _migrations()
"""All migrations in their order. The first one creates schema 1."""
NEWEST_SCHEMA: Final = _FOLDER.joinpath("schema.sql").read_text(encoding="utf-8")
"""The statements that create the newest schema."""


def newest() -> int:
    """Return the number of the newest schema."""
    return MIGRATIONS[-1].version


def version_of(connection: sqlite3.Connection) -> int | None:
    """Return the number of the schema of a database, 0 if it is empty.

    Return None if the local control plane did not create it.
    """
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application_id == APPLICATION_ID:
        return int(version)
    if application_id == 0 and version == FIRST_CHECKSUM:
        return 1
    is_empty = connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None
    return 0 if is_empty else None


def create(connection: sqlite3.Connection) -> None:
    """Create the newest schema in an empty database."""
    _change(connection, NEWEST_SCHEMA, newest())


def migrate(connection: sqlite3.Connection, target: int) -> None:
    """Run the migrations up to a version as one transaction: all of them, or none.

    Raises sqlite3.Error.
    """
    version = version_of(connection)
    assert version is not None, "the local control plane created it"
    needed = (step.sql for step in MIGRATIONS if version < step.version <= target)
    # SQLite checks references while a table is replaced, unless this is off.
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        _change(connection, "\n".join(needed), target)
    finally:
        connection.execute("PRAGMA foreign_keys = ON")


def check_references(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.IntegrityError if a row refers to a missing row."""
    missing = connection.execute("PRAGMA foreign_key_check").fetchone()
    if missing is not None:
        table, row, parent, _ = missing
        raise sqlite3.IntegrityError(
            f"row {row} of the table {table!r} refers to a row that is missing in {parent!r}"
        )


def _change(connection: sqlite3.Connection, sql: str, version: int) -> None:
    """Run statements and store the number of the schema, as one transaction."""
    try:
        connection.executescript(
            f"BEGIN IMMEDIATE; {sql}\n"
            f"; PRAGMA user_version = {version}; PRAGMA application_id = {APPLICATION_ID};"
        )
        check_references(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
