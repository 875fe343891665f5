"""Copies of single files."""

import errno
import os
import random
from pathlib import Path

import pytest

from neonctl_local.postgres import cloning
from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.cloning import PIECE, SMALL, FileCopier, spread


@pytest.fixture
def copier() -> FileCopier:
    """A copier that changes no owner."""
    return FileCopier(None)


class Ioctl:
    """Requests to a file system that clones files, or refuses each request with an error."""

    def __init__(self, error: int = 0) -> None:
        self.error = error
        self.calls = 0

    def __call__(self, writing: int, request: int, reading: int) -> None:
        self.calls += 1
        assert request == cloning.FICLONE
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        os.write(writing, b"cloned")
        assert os.fstat(reading).st_size >= SMALL


def is_private(path: Path) -> bool:
    return path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "size", [0, 1, SMALL - 1, SMALL, SMALL + 1, PIECE, PIECE + SMALL, 3 * PIECE + 7]
)
def test_copy_has_the_contents(tmp_path: Path, copier: FileCopier, size: int) -> None:
    contents = random.Random(size).randbytes(size)
    (tmp_path / "source").write_bytes(contents)
    copier.copy(f"{tmp_path}/source", f"{tmp_path}/target")
    assert (tmp_path / "target").read_bytes() == contents
    assert is_private(tmp_path / "target")


@pytest.mark.parametrize("size", [0, SMALL - 1, SMALL, PIECE + 7])
@pytest.mark.parametrize("old", [0, 5, 2 * PIECE])
def test_overwritten_file_has_the_contents(
    tmp_path: Path, copier: FileCopier, size: int, old: int
) -> None:
    contents = random.Random(size).randbytes(size)
    (tmp_path / "source").write_bytes(contents)
    target = tmp_path / "target"
    target.write_bytes(bytes(old))
    copier.overwrite(f"{tmp_path}/source", f"{target}", target.stat().st_ino)
    assert target.read_bytes() == contents


def test_neither_a_link_nor_another_file_is_overwritten(tmp_path: Path, copier: FileCopier) -> None:
    (tmp_path / "source").write_bytes(b"new")
    other, link = tmp_path / "other", tmp_path / "link"
    other.write_bytes(b"of somebody else")
    link.symlink_to(other)
    for target in (other, link):
        with pytest.raises(OSError, match=str(target)):
            copier.overwrite(
                f"{tmp_path}/source", f"{target}", target.lstat().st_ino + (target == other)
            )
    assert other.read_bytes() == b"of somebody else"


def test_copy_is_private_whatever_the_umask(tmp_path: Path, copier: FileCopier) -> None:
    (tmp_path / "source").write_bytes(b"secret")
    (tmp_path / "source").chmod(0o644)
    for umask in (0, 0o077, 0o277):
        before = os.umask(umask)
        try:
            copier.copy(f"{tmp_path}/source", f"{tmp_path}/copy-{umask}")
            copier.write(f"{tmp_path}/written-{umask}", b"secret")
            copier.make_directory(f"{tmp_path}/directory-{umask}")
        finally:
            os.umask(before)
        assert (tmp_path / f"copy-{umask}").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / f"written-{umask}").stat().st_mode & 0o777 == 0o600
        assert (tmp_path / f"directory-{umask}").stat().st_mode & 0o777 == 0o700


def test_copy_of_a_hard_link_is_independent(tmp_path: Path, copier: FileCopier) -> None:
    (tmp_path / "source").write_bytes(b"before")
    (tmp_path / "link").hardlink_to(tmp_path / "source")
    copier.copy(f"{tmp_path}/link", f"{tmp_path}/target")
    (tmp_path / "source").write_bytes(b"after")
    assert (tmp_path / "target").read_bytes() == b"before"
    assert (tmp_path / "target").stat().st_nlink == 1


def test_holes_of_a_sparse_file_are_zeros(tmp_path: Path, copier: FileCopier) -> None:
    with (tmp_path / "source").open("wb") as file:
        file.seek(PIECE * 2)
        file.write(b"end")
    copier.copy(f"{tmp_path}/source", f"{tmp_path}/target")
    assert (tmp_path / "target").read_bytes() == bytes(PIECE * 2) + b"end"


