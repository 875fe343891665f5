"""Opening data files: permissions, earlier and later schemas, and backups."""

import io
import os
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from control_plane.tests.client import serve
from control_plane.tests.storage.files import NEXT, lost, tables
from control_plane.tests.storage.worlds import WORLDS, key_of, load
from neonctl_local import ManualClock
from neonctl_local.storage import data_files, schema
from neonctl_local.storage.data_files import checkpoint_long_log, connect, connect_reader
from neonctl_local.storage.jsonl import export_data


def open_and_close(path: Path) -> None:
    """Open a data file in the newest schema, and close it."""
    connect(path).close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The path of a data file that does not exist."""
    return tmp_path / "control-plane.db"


@pytest.fixture
def key(data: Path) -> str:
    """The first API key of a data file with records of every kind."""
    load("accounts", data)
    return key_of("accounts")


async def test_migrated_file_is_served_to_its_keys(
    data: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, NEXT))
    async with serve(key, data=data, clock=ManualClock()) as api:
        plane = api.control_plane
        names = {project["name"] for project in (await api.get("/projects"))["projects"]}
        assert names >= {"own"}
        shared = await api.get(f"/projects?org_id={plane.org_id}")
        projects = {project["name"]: project["id"] for project in shared["projects"]}
        assert projects.keys() == {"shop", "old", "busy"}
        for project_id in projects.values():
            assert await api.operations(project_id)
            assert await api.branch_names(project_id)
        branch = await api.main_branch(projects["shop"])
        path = f"/projects/{projects['shop']}/branches/{branch['id']}"
        databases = (await api.get(f"{path}/databases"))["databases"]
        assert [database["name"] for database in databases] == ["neondb", "sales"]
        assert await api.branch(projects["shop"], name="new", compute=True)


@pytest.mark.parametrize("world", WORLDS)
def test_migration_makes_a_backup_that_only_the_owner_can_read(
    world: str, data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    version, before = schema.newest(), tables(load(world, data))
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, NEXT))
    known = set(data.parent.iterdir())
    open_and_close(data)
    (backup,) = set(data.parent.iterdir()) - known
    assert backup.name == f"control-plane.db.schema-{version}.backup"
    assert mode(backup) == 0o600
    assert tables(backup) == before
    after = tables(data)
    assert lost(before, after) == []
    assert len(after["invented"][1]) == len(before["projects"][1])
    assert f"from schema {version} to schema {version + 1}: the backup is {backup}" in caplog.text
    caplog.clear()
    open_and_close(data)
    assert caplog.text == ""


def test_failed_migration_names_the_file_and_changes_nothing(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = tables(load("accounts", data))
    broken = schema.Migration(NEXT.version, f"{NEXT.sql}; INSERT INTO users VALUES (1)")
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, broken))
    with pytest.raises(RuntimeError, match=r"cannot keep data in .*: table users has 4 columns"):
        connect(data)
    assert tables(data) == before


def test_file_of_a_later_schema_is_refused(data: Path) -> None:
    open_and_close(data)
    later = schema.newest() + 3
    with closing(sqlite3.connect(data)) as connection:
        connection.execute(f"PRAGMA user_version = {later}")
    expected = f"it has schema {later}, and this version of neonctl-async has schema"
    with pytest.raises(RuntimeError, match=expected):
        connect(data)


@pytest.mark.parametrize("version", [1, 12])
def test_file_of_an_unreleased_version_is_refused_and_stays_as_it_is(
    data: Path, version: int
) -> None:
    open_and_close(data)
    with closing(sqlite3.connect(data)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute(f"PRAGMA application_id = {0x4E4C4350}")
    before = data.read_bytes()
    expected = (
        rf"control-plane\.db: it has schema {version} of an unreleased version of neonctl-async,"
        " and this version expects its own schema 1: use a new file"
    )
    with pytest.raises(RuntimeError, match=expected):
        connect(data)
    with pytest.raises(RuntimeError, match=expected):
        export_data(data, io.BytesIO())
    assert data.read_bytes() == before


@pytest.mark.parametrize("version", [0, 1, 2, 7])
def test_file_of_another_program_is_refused_and_stays_as_it_is(data: Path, version: int) -> None:
    with closing(sqlite3.connect(data)) as connection:
        connection.execute("CREATE TABLE projects (id TEXT)")
        connection.execute(f"PRAGMA user_version = {version}")
    data.chmod(0o644)
    before = data.read_bytes()
    with pytest.raises(RuntimeError, match="another program, or an unreleased version"):
        connect(data)
    assert (data.read_bytes(), mode(data)) == (before, 0o644)
    assert list(data.parent.iterdir()) == [data]


def test_text_file_is_refused(data: Path) -> None:
    data.write_text("this is not a database, but a list of things to buy: bread, milk" * 20)
    with pytest.raises(RuntimeError, match="file is not a database: use another file"):
        connect(data)


def test_directory_is_refused(data: Path) -> None:
    data.mkdir()
    with pytest.raises(RuntimeError, match="it is not a regular file"):
        connect(data)


def test_file_that_cannot_be_written_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def access(path: Path, rights: int) -> bool:  # the tests may run as root, who may do all
        return path != data or not rights & os.W_OK

    open_and_close(data)
    monkeypatch.setattr(os, "access", access)
    with pytest.raises(RuntimeError, match=r"control-plane\.db: you may not write to it"):
        connect(data)


def test_missing_directory_is_named(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"No such file or directory: .*missing/data\.db'"):
        connect(tmp_path / "missing" / "data.db")


def test_new_file_is_readable_by_its_owner_only(data: Path) -> None:
    before = os.umask(0)
    try:
        with closing(connect(data)) as connection:
            connection.execute("INSERT INTO served VALUES (1, 5)")
            assert {path.name: mode(path) for path in data.parent.iterdir()} == {
                f"control-plane.db{suffix}": 0o600 for suffix in ("", "-wal", "-shm")
            }
    finally:
        os.umask(before)


def test_file_that_others_can_use_is_narrowed_with_a_warning(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    open_and_close(data)
    data.chmod(0o664)
    data.with_name(f"{data.name}-wal").touch(mode=0o644)
    with closing(connect(data)):
        assert {mode(path) for path in data.parent.iterdir()} == {0o600}
    (warning,) = caplog.messages
    assert warning == f"other users could use {data} (mode 0664): now only its owner can"


def test_file_of_another_user_that_others_can_use_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError("not the owner")

    open_and_close(data)
    data.chmod(0o666)
    monkeypatch.setattr(Path, "chmod", refuse)
    with pytest.raises(RuntimeError, match=r"mode 0666\), and only its owner can change that"):
        connect(data)


@pytest.mark.parametrize(("durable", "level"), [(False, 1), (True, 2)])
def test_durable_file_waits_for_the_disk(data: Path, durable: bool, level: int) -> None:
    with closing(connect(data, durable=durable)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (level,)


def test_database_in_memory_has_the_newest_schema() -> None:
    with closing(connect(None)) as connection:
        assert schema.version_of(connection) == schema.newest()


def test_reader_sees_commits_while_the_writer_works(data: Path) -> None:
    with closing(connect(data)) as writer, closing(connect_reader(data)) as reader:
        writer.execute("INSERT INTO served VALUES (1, 5)")
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE served SET until = 6")
        assert reader.execute("SELECT until FROM served").fetchall() == [(5,)]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM served")


def test_long_log_is_emptied_without_waiting_for_a_paused_export(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "_LONG_LOG", 100)
    monkeypatch.setattr(data_files, "_BUSY_MILLISECONDS", 3_600_000)
    log = data.with_name(f"{data.name}-wal")
    with closing(connect(data)) as writer, closing(connect_reader(data)) as export:
        export.execute("BEGIN")
        export.execute("SELECT * FROM served").fetchall()
        writer.execute("INSERT INTO served VALUES (1, 5)")
        checkpoint_long_log(writer, data)
        assert log.stat().st_size > 100
        assert writer.execute("PRAGMA busy_timeout").fetchone() == (3_600_000,)
        export.execute("ROLLBACK")
        checkpoint_long_log(writer, data)
        assert log.stat().st_size == 0


def test_file_that_an_export_locks_for_a_moment_is_opened(data: Path) -> None:
    open_and_close(data)
    other = sqlite3.connect(data, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    end = threading.Timer(0.1, other.close)
    end.start()
    open_and_close(data)
    end.join()


def test_file_that_another_program_has_locked_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_files, "_BUSY_MILLISECONDS", 10)
    open_and_close(data)
    with closing(sqlite3.connect(data, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RuntimeError, match="another program is using it"):
            connect(data)
