"""The cache of templates."""

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from neonctl_local.postgres import cache
from neonctl_local.postgres.cache import (
    CHECKSUMS,
    cache_directories,
    is_intact,
    locked,
    seal,
    write_private,
)

only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory. Beside it is an empty system directory for temporary files."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr("sys.platform", "linux")
    return tmp_path / "home"


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """A sealed entry."""
    entry = tmp_path / "entry"
    (entry / "data" / "empty").mkdir(parents=True)
    for path in (entry, entry / "data", entry / "data" / "empty"):
        path.chmod(0o700)
    write_private(entry / "data" / "file", "contents")
    seal(entry)
    return entry


def test_cache_is_in_the_home_directory(home: Path) -> None:
    directory = next(cache_directories())
    assert directory == home / ".cache" / "neonctl-async" / "postgres"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_cache_on_macos(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    expected = home / "Library" / "Caches" / "neonctl-async" / "postgres"
    assert next(cache_directories()) == expected


def test_chosen_cache_directory_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "chosen"))
    assert next(cache_directories()) == home / "chosen" / "neonctl-async" / "postgres"


def test_relative_cache_directory_is_ignored(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert next(cache_directories()).is_relative_to(home / ".cache")


def test_second_choice_is_a_directory_for_temporary_files(home: Path) -> None:
    _, second, third = cache_directories()
    assert second == home.parent / "temporary" / f"neonctl-async-{os.geteuid()}"
    assert third.parent == second.parent
    for directory in (second, third):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_user_without_a_home_directory_has_a_cache(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", fail)
    assert next(cache_directories()).parent == home.parent / "temporary"


def test_home_directory_that_is_a_file_is_skipped(home: Path) -> None:
    home.rmdir()
    home.touch()
    assert next(cache_directories()).parent == home.parent / "temporary"


@pytest.mark.usefixtures("home")
def test_directory_that_others_may_read_is_skipped() -> None:
    first = next(cache_directories())
    first.chmod(0o755)
    assert next(cache_directories()) != first


def test_link_is_skipped(home: Path) -> None:
    second = home.parent / "temporary" / f"neonctl-async-{os.geteuid()}"
    (home.parent / "private").mkdir(mode=0o700)
    second.symlink_to(home.parent / "private")
    assert second not in list(cache_directories())


@only_root
@pytest.mark.usefixtures("home")
def test_directory_of_another_user_is_skipped() -> None:
    first = next(cache_directories())
    os.chown(first, 54321, 54321)
    assert next(cache_directories()) != first


def test_sealed_entry_is_intact(entry: Path) -> None:
    assert is_intact(entry)


DAMAGE: list[Callable[[Path], object]] = [
    lambda entry: (entry / CHECKSUMS).unlink(),
    lambda entry: (entry / CHECKSUMS).write_bytes(b""),
    lambda entry: (entry / CHECKSUMS).write_bytes(b'{"files": {}}'),
    lambda entry: (entry / CHECKSUMS).write_bytes((entry / CHECKSUMS).read_bytes()[:-9]),
    lambda entry: os.truncate(entry / "data" / "file", 3),
    lambda entry: (entry / "data" / "file").write_text("Contents"),
    lambda entry: (entry / "data" / "file").unlink(),
    lambda entry: (entry / "data" / "file").chmod(0o644),
    lambda entry: (entry / "data").chmod(0o755),
    lambda entry: (entry / "data" / "empty").rmdir(),
    lambda entry: write_private(entry / "data" / "added", ""),
    lambda entry: (entry / "data" / "link").symlink_to("file"),
    lambda entry: (entry / "data").rename(entry / "other"),
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_noticed(entry: Path, damage: Callable[[Path], object]) -> None:
    damage(entry)
    assert not is_intact(entry)


@only_root
def test_file_of_another_user_is_noticed(entry: Path) -> None:
    os.chown(entry / "data" / "file", 54321, -1)
    assert not is_intact(entry)


def test_missing_entry_is_not_intact(tmp_path: Path) -> None:
    assert not is_intact(tmp_path / "missing")


def test_lock_excludes_others_until_it_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LOCK_TIME_LIMIT", 0.0)
    for _ in range(2):
        with locked(tmp_path / "lock"):
            with pytest.raises(TimeoutError, match="another process has held"):
                with locked(tmp_path / "lock"):
                    pass


def test_private_file_is_not_followed_or_overwritten(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_private(tmp_path / "file", "secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600
    (tmp_path / "link").symlink_to(tmp_path / "missing")
    for name in ("file", "link"):
        with pytest.raises(FileExistsError):
            write_private(tmp_path / name, "other")
    assert (tmp_path / "file").read_text() == "secret"
