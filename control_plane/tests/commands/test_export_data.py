"""``python -m neonctl_local export``."""

import os
import stat
from contextlib import closing
from pathlib import Path

import pytest

from control_plane.tests.storage.worlds import load
from neonctl_local.__main__ import main
from neonctl_local.storage.data_files import connect


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """An empty data file."""
    path = tmp_path / "data.db"
    connect(path).close()
    return path


def test_rows_are_written_to_standard_output(
    data: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    with closing(connect(data)) as connection:
        connection.execute("INSERT INTO served VALUES (1, 5)")
    assert main(["export", str(data)]) == 0
    out, err = capfdbinary.readouterr()
    header, *_, row, end = out.splitlines()
    assert header.startswith(b'{"format":"neonctl_local data","version":1,"schema":')
    assert row == b'{"table":"served","row":{"id":1,"until":5}}'
    assert end == b'{"rows":1}'
    assert err.decode() == f"exported 1 rows of {data}\n"


def test_output_file_is_readable_by_its_owner_only(data: Path) -> None:
    output = data.with_name("data.jsonl")
    before = os.umask(0)
    try:
        assert main(["export", str(data), "--output", str(output)]) == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(output.stat().st_mode) == 0o600
    assert output.read_bytes().endswith(b'{"rows":0}\n')


def test_existing_output_file_is_not_replaced(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = data.with_name("data.jsonl")
    output.write_text("kept")
    with pytest.raises(SystemExit) as exit_:
        main(["export", str(data), "--output", str(output)])
    assert exit_.value.code == 1
    assert f"{output} exists already: name a new file for --output" in capsys.readouterr().err
    assert output.read_text() == "kept"


@pytest.mark.parametrize("output", ["data.jsonl", "missing/data.jsonl"])
def test_failed_export_leaves_no_file(
    tmp_path: Path, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["export", str(tmp_path / "data.db"), "--output", str(tmp_path / output)])
    assert exit_.value.code == 1
    assert "local export: cannot " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_directory_of_real_databases_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = load("real", tmp_path / "data.db")
    main(["export", str(data), "--output", str(tmp_path / "data.jsonl")])
    assert f"stop the server and copy {data}.d\n" in capsys.readouterr().err
