"""What a data file contains, and a schema to come."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from neonctl_local.storage import schema
from neonctl_local.storage.schema import Migration

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
    """Return the tables whose rows differ in the columns that they had before."""
    return [
        table
        for table, (names, rows) in before.items()
        if _columns(after, table, names) != sorted(rows, key=repr)
    ]


def _columns(content: Tables, table: str, names: list[str]) -> list[tuple[object, ...]] | None:
    columns, rows = content.get(table, ([], []))
    if not set(names) <= set(columns):
        return None
    return sorted((tuple(row[columns.index(name)] for name in names) for row in rows), key=repr)