def test_existing_file_is_never_overwritten(tmp_path: Path, copier: FileCopier) -> None:
    (tmp_path / "source").write_bytes(b"new")
    (tmp_path / "target").write_bytes(b"old")
    with pytest.raises(FileExistsError):
        copier.copy(f"{tmp_path}/source", f"{tmp_path}/target")
    with pytest.raises(FileExistsError):
        copier.write(f"{tmp_path}/target", b"new")
    assert (tmp_path / "target").read_bytes() == b"old"


def test_links_are_not_followed(tmp_path: Path, copier: FileCopier) -> None:
    (tmp_path / "source").write_bytes(b"secret")
    (tmp_path / "link").symlink_to(tmp_path / "source")
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the number is checked below
        copier.copy(f"{tmp_path}/link", f"{tmp_path}/target")
    assert raised.value.errno == errno.ELOOP


def test_large_files_are_cloned(
    tmp_path: Path, copier: FileCopier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    ioctl = Ioctl()
    monkeypatch.setattr("fcntl.ioctl", ioctl)
    (tmp_path / "source").write_bytes(b"x" * SMALL)
    (tmp_path / "small").write_bytes(b"x")
    for name in ("source", "small"):
        copier.copy(f"{tmp_path}/{name}", f"{tmp_path}/copy-{name}")
    assert (tmp_path / "copy-source").read_bytes() == b"cloned"
    assert (tmp_path / "copy-small").read_bytes() == b"x"
    assert ioctl.calls == 1


@pytest.mark.parametrize("error", [errno.EOPNOTSUPP, errno.EXDEV, errno.ENOTTY, errno.EINVAL])
def test_refusal_to_clone_is_remembered(
    tmp_path: Path, copier: FileCopier, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    ioctl = Ioctl(error)
    monkeypatch.setattr("fcntl.ioctl", ioctl)
    (tmp_path / "source").write_bytes(b"x" * SMALL)
    for number in range(3):
        copier.copy(f"{tmp_path}/source", f"{tmp_path}/{number}")
        assert (tmp_path / str(number)).read_bytes() == b"x" * SMALL
    assert ioctl.calls == 1


def test_full_disk_is_not_taken_for_a_refusal(
    tmp_path: Path, copier: FileCopier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fcntl.ioctl", Ioctl(errno.ENOSPC))
    (tmp_path / "source").write_bytes(b"x" * SMALL)
    with pytest.raises(OSError) as raised:  # noqa: PT011 - the number is checked below
        copier.copy(f"{tmp_path}/source", f"{tmp_path}/target")
    assert raised.value.errno == errno.ENOSPC


def test_short_writes_are_continued(
    tmp_path: Path, copier: FileCopier, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def write_little(file: int, data: memoryview) -> int:
        return write(file, data[:1000])

    (tmp_path / "source").write_bytes(bytes(range(256)) * 100)
    monkeypatch.setattr("os.write", write_little)
    copier.copy(f"{tmp_path}/source", f"{tmp_path}/target")
    assert (tmp_path / "target").read_bytes() == bytes(range(256)) * 100


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners")
def test_copies_belong_to_the_account(tmp_path: Path) -> None:
    copier = FileCopier(ServerAccount(54321, 54322, "stranger"))
    (tmp_path / "source").write_bytes(b"x")
    copier.make_directory(f"{tmp_path}/directory")
    if not os.access(tmp_path / "directory", os.W_OK):
        pytest.skip("root has given up the capability to write everywhere")
    copier.copy(f"{tmp_path}/source", f"{tmp_path}/directory/copy")
    copier.write(f"{tmp_path}/directory/written", b"x")
    for path in ("directory", "directory/copy", "directory/written"):
        status = (tmp_path / path).stat()
        assert (status.st_uid, status.st_gid) == (54321, 54322)


def test_spread_changes_nothing_but_the_placement(tmp_path: Path) -> None:
    before = tmp_path.stat()
    spread(tmp_path)
    spread(tmp_path)
    after = tmp_path.stat()
    assert (after.st_mode, after.st_uid) == (before.st_mode, before.st_uid)
    (tmp_path / "new").mkdir()


def test_spread_accepts_every_file_system(tmp_path: Path) -> None:
    spread(tmp_path / "missing")
    spread(Path("/proc"))
