"""Copies of data directories that are restored after changes."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from neonctl_local.postgres.cloning import FileCopier
from neonctl_local.postgres.restoring import CACHE, RestorableCopy

FILES = {
    "PG_VERSION": b"18\n",
    "postgresql.auto.conf": b"",
    "base/5/1259": b"catalog",
    "base/16384/1259": b"catalog",
    "base/16384/2619": b"statistics",
    "pg_tblspc/": None,
    "pg_wal/000000010000000000000005": b"log",
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory with the files."""
    source = tmp_path / "source"
    for name, contents in FILES.items():
        path = source / name
        if contents is None:
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)
    return source


@pytest.fixture
def copy(source: Path, tmp_path: Path) -> Path:
    """A copy of the directory."""
    return Path(shutil.copytree(source, tmp_path / "copy"))


@pytest.fixture
def restorable(source: Path, copy: Path) -> RestorableCopy:
    """The copy, before any change."""
    return RestorableCopy(source, copy, None)


def tree(root: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }


def rewrite(path: Path, contents: bytes) -> None:
    """Write a file in place, as a server does."""
    with path.open("r+b") as file:
        file.write(contents)


def replace_directory(path: Path) -> None:
    shutil.rmtree(path)
    path.write_bytes(b"a file")


def replace_with_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent.parent / "16384/1259")


def replace_file(path: Path) -> None:
    path.unlink()
    (path / "deep").mkdir(parents=True)
    (path / "deep/file").write_bytes(b"new")


CHANGES: dict[str, Callable[[Path], object]] = {
    "same size": lambda copy: rewrite(copy / "base/5/1259", b"CATALOG"),
    "grown": lambda copy: (copy / "base/5/1259").write_bytes(b"catalog and more"),
    "truncated": lambda copy: os.truncate(copy / "base/16384/2619", 0),
    "new file": lambda copy: (copy / "base/5/99").write_bytes(b"table"),
    "new directories": lambda copy: shutil.copytree(copy / "base", copy / "pg_tblspc/9/base"),
    "new link": lambda copy: (copy / "pg_tblspc/9").symlink_to(copy / "base"),
    "deleted file": lambda copy: (copy / "base/16384/1259").unlink(),
    "deleted directory": lambda copy: shutil.rmtree(copy / "base/16384"),
    "deleted log": lambda copy: shutil.rmtree(copy / "pg_wal"),
    "renamed onto another": lambda copy: (copy / "base/5/1259").rename(copy / "base/16384/1259"),
    "directory became a file": lambda copy: replace_directory(copy / "base/16384"),
    "file became a directory": lambda copy: replace_file(copy / "base/5/1259"),
    "file became a link": lambda copy: replace_with_link(copy / "base/5/1259"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_each_change_is_undone_every_time(
    restorable: RestorableCopy, source: Path, copy: Path, change: Callable[[Path], object]
) -> None:
    for _ in range(3):
        change(copy)
        restorable.restore()
        assert tree(copy) == tree(source)
        assert not any(path.is_symlink() for path in copy.rglob("*"))


def test_all_changes_together_are_undone(
    restorable: RestorableCopy, source: Path, copy: Path
) -> None:
    for name in ("same size", "new directories", "new file", "deleted directory", "deleted log"):
        CHANGES[name](copy)
    restorable.restore()
    assert tree(copy) == tree(source)


def test_unchanged_files_are_not_written(
    restorable: RestorableCopy, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    original = FileCopier.overwrite

    def note(self: FileCopier, source: str, target: str, inode: int) -> None:
        written.append(target)
        original(self, source, target, inode)

    monkeypatch.setattr(FileCopier, "overwrite", note)
    rewrite(copy / "base/5/1259", b"CATALOG")
    restorable.restore()
    restorable.restore()
    assert written == [str(copy / "base/5/1259")]


def test_changed_file_stays_the_same_file(restorable: RestorableCopy, copy: Path) -> None:
    file = copy / "base/5/1259"
    inode = file.stat().st_ino
    file.write_bytes(b"catalog and more")
    restorable.restore()
    assert file.read_bytes() == b"catalog"
    assert file.stat().st_ino == inode


def test_target_of_a_new_link_stays(restorable: RestorableCopy, copy: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"of somebody else")
    (copy / "pg_tblspc/9").symlink_to(outside)
    restorable.restore()
    assert (outside / "file").exists()


def test_full_disk_is_reported(
    restorable: RestorableCopy, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FileCopier, "overwrite", fail)
    rewrite(copy / "base/5/1259", b"CATALOG")
    with pytest.raises(OSError, match="No space left on device"):
        restorable.restore()


def caches(root: Path) -> dict[str, bytes]:
    return {str(path.parent.relative_to(root)): path.read_bytes() for path in root.rglob(CACHE)}


@pytest.fixture
def cached(restorable: RestorableCopy, copy: Path) -> RestorableCopy:
    """The copy, restored, after a server has written its caches and they were kept."""
    (copy / "global").mkdir()
    for name in ("global", "base/5", "base/16384"):
        (copy / name / CACHE).write_bytes(name.encode())
    restorable.keep_caches()
    restorable.restore()
    (copy / "global").mkdir()
    return restorable


def test_caches_are_put_back(cached: RestorableCopy, copy: Path) -> None:
    assert caches(copy) == {}
    assert cached.put_caches_back()
    assert caches(copy) == {name: name.encode() for name in ("global", "base/5", "base/16384")}


def test_copy_without_kept_caches_gets_none(restorable: RestorableCopy, copy: Path) -> None:
    assert not restorable.put_caches_back()
    assert caches(copy) == {}


@pytest.mark.parametrize("replaced", ["base", "base/5"])
def test_cache_is_not_written_through_a_link(
    cached: RestorableCopy, copy: Path, tmp_path: Path, replaced: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (copy / replaced).rename(elsewhere)
    (copy / replaced).symlink_to(elsewhere)
    cached.put_caches_back()
    assert "base/5" not in caches(copy)
    assert not {"5", "."} & caches(elsewhere).keys()
