"""Copies of data directories."""

import errno
import os
import shutil
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pytest

from neonctl_local.postgres import copying
from neonctl_local.postgres.cloning import FileCopier
from neonctl_local.postgres.copying import copy_cluster, copy_wal, remove
from neonctl_local.postgres.errors import ClusterError

MB = 1 << 20
Parents: TypeAlias = tuple[int | None, int | None]


def write(root: Path, relative: str, contents: bytes = b"contents") -> None:
    (root / relative).parent.mkdir(parents=True, exist_ok=True)
    (root / relative).write_bytes(contents)


def segment(position: int) -> bytes:
    """Return a WAL segment of 1 MB, whose first page has a position in the WAL."""
    return struct.pack("=HHIQ", 0xD118, 2, 1, position).ljust(MB, b"\0")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The smallest data directory."""
    source = tmp_path / "br-source"
    write(source, "PG_VERSION", b"18\n")
    write(source, "global/pg_control", b"control" * 100)
    write(source, "base/5/1259")
    write(source, "pg_wal/000000010000000000000005", segment(5 * MB))
    return source


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """The path of the copy."""
    return tmp_path / "br-target"


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def contents(root: Path) -> dict[str, bytes]:
    return {name: (root / name).read_bytes() for name in files(root)}


def entries(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_copy_has_all_files_and_empty_directories(source: Path, target: Path) -> None:
    write(source, "base/5/empty", b"")
    write(source, "base/5/2600.1", os.urandom(300_000))
    (source / "pg_twophase").mkdir()
    copy_cluster(source, target, account=None)
    assert contents(target) == contents(source)
    assert (target / "pg_twophase").is_dir()


def test_only_the_owner_may_read_a_copy(source: Path, target: Path) -> None:
    for path in (source, *source.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    copy_cluster(source, target, account=None)
    for path in (target, *target.rglob("*")):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected


def test_temporary_files_are_left_out(source: Path, target: Path) -> None:
    expected = files(source)
    for name in ("postmaster.pid", "postmaster.opts", "current_logfiles"):
        write(source, name)
    for name in ("pgsql_tmp/pgsql_tmp1.0", "pgsql_tmp7.1", "5/t3_16400", "5/pg_internal.init.44"):
        write(source, f"base/{name}")
    for name in ("notify", "replslot", "serial", "snapshots", "stat_tmp", "dynshmem", "subtrans"):
        write(source, f"pg_{name}/0000")
    write(source, "pg_wal/archive_status/000000010000000000000005.ready")
    write(source, "global/pg_internal.init")
    write(source, ".s.PGSQL.5432.lock")
    copy_cluster(source, target, account=None)
    assert files(target) == expected
    assert (target / "pg_replslot").is_dir()
    assert (target / "pg_wal" / "archive_status").is_dir()


def test_stopped_source_keeps_subtransactions_and_unlogged_tables(
    source: Path, target: Path
) -> None:
    for name in ("pg_subtrans/0000", "base/5/16390", "base/5/16390_fsm", "base/5/16390_init"):
        write(source, name)
    copy_cluster(source, target, account=None)
    assert files(target) == files(source)


def test_running_source_gives_empty_unlogged_tables(source: Path, target: Path) -> None:
    for name in ("16390", "16390.1", "16390_fsm", "16390_vm", "16390_init", "163900", "16391_fsm"):
        write(source, f"base/5/{name}")
    copy_cluster(source, target, account=None, wal=[])
    assert entries(target / "base" / "5") == {"1259", "16390_init", "163900", "16391_fsm"}


def test_segments_without_records_are_left_out(source: Path, target: Path) -> None:
    write(source, "pg_wal/000000010000000000000006", segment(2 * MB))  # an old one, renamed
    write(source, "pg_wal/000000010000000000000007", bytes(MB))
    write(source, "pg_wal/000000010000000000000008", b"")
    write(source, "pg_wal/000000020000000100000003", segment((1 << 32) + 3 * MB))
    write(source, "pg_wal/00000002.history")
    copy_cluster(source, target, account=None)
    assert entries(target / "pg_wal") == {
        "000000010000000000000005",
        "000000020000000100000003",
        "00000002.history",
    }


def test_named_segments_of_a_running_source_are_copied(source: Path, target: Path) -> None:
    write(source, "pg_wal/000000010000000000000006", segment(2 * MB))
    write(source, "pg_wal/000000010000000000000007", bytes(MB))
    write(source, "pg_wal/00000002.history")
    copy_cluster(source, target, account=None, wal=["000000010000000000000006"])
    assert entries(target / "pg_wal") == {"000000010000000000000006", "00000002.history"}


def test_all_segments_of_a_crashed_source_are_copied(source: Path, target: Path) -> None:
    write(source, "postmaster.pid")
    write(source, "pg_wal/000000010000000000000006", segment(2 * MB))
    copy_cluster(source, target, account=None)
    assert len(entries(target / "pg_wal")) == 2


def test_segments_are_added_and_replaced(source: Path, target: Path) -> None:
    name = "000000010000000000000005"
    copy_cluster(source, target, account=None, wal=[name])
    write(source, f"pg_wal/{name}", b"more records")
    write(source, "pg_wal/000000010000000000000006", b"new segment")
    copy_wal(source, target, [name, "000000010000000000000006"], account=None)
    assert contents(target / "pg_wal") == contents(source / "pg_wal")


def test_missing_segment_is_an_error(source: Path, target: Path) -> None:
    with pytest.raises(ClusterError, match=r"'br-source' was not copied: No such file.*00009'"):
        copy_cluster(source, target, account=None, wal=["000000010000000000000009"])
    assert not target.exists()
    copy_cluster(source, target, account=None)
    with pytest.raises(ClusterError, match="'br-source' was not copied: No such file"):
        copy_wal(source, target, ["000000010000000000000009"], account=None)


def before_copying(monkeypatch: pytest.MonkeyPatch, path: Path, act: Callable[[], None]) -> None:
    """Do something just before a file is copied."""
    copy, awaited = FileCopier.copy, path.stat()

    def copy_later(copier: FileCopier, source: str, target: str, *, parents: Parents) -> None:
        if os.path.samestat(os.stat(source, dir_fd=parents[0]), awaited):
            act()
        copy(copier, source, target, parents=parents)

    monkeypatch.setattr(FileCopier, "copy", copy_later)


def test_tables_that_a_running_server_deletes_are_ignored(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("base/5/16390", "base/6/1259"):
        write(source, name)
        before_copying(monkeypatch, source / name, (source / name).unlink)
    copy_cluster(source, target, account=None, wal=[])
    assert entries(target / "base" / "5") == {"1259"}
    assert entries(target / "base" / "6") == set()


def test_database_that_a_running_server_deletes_is_ignored(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(source, "base/6/1259")
    make_directory = FileCopier.make_directory

    def make_directory_later(copier: FileCopier, path: str, parent: int | None = None) -> None:
        if path == "6":
            remove(source / "base" / "6")
        make_directory(copier, path, parent)

    monkeypatch.setattr(FileCopier, "make_directory", make_directory_later)
    copy_cluster(source, target, account=None, wal=[])
    assert entries(target / "base" / "5") == {"1259"}
    assert entries(target / "base" / "6") == set()


def test_file_missing_from_a_stopped_source_is_an_error(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_copying(monkeypatch, source / "base/5/1259", (source / "base/5/1259").unlink)
    with pytest.raises(ClusterError, match="'br-source' was not copied: No such file"):
        copy_cluster(source, target, account=None)
    assert entries(source.parent) == {"br-source"}


def test_control_file_is_read_until_two_reads_agree(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = [b"torn read", b"new contents", b"new contents", b"too late"]

    def read(path: str, directory: int) -> bytes:
        assert os.path.samestat(os.stat(path, dir_fd=directory), control.stat())
        return reads.pop(0)

    control = source / "global" / "pg_control"
    monkeypatch.setattr(copying, "read_file", read)
    copy_cluster(source, target, account=None, wal=[])
    assert (target / "global" / "pg_control").read_bytes() == b"new contents"


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_full_disk_leaves_nothing_behind(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def fail() -> None:
        raise OSError(error, os.strerror(error))

    before_copying(monkeypatch, source / "base/5/1259", fail)
    with pytest.raises(ClusterError) as raised:
        copy_cluster(source, target, account=None)
    assert str(raised.value) == (
        f"the disk of {str(source.parent)!r} is full: it has no space for a copy of cluster"
        " 'br-source'. Delete branches that you do not need, free disk space, or put the data on"
        " another disk, with --data or TMPDIR"
    )
    assert entries(source.parent) == {"br-source"}


def test_interrupted_copy_leaves_nothing_behind(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    before_copying(monkeypatch, source / "base/5/1259", interrupt)
    with pytest.raises(KeyboardInterrupt):
        copy_cluster(source, target, account=None)
    assert entries(source.parent) == {"br-source"}


def test_rest_of_an_earlier_copy_is_replaced(source: Path, target: Path) -> None:
    write(target.with_name("br-target.partial"), "rest")
    copy_cluster(source, target, account=None)
    assert files(target) == files(source)
    assert entries(source.parent) == {"br-source", "br-target"}


def test_existing_target_is_not_replaced(source: Path, target: Path) -> None:
    write(target, "file")
    with pytest.raises(ClusterError, match="'br-source' was not copied: "):
        copy_cluster(source, target, account=None)
    assert files(target) == {"file"}
    assert entries(source.parent) == {"br-source", "br-target"}


@pytest.mark.parametrize("missing", ["PG_VERSION", "global/pg_control"])
def test_other_directories_are_refused(source: Path, target: Path, missing: str) -> None:
    (source / missing).unlink()
    with pytest.raises(ClusterError) as raised:
        copy_cluster(source, target, account=None)
    assert str(raised.value) == f"{str(source)!r} is not a data directory: no file {missing}"


def test_tablespaces_are_refused(source: Path, target: Path, tmp_path: Path) -> None:
    (source / "pg_tblspc").mkdir()
    (source / "pg_tblspc" / "16400").symlink_to(tmp_path)
    with pytest.raises(ClusterError, match="tablespaces outside the data directory cannot be"):
        copy_cluster(source, target, account=None)
    assert entries(source.parent) == {"br-source"}


def test_special_files_are_refused(source: Path, target: Path) -> None:
    os.mkfifo(source / "base" / "fifo")
    with pytest.raises(ClusterError, match="base/fifo' is a link or a special file"):
        copy_cluster(source, target, account=None)


@pytest.mark.parametrize("name", ["PG_VERSION", "global/pg_control", "global", "base/5", "pg_wal"])
def test_copy_follows_no_link_out_of_the_data_directory(
    source: Path, target: Path, tmp_path: Path, name: str
) -> None:
    outside = tmp_path / "outside"
    (source / name).rename(outside)
    (source / name).symlink_to(outside)
    with pytest.raises(ClusterError, match=f"{name}'"):
        copy_cluster(source, target, account=None)
    assert entries(tmp_path) == {"br-source", "outside"}


@pytest.mark.parametrize("linked", ["base/5/1259", "base/5"])
def test_copy_does_not_follow_a_link_that_is_put_in_place_meanwhile(
    source: Path, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: str
) -> None:
    write(tmp_path, "outside/1259", b"secret")
    outside = tmp_path / "outside" / ("1259" if linked.endswith("1259") else "")

    def link() -> None:
        (source / linked).rename(tmp_path / "moved")
        (source / linked).symlink_to(outside)

    before_copying(monkeypatch, source / "base/5/1259", link)
    with suppress(ClusterError):
        copy_cluster(source, target, account=None)
    found = contents(target) if target.exists() else {}
    assert found.get("base/5/1259", b"contents") == b"contents"


def test_missing_directory_is_not_an_error_of_remove(tmp_path: Path) -> None:
    remove(tmp_path / "missing")
    remove(tmp_path)
    assert not tmp_path.exists()


def test_remove_continues_if_others_remove_files_too(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rmtree = shutil.rmtree
    failures = [FileNotFoundError("another process removed a file")]

    def remove_with_others(directory: Path) -> None:
        if failures:
            raise failures.pop()
        rmtree(directory)

    monkeypatch.setattr("shutil.rmtree", remove_with_others)
    remove(source)
    assert not source.exists()
