"""The versions of the schema, and the runner of migrations."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from neonctl_local.storage import schema


@pytest.fixture
def empty() -> Iterator[sqlite3.Connection]:
    """An empty database."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        yield connection


def structure(connection: sqlite3.Connection) -> dict[str, object]:
    """Return tables, indexes and views, however their statements are written."""
    found: dict[str, object] = {}
    rows = connection.execute("SELECT type, name, sql FROM sqlite_schema").fetchall()
    for kind, name, sql in rows:
        if kind == "table":
            found[f"columns of {name}"] = {
                column[1]: column[2:] for column in _pragma(connection, "table_xinfo", name)
            }
            references = _pragma(connection, "foreign_key_list", name)
            found[f"references of {name}"] = {row[2:] for row in references}
            (of_table,) = _pragma(connection, "table_list", name)
            found[f"is {name} strict"] = of_table[5]
        elif sql is not None:
            found[f"{kind} {name}"] = re.sub(r"\s+", " ", sql)
        else:
            columns = _pragma(connection, "index_info", name)
            found[f"{kind} {name}"] = [column[2] for column in columns]
    return found


def _pragma(connection: sqlite3.Connection, pragma: str, name: str) -> list[tuple[object, ...]]:
    return connection.execute(f"SELECT * FROM pragma_{pragma}(?)", (name,)).fetchall()


def test_migrations_are_numbered_without_gaps() -> None:
    versions = [migration.version for migration in schema.MIGRATIONS]
    assert versions == list(range(1, schema.newest() + 1))


def test_version_of_a_database(empty: sqlite3.Connection) -> None:
    assert schema.version_of(empty) == 0
    schema.migrate(empty, schema.newest())
    assert schema.version_of(empty) == schema.newest() == 1
    empty.execute("PRAGMA application_id = 0")
    with pytest.raises(ValueError, match="another program"):
        schema.version_of(empty)


def test_failed_migration_changes_nothing(
    empty: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema.migrate(empty, schema.newest())
    empty.execute("INSERT INTO served VALUES (1, 5)")
    before = structure(empty)
    broken = schema.Migration(schema.newest() + 1, "DROP TABLE served; CREATE TABLE x (y z")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(empty, broken.version)
    assert structure(empty) == before
    assert empty.execute("SELECT until FROM served").fetchall() == [(5,)]
    assert schema.version_of(empty) == broken.version - 1


def test_migration_that_leaves_a_row_without_its_parent_is_undone(
    empty: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema.migrate(empty, schema.newest())
    empty.execute("INSERT INTO organizations VALUES ('org-1', 'a', 1, 1)")
    empty.execute("INSERT INTO vpc_endpoints VALUES (1, 'org-1', 'r', 'vpce-1', '', NULL)")
    losing = schema.Migration(schema.newest() + 1, "DELETE FROM organizations;")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, losing))
    with pytest.raises(sqlite3.IntegrityError, match="row 1 of the table 'vpc_endpoints' refers"):
        schema.migrate(empty, losing.version)
    assert empty.execute("SELECT id FROM organizations").fetchall() == [("org-1",)]
    assert empty.execute("PRAGMA foreign_keys").fetchone() == (1,)
