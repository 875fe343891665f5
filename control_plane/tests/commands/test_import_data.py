"""``python -m neonctl_local import``."""

import io
import sys
from pathlib import Path

import pytest

from control_plane.tests.storage.files import tables
from control_plane.tests.storage.worlds import load
from neonctl_local.__main__ import main


class Input(io.TextIOWrapper):
    """Standard input with this content."""

    def __init__(self, content: bytes, *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(content))
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def export(world: str, directory: Path) -> bytes:
    """Return the export of a data file."""
    data, output = load(world, directory / "old.db"), directory / "old.jsonl"
    main(["export", str(data), "--output", str(output)])
    return output.read_bytes()


def test_exported_rows_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Input(export("accounts", tmp_path)))
    rows = capsys.readouterr().err.split()[1]
    new = tmp_path / "new.db"
    assert main(["import", str(new)]) == 0
    assert capsys.readouterr() == ("", f"imported {rows} rows into {new}\n")
    assert tables(new) == tables(tmp_path / "old.db")


@pytest.mark.parametrize("copied", [False, True])
def test_missing_directory_of_real_databases_is_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    copied: bool,
) -> None:
    monkeypatch.setattr(sys, "stdin", Input(export("real", tmp_path)))
    new = tmp_path / "new.db"
    if copied:
        (tmp_path / "new.db.d").mkdir()
    main(["import", str(new)])
    hint = f"copy their directory to {new}.d before you start the server"
    assert (hint in capsys.readouterr().err) is not copied


def test_other_input_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b"hello\n"))
    with pytest.raises(SystemExit) as exit_:
        main(["import", str(tmp_path / "new.db")])
    assert exit_.value.code == 1
    assert "line 1 is not the first line of an export" in capsys.readouterr().err


def test_terminal_is_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Input(b"", terminal=True))
    with pytest.raises(SystemExit) as exit_:
        main(["import", str(tmp_path / "new.db")])
    assert exit_.value.code == 2
    assert "standard input is a terminal: redirect an export to it" in capsys.readouterr().err
