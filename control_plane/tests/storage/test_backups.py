"""Backups of data files."""

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from neonctl_local.storage import data_files
from neonctl_local.storage.data_files import back_up, connect


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The path of a data file."""
    return tmp_path / "data.db"


@pytest.fixture
def connection(data: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the data file."""
    with closing(connect(data)) as connection:
        connection.execute("INSERT INTO served VALUES (1, 5)")
        yield connection


def test_same_content_is_kept_once(connection: sqlite3.Connection, data: Path) -> None:
    first = back_up(connection, data, 1)
    assert back_up(connection, data, 1) == first
    assert first.name == "data.db.schema-1.backup"
    assert list(data.parent.glob("*backup*")) == [first]


def test_earlier_backup_is_not_replaced(connection: sqlite3.Connection, data: Path) -> None:
    first = back_up(connection, data, 1)
    content = first.read_bytes()
    connection.execute("UPDATE served SET until = 6")
    second = back_up(connection, data, 1)
    assert second.name == "data.db.schema-1-2.backup"
    assert first.read_bytes() == content
    with closing(sqlite3.connect(second)) as copy:
        assert copy.execute("SELECT until FROM served").fetchall() == [(6,)]


def test_incomplete_backup_of_a_killed_process_is_replaced(
    connection: sqlite3.Connection, data: Path
) -> None:
    data.with_name("data.db.backup.tmp").write_bytes(b"half")
    backup = back_up(connection, data, 1)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert list(data.parent.glob("*backup*")) == [backup]


def test_failed_backup_leaves_no_file(
    connection: sqlite3.Connection, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> Path:
        raise OSError("no space left on device")

    monkeypatch.setattr(data_files, "_backup_name", fail)
    with pytest.raises(OSError, match="no space left on device"):
        back_up(connection, data, 1)
    assert list(data.parent.glob("*backup*")) == []
