import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from neonctl_local.postgres import directories as directories_module
from neonctl_local.postgres.directories import (
    INDEX,
    LOCK,
    PREFIX,
    DataFile,
    Directories,
    lock_directory,
    remove_abandoned,
)
from neonctl_local.postgres.errors import PostgresUnavailableError
from neonctl_local.postgres.template import password_file


@pytest.fixture
def opened(temporary_directory: Path) -> Iterator[Callable[[Path | None], Directories]]:
    """A function that opens directories. They are closed at the end."""
    all_opened: list[Directories] = []

    def open_directories(root: Path | None) -> Directories:
        directories = Directories(root, None, durable=False)
        directories.open()
        all_opened.append(directories)
        return directories

    yield open_directories
    for directories in all_opened:
        directories.close()
    assert list(temporary_directory.glob(f"{PREFIX}*")) == []


def make_cluster(directories: Directories, id: str) -> Path:
    path = directories.new()
    path.mkdir()
    (path / "PG_VERSION").write_text("17\n")
    directories.assign({id: path})
    return path


def test_temporary_data_are_private_and_removed(
    opened: Callable[[Path | None], Directories], temporary_directory: Path
) -> None:
    directories = opened(None)
    make_cluster(directories, "br-a")
    assert directories.is_temporary
    for path in (directories.root, directories.sockets, directories.temporary):
        assert path.stat().st_mode & 0o777 == 0o700
    directories.close()
    assert list(temporary_directory.iterdir()) == []


def test_kept_data_are_found_again_and_incomplete_ones_removed(
    opened: Callable[[Path | None], Directories], tmp_path: Path
) -> None:
    first = opened(tmp_path / "data")
    path = make_cluster(first, "br-a")
    deleted = make_cluster(first, "br-b")
    first.assign({"br-b": None})
    incomplete = first.new().with_suffix(".partial")
    incomplete.mkdir()
    (tmp_path / "data" / f"{INDEX}.12345678.tmp").touch()
    first.close()
    again = Directories(tmp_path / "data", None, durable=True)
    assert again.open() == {"br-a": path}
    again.close()
    assert not deleted.exists()
    assert not incomplete.exists()
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["clusters", INDEX, LOCK]


