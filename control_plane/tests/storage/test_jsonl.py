"""Export and import: every record survives, and an incomplete import leaves nothing."""

import io
import json
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_plane.tests.storage.files import NEXT, lost, tables
from control_plane.tests.storage.worlds import WORLDS, load
from neonctl_local.storage import schema
from neonctl_local.storage.data_files import connect
from neonctl_local.storage.jsonl import Summary, export_data, import_data
from neonctl_local.storage.locks import lock_data_file


def exported(path: Path) -> list[bytes]:
    """Return the lines of an export."""
    output = io.BytesIO()
    export_data(path, output)
    return output.getvalue().splitlines(keepends=True)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data file with records of every kind."""
    return load("accounts", tmp_path / "data.db")


@pytest.fixture
def lines(data: Path) -> list[bytes]:
    """The export of this file."""
    return exported(data)


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """The path of a data file that does not exist."""
    directory = tmp_path / "new"
    directory.mkdir()
    return directory / "new.db"


@pytest.mark.parametrize("world", WORLDS)
def test_imported_file_has_the_same_export(world: str, new: Path) -> None:
    data = load(world, new.with_name("data.db"))
    lines = exported(data)
    summary = import_data(new, lines)
    assert exported(new) == lines
    assert summary == Summary(rows=len(lines) - 2, has_databases=world == "real")
    assert tables(new) == tables(data)
    assert sorted(path.name for path in new.parent.iterdir()) == ["data.db", "new.db"]


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBER = st.integers(-(2**63), 2**63 - 1)
USERS = st.lists(st.tuples(TEXT, TEXT, TEXT, NUMBER), unique_by=(lambda row: row[0],), max_size=4)
KEYS = st.lists(st.tuples(TEXT, TEXT, st.binary(), NUMBER, st.none() | NUMBER), max_size=4)
FAILURES = st.lists(
    st.tuples(TEXT, NUMBER, st.none() | st.floats(allow_nan=False, allow_infinity=False)),
    max_size=4,
)


@settings(max_examples=20)
@given(users=USERS, keys=KEYS, failures=FAILURES, deleted=st.booleans())
def test_any_values_survive_export_and_import(
    users: list[Any], keys: list[Any], failures: list[Any], deleted: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path, new = Path(directory, "old.db"), Path(directory, "new.db")
        with closing(connect(path)) as connection:
            connection.executemany(
                "INSERT INTO users VALUES (?, ?, ? || hex(randomblob(8)), ?)", users
            )
            for name, locator, digest, at, ended in keys if users else ():
                values = ("personal", name, locator, digest, at, users[0][0], "", ended)
                connection.execute(
                    "INSERT INTO api_keys (kind, name, locator, digest, created_at, created_by,"
                    " last_used_from, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    values,
                )
            connection.executemany(
                "INSERT INTO planned_failures VALUES (NULL, ?, ?, 0, 'failed', '', ?, 1, NULL, 0)",
                failures,
            )
            if deleted:  # the counters of the ids stay
                connection.execute("DELETE FROM planned_failures")
        import_data(new, exported(path))
        assert tables(new) == tables(path)


def test_ids_are_not_used_again_after_an_import(data: Path, new: Path) -> None:
    with closing(connect(data)) as connection:
        connection.execute(
            "INSERT INTO planned_failures VALUES (70, 'a', 1, 0, 'failed', '', 1, 1, NULL, 0)"
        )
        connection.execute("DELETE FROM planned_failures")
    import_data(new, exported(data))
    with closing(connect(new)) as connection:
        inserted = connection.execute(
            "INSERT INTO planned_failures VALUES (NULL, 'a', 1, 0, 'failed', '', 1, 1, NULL, 0)"
        )
        assert inserted.lastrowid == 71


def test_file_that_a_server_uses_is_exported_at_one_moment(data: Path) -> None:
    lock = lock_data_file(data)
    before = exported(data)
    with closing(connect(data)) as server:
        server.execute("BEGIN IMMEDIATE")
        server.execute("DELETE FROM planned_failures")
        assert exported(data) == before
        server.execute("COMMIT")
        assert len(exported(data)) == len(before) - 6
    lock.release()


def nothing(_lines: list[bytes]) -> list[bytes]:
    return []


def other_text(_lines: list[bytes]) -> list[bytes]:
    return [b"hello\n"]


def without_last(lines: list[bytes]) -> list[bytes]:
    return lines[:-1]


def cut(lines: list[bytes]) -> list[bytes]:
    return [*lines[:40], lines[40][:30]]


def without_one(lines: list[bytes]) -> list[bytes]:
    return [*lines[:-2], lines[-1]]


def twice(lines: list[bytes]) -> list[bytes]:
    return lines * 2


def line(number: int, **changes: object) -> Callable[[list[bytes]], list[bytes]]:
    """Return a function that changes the fields of a line."""

    def change(lines: list[bytes]) -> list[bytes]:
        changed = json.dumps(json.loads(lines[number - 1]) | changes).encode()
        return [*lines[: number - 1], changed, *lines[number:]]

    return change


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (nothing, "line 1 is not the first line of an export: Input data was truncated"),
        (other_text, "line 1 is not the first line of an export"),
        (line(1, format="other"), "line 1 has the format 'other', version 1, and this version of"),
        (line(1, version=2), "version 2"),
        (line(1, schema=99), "the export has schema 99, and this version of neonctl-async has"),
        (line(1, schema=0), "the export has schema 0"),
        (without_last, "the last line is missing: the export is incomplete"),
        (cut, "line 41: Input data was truncated"),
        (without_one, "rows instead of "),
        (twice, "a line follows the last line"),
        (line(2, table="nothing"), "line 2: there is no table 'nothing'"),
        (line(2, table="sqlite_schema"), "line 2: there is no table 'sqlite_schema'"),
        (line(2, row={"id": 1}), "line 2: a row of 'anonymized_branches' has missing or unknown"),
        (line(2, more=1), "line 2: Object contains unknown field `more`"),
    ],
)
def test_damaged_export_is_refused_and_leaves_no_file(
    lines: list[bytes], new: Path, damage: Callable[[list[bytes]], list[bytes]], words: str
) -> None:
    with pytest.raises(RuntimeError, match=r"cannot import into .*new\.db: ") as caught:
        import_data(new, damage(lines))
    assert words in str(caught.value)
    assert list(new.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("digest", "not Base64!", "Only base64 data is allowed"),
        ("created_at", "yesterday", "cannot store TEXT value in INTEGER column"),
        ("created_at", 2**70, "too large"),
        ("created_by", "nobody", "refers to a row that is missing in 'users'"),
        ("name", None, "NOT NULL constraint failed: api_keys.name"),
    ],
)
def test_impossible_value_is_refused(
    lines: list[bytes], new: Path, column: str, value: object, words: str
) -> None:
    number = next(i for i, text in enumerate(lines, 1) if b'"api_keys"' in text)
    row = json.loads(lines[number - 1])["row"] | {column: value}
    with pytest.raises(RuntimeError, match=words):
        import_data(new, line(number, row=row)(lines))
    assert list(new.parent.iterdir()) == []


def test_file_with_data_is_not_replaced(data: Path) -> None:
    before = data.read_bytes()
    with pytest.raises(RuntimeError, match=r"data\.db exists already: name a new file"):
        import_data(data, exported(data))
    assert data.read_bytes() == before


def test_empty_file_is_filled(data: Path, new: Path) -> None:
    new.touch(mode=0o666)
    import_data(new, exported(data))
    assert tables(new) == tables(data)
    assert new.stat().st_mode & 0o777 == 0o600


def test_log_of_another_file_is_not_adopted(data: Path, new: Path) -> None:
    new.with_name("new.db-wal").write_bytes(b"of a file that was removed")
    with pytest.raises(RuntimeError, match=r"new\.db-wal exists already"):
        import_data(new, exported(data))


def test_incomplete_import_of_a_killed_process_is_replaced(data: Path, new: Path) -> None:
    for name in ("new.db.import.tmp", "new.db.import.tmp-journal"):
        new.with_name(name).write_bytes(b"half")
    import_data(new, exported(data))
    assert tables(new) == tables(data)
    assert [path.name for path in new.parent.iterdir()] == ["new.db"]


def test_file_of_a_running_server_is_not_imported_into(data: Path, new: Path) -> None:
    lock = lock_data_file(new)
    with pytest.raises(RuntimeError, match="uses it"):
        import_data(new, exported(data))
    lock.release()


def test_export_of_an_earlier_schema_is_migrated(
    data: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, lines = tables(data), exported(data)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, NEXT))
    import_data(new, lines)
    after = tables(new)
    assert lost(before, after) == []
    assert len(after["invented"][1]) == len(before["projects"][1])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file"),
        (b"", "it is empty: name the data file of a server"),
        (b"text " * 300, "file is not a database"),
    ],
)
def test_other_file_is_not_exported(new: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        new.write_bytes(content)
    with pytest.raises(RuntimeError, match=rf"cannot export .*new\.db: {words}"):
        export_data(new, io.BytesIO())
