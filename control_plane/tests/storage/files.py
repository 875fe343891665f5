"""Data files of earlier schemas, and what a data file contains."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from neonctl_local.storage import schema
from neonctl_local.storage.schema import Migration

HERE: Final = Path(__file__).parent
WORLDS: Final = tuple(sorted(path.name for path in HERE.glob("schema-*.sql")))
"""Dumps of data files with records of every kind. The code of their schema wrote them."""

FILLED: Final = {"operations": "branch_id"}
"""The columns that were NULL in some rows of schema 1, and that have a value in every row now."""

Tables = dict[str, tuple[list[str], list[tuple[object, ...]]]]
"""The columns and the rows of each table."""

NEXT: Final = Migration(
    schema.newest() + 1,
    """
    CREATE TABLE invented (id TEXT PRIMARY KEY, project_id TEXT REFERENCES projects (id)) STRICT;
    INSERT INTO invented SELECT 'of-' || id, id FROM projects;
    ALTER TABLE branches ADD COLUMN flavor TEXT NOT NULL DEFAULT 'plain';
    UPDATE branches SET flavor = 'sweet' WHERE is_default;
    """,
)
"""A migration to a schema that does not exist yet."""


def load(world: str, path: Path) -> Path:
    """Create a data file from a dump."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((HERE / world).read_text(encoding="utf-8"))
        connection.execute("PRAGMA journal_mode = WAL")
    path.chmod(0o600)
    return path


def tables(path: Path) -> Tables:
    """Return the content of a file, with the counters of its ids."""
    with closing(sqlite3.connect(path)) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        return {name: _content(connection, name) for (name,) in sorted(names)}


def _content(
    connection: sqlite3.Connection, table: str
) -> tuple[list[str], list[tuple[object, ...]]]:
    cursor = connection.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in cursor.description]
    return names, sorted(cursor.fetchall(), key=repr)


def lost(before: Tables, after: Tables) -> list[str]:
    """Return the tables whose rows differ in the columns that they had before.

    A migration may store a value in a column of ``FILLED`` that was NULL.
    """
    return [
        table
        for table, content in before.items()
        if _columns(after, table, content[0]) != _columns(before, table, content[0])
        or not _filled(before, table) <= _filled(after, table)
    ]


def _columns(
    content: Tables, table: str, names: list[str]
) -> tuple[list[str], list[tuple[object, ...]]] | None:
    if table not in content:
        return None
    columns, rows = content[table]
    kept = [name for name in names if name in columns and name != FILLED.get(table)]
    found = [tuple(row[columns.index(name)] for name in kept) for row in rows]
    return kept, sorted(found, key=repr)


def _filled(content: Tables, table: str) -> set[tuple[object, object]]:
    """Return the ids of the rows with a value in the column of ``FILLED``, and the values."""
    if table not in FILLED or table not in content:
        return set()
    columns, rows = content[table]
    places = columns.index("id"), columns.index(FILLED[table])
    pairs = {(row[places[0]], row[places[1]]) for row in rows}
    return {(id, value) for id, value in pairs if value is not None}
