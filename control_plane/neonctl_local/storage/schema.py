"""The versions of the schema, and the migrations between them.

``migrations/0001_first.sql`` creates schema 1, and each later file changes the previous schema. A
data file stores the number of its schema.
"""

import sqlite3
from importlib import resources
from typing import Final

import msgspec

APPLICATION_ID: Final = 0x4E4C4F43
"""The number in the header of a file that marks it as a data file of this package ("NLOC")."""
_UNRELEASED_ID: Final = 0x4E4C4350
"""The number that marks files from before 0.1.0, whose schemas were numbered separately."""


class Migration(msgspec.Struct, frozen=True):
    """The statements that change schema ``version - 1`` to schema ``version``."""

    version: int
    sql: str


def _migrations() -> tuple[Migration, ...]:
    folder = resources.files("neonctl_local.storage").joinpath("migrations")
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return tuple(
        Migration(int(name.partition("_")[0]), folder.joinpath(name).read_text(encoding="utf-8"))
        for name in files
    )


MIGRATIONS: Final = _migrations()
"""All migrations in order. The first one creates schema 1."""


def newest() -> int:
    """Return the number of the newest schema."""
    return MIGRATIONS[-1].version


def version_of(connection: sqlite3.Connection) -> int:
    """Return the schema number of a database, or 0 if the database is empty.

    Raise ValueError if this version of the local control plane cannot use the database.
    """
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application_id == _UNRELEASED_ID:
        raise ValueError(
            f"it has schema {version} of an unreleased version of neonctl-async, and this version"
            f" expects its own schema {newest()}: use a new file, because nothing migrates this one"
        )
    if application_id != APPLICATION_ID:
        if connection.execute("SELECT 1 FROM sqlite_schema").fetchone() is None:
            return 0
        raise ValueError(
            "another program, or an unreleased version of neonctl-async, created it: use a new file"
        )
    if version > newest():
        raise ValueError(
            f"it has schema {version}, and this version of neonctl-async has schema {newest()}:"
            " install the newer version, or restore a backup"
        )
    return int(version)


def migrate(connection: sqlite3.Connection, target: int) -> None:
    """Run the migrations up to a version as one transaction: all of them, or none.

    Raises sqlite3.Error if a migration fails.
    """
    version = version_of(connection)
    needed = "\n".join(step.sql for step in MIGRATIONS if version < step.version <= target)
    # SQLite checks references while a table is replaced, unless this is off.
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        connection.executescript(
            f"BEGIN IMMEDIATE; {needed}\n"
            f"; PRAGMA user_version = {target}; PRAGMA application_id = {APPLICATION_ID};"
        )
        check_references(connection)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
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