def test_missing_data_directory_is_reported_and_forgotten(
    opened: Callable[[Path | None], Directories],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = opened(tmp_path / "data")
    (make_cluster(first, "br-a") / "PG_VERSION").unlink()
    first.close()
    again = Directories(tmp_path / "data", None, durable=False)
    assert again.open() == {}
    again.close()
    assert "of br-a is missing" in caplog.text


def test_what_is_left_of_damaged_data_stays_until_their_branch_is_deleted(
    opened: Callable[[Path | None], Directories], tmp_path: Path
) -> None:
    first = opened(tmp_path / "data")
    damaged, other = make_cluster(first, "br-a"), make_cluster(first, "br-b")
    (damaged / "PG_VERSION").unlink()
    (damaged / "table").touch()
    password_file(damaged).touch()
    first.close()
    for needed in ({"br-a", "br-b"}, {"br-a"}, {"br-b"}):
        known = DataFile(needed=frozenset(needed))
        again = Directories(tmp_path / "data", None, durable=False, data_file=known)
        assert again.open() == {"br-b": other}
        again.assign({"snap-c": None})
        again.close()
        assert (damaged / "table").exists() == ("br-a" in needed)
        assert password_file(damaged).exists() == ("br-a" in needed)


@pytest.mark.parametrize("text", ["", "{", "[1]"])
def test_damaged_index_is_an_error_that_names_it(
    opened: Callable[[Path | None], Directories], tmp_path: Path, text: str
) -> None:
    first = opened(tmp_path / "data")
    path = make_cluster(first, "br-a")
    first.close()
    (tmp_path / "data" / INDEX).write_text(text)
    with pytest.raises(RuntimeError, match=rf"{INDEX}.*is damaged"):
        opened(tmp_path / "data")
    assert path.exists(), "no data are removed"


def test_two_control_planes_cannot_use_one_directory(
    opened: Callable[[Path | None], Directories], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories_module, "_LOCK_TIMES", (60.0, 0.1))
    first = opened(tmp_path / "data")
    with pytest.raises(RuntimeError, match=rf"in use by another .*\(process {os.getpid()}\)"):
        opened(tmp_path / "data")
    first.close()
    opened(tmp_path / "data").close()


def test_lock_of_a_killed_control_plane_is_awaited_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = lock_directory(tmp_path)
    (tmp_path / LOCK).write_text("999999999\n")
    monkeypatch.setattr(directories_module, "_LOCK_TIMES", (0.1, 60.0))
    with pytest.raises(RuntimeError, match="in use by another"):
        lock_directory(tmp_path)
    os.close(held)
    os.close(lock_directory(tmp_path))


def test_path_of_sockets_that_is_too_long_is_an_error(
    opened: Callable[[Path | None], Directories],
    temporary_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    long = temporary_directory / ("x" * 80)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with pytest.raises(PostgresUnavailableError, match="set TMPDIR to a shorter directory"):
        opened(None)
    assert list(long.iterdir()) == []
    long.rmdir()


def test_path_of_sockets_with_a_comma_is_an_error(
    opened: Callable[[Path | None], Directories],
    temporary_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    separating = temporary_directory / "a,b"
    separating.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(separating))
    with pytest.raises(PostgresUnavailableError, match="set TMPDIR to a directory without one"):
        opened(None)
    assert list(separating.iterdir()) == []
    separating.rmdir()


def test_directories_that_nobody_uses_are_removed(
    opened: Callable[[Path | None], Directories], temporary_directory: Path
) -> None:
    used = opened(None).temporary
    abandoned = temporary_directory / f"{PREFIX}abandoned"
    abandoned.mkdir()
    (abandoned / LOCK).touch()
    (abandoned / "root").write_text(str(temporary_directory / "removed"))
    young = temporary_directory / f"{PREFIX}young"
    young.mkdir()
    old = temporary_directory / f"{PREFIX}old"
    old.mkdir()
    os.utime(old, (0, 0))
    remove_abandoned(temporary_directory)
    assert used.exists()
    assert young.exists(), "it may be about to get its lock"
    assert not abandoned.exists()
    assert not old.exists()
    young.rmdir()


def test_file_with_the_name_of_a_temporary_directory_stays(temporary_directory: Path) -> None:
    file = temporary_directory / f"{PREFIX}file"
    file.touch()
    link = temporary_directory / f"{PREFIX}link"
    link.symlink_to("/")
    os.utime(link, (0, 0), follow_symlinks=False)
    remove_abandoned(temporary_directory)
    assert file.exists()
    assert link.is_symlink()


def test_directory_of_a_start_that_was_killed_names_no_data(
    temporary_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandoned = temporary_directory / f"{PREFIX}killed"
    abandoned.mkdir()
    for name in (LOCK, "root"):  # killed before it wrote the path
        (abandoned / name).touch()
    monkeypatch.chdir(tmp_path)
    remove_abandoned(temporary_directory)
    assert not abandoned.exists()
    assert list(tmp_path.iterdir()) == []


def test_data_that_are_lost_one_by_one_are_named(
    opened: Callable[[Path | None], Directories],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = opened(tmp_path / "data")
    path = make_cluster(first, "br-a")
    first.close()
    known = DataFile(needed=frozenset({"br-a", "br-b"}))
    again = Directories(tmp_path / "data", None, durable=False, data_file=known)
    assert again.open() == {"br-a": path}
    again.close()
    assert "does not name the data of br-b" in caplog.text


def test_missing_data_of_all_branches_are_an_error_that_changes_nothing(
    opened: Callable[[Path | None], Directories], tmp_path: Path
) -> None:
    first = opened(tmp_path / "data")
    path = make_cluster(first, "br-a")
    password_file(path).touch()
    first.close()
    (path / "PG_VERSION").unlink()
    known = DataFile(needed=frozenset({"br-a"}))
    with pytest.raises(RuntimeError, match=r"no data in .*clusters'.* 1 branches .*\(br-a\)"):
        Directories(tmp_path / "data", None, durable=False, data_file=known).open()
    assert path.exists()
    assert password_file(path).exists()


def test_clusters_that_the_data_file_never_had_are_set_aside(
    opened: Callable[[Path | None], Directories],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = opened(tmp_path / "data")
    ids = ("br-a", "br-a.new", "br-b", "snap-b", "saved-a")
    paths = {id: make_cluster(first, id) for id in ids}
    first.close()
    older = DataFile(known=frozenset({"br-a"}))
    again = Directories(tmp_path / "data", None, durable=False, data_file=older)
    mine = {id: paths[id] for id in ("br-a", "br-a.new", "saved-a")}
    assert again.open() == mine
    again.assign({"saved-a": None})
    again.close()
    assert "(br-b, snap-b). To use them, stop, and restore the newer data file" in caplog.text
    assert str(paths["snap-b"]) in caplog.text
    newer = DataFile(known=frozenset({"br-a", "br-b", "snap-b"}))
    last = Directories(tmp_path / "data", None, durable=False, data_file=newer)
    assert last.open() == {id: path for id, path in paths.items() if id != "saved-a"}
    last.close()
