"""Migrated data directories in the cache."""

import errno
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from control_plane.tests.postgres.programs import write_installation
from neonctl_local.postgres import migrated as module
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.cache import CHECKSUMS, REMEDY, is_intact
from neonctl_local.postgres.copying import disk_usage
from neonctl_local.postgres.errors import DiskFullError
from neonctl_local.postgres.migrated import find_migrated, keep_migrated, template_lock
from neonctl_local.postgres.template import password_file

KEYS = [letter * 64 for letter in "abc"]
HOLD = """
import sys, time
from neonctl_local.postgres.migrated import template_lock
with template_lock(sys.argv[1]) as problem:
    print(problem, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The empty cache, which only this test uses."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "neonctl-async" / "postgres" / "migrated"


@pytest.fixture
def installation(tmp_path: Path) -> Installation:
    return Installation(write_installation(tmp_path / "bin", "17.2"), (17, 2))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with its password."""
    data = tmp_path / "data"
    for folder in (data, data / "global", data / "pg_wal"):
        folder.mkdir()
    (data / "PG_VERSION").write_text("17")
    (data / "global" / "pg_control").write_text("control")
    password_file(data).write_text("sesame")
    return data


def keep(data: Path, key: str, installation: Installation, *, used_at: int) -> None:
    keep_migrated(data, key, installation)
    template = find_migrated(key, installation)
    assert template is not None
    os.utime(template.directory.parent / CHECKSUMS, (used_at, used_at))


def found(installation: Installation) -> list[str]:
    return [key for key in KEYS if find_migrated(key, installation)]


def test_kept_directory_is_found_with_its_password(
    cache: Path, data: Path, installation: Installation
) -> None:
    assert find_migrated(KEYS[0], installation) is None
    keep_migrated(data, KEYS[0], installation)
    template = find_migrated(KEYS[0], installation)
    assert template is not None
    assert template.directory.is_relative_to(cache)
    assert (template.directory / "PG_VERSION").read_text() == "17"
    assert password_file(template.directory).read_text() == "sesame"
    assert not (template.directory / "PG_VERSION").samefile(data / "PG_VERSION")


@pytest.mark.usefixtures("cache")
def test_other_key_or_version_has_its_own_entry(data: Path, installation: Installation) -> None:
    keep_migrated(data, KEYS[0], installation)
    assert found(installation) == KEYS[:1]
    assert found(Installation(installation.directory, (17, 3))) == []


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("damaged", [CHECKSUMS, "data/PG_VERSION", "data.password"])
def test_damaged_entry_is_not_found_until_it_is_replaced(
    data: Path, installation: Installation, damaged: str
) -> None:
    keep_migrated(data, KEYS[0], installation)
    template = find_migrated(KEYS[0], installation)
    assert template is not None
    os.truncate(template.directory.parent / damaged, 1)
    assert found(installation) == []
    keep_migrated(data, KEYS[0], installation)
    assert found(installation) == KEYS[:1]


def test_entries_that_were_not_used_for_longest_are_dropped(
    cache: Path, data: Path, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(data, KEYS[0], installation, used_at=2)
    keep(data, KEYS[1], installation, used_at=1)
    with template_lock(KEYS[1]):
        pass
    sizes = [disk_usage(entry) for entry in cache.iterdir() if entry.is_dir()]
    monkeypatch.setattr(module, "LIMIT", 2 * max(sizes))
    keep_migrated(data, KEYS[2], installation)
    assert found(installation) == [KEYS[0], KEYS[2]]
    assert not list(cache.glob("*.lock"))


@pytest.mark.usefixtures("cache")
def test_entry_larger_than_the_limit_stays_alone(
    data: Path, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMIT", 0)
    keep_migrated(data, KEYS[0], installation)
    keep_migrated(data, KEYS[1], installation)
    assert found(installation) == [KEYS[1]]


@pytest.mark.usefixtures("cache")
def test_entry_that_another_process_uses_is_not_dropped(
    data: Path, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMIT", 0)
    keep_migrated(data, KEYS[0], installation)
    with template_lock(KEYS[0]):
        keep_migrated(data, KEYS[1], installation)
        assert found(installation) == KEYS[:2]


def test_failed_copy_leaves_nothing_and_keeps_the_old_entry(
    cache: Path, data: Path, installation: Installation
) -> None:
    keep_migrated(data, KEYS[0], installation)
    password_file(data).unlink()
    with pytest.raises(FileNotFoundError):
        keep_migrated(data, KEYS[0], installation)
    [entry] = cache.iterdir()
    assert is_intact(entry)


def test_full_disk_is_named(
    cache: Path, data: Path, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(*_arguments: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "copy_directory", write)
    with pytest.raises(DiskFullError) as raised:
        keep_migrated(data, KEYS[0], installation)
    assert str(raised.value) == f"the disk of {str(cache)!r} is full. {REMEDY}"
    assert list(cache.iterdir()) == []


def test_rest_of_a_killed_process_is_removed(
    cache: Path, data: Path, installation: Installation
) -> None:
    keep_migrated(data, KEYS[0], installation)
    half = cache / f"{KEYS[1]}-17.2.partial"
    half.mkdir()
    keep_migrated(data, KEYS[0], installation)
    assert not half.exists()
    assert found(installation) == KEYS[:1]


@pytest.mark.process
def test_lock_of_a_killed_process_is_free(cache: Path) -> None:
    command = [sys.executable, "-c", HOLD, KEYS[0]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\n"
        assert [path.suffix for path in cache.iterdir()] == [".lock"]
        process.send_signal(signal.SIGKILL)
    with template_lock(KEYS[0]) as problem:
        assert not problem


@pytest.mark.usefixtures("cache")
def test_lock_that_is_held_for_too_long_means_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT_LIMIT", 0.0)
    with (
        template_lock(KEYS[0]) as first,
        template_lock(KEYS[0]) as second,
        template_lock(KEYS[1]) as other,
    ):
        assert (first, other) == ("", "")
        assert re.fullmatch(r"another process has held .*\.lock for 0 s", second)


@pytest.mark.parametrize("is_directory", [True, False])
def test_entry_is_kept_in_the_next_directory_if_the_first_is_not_writable(
    cache: Path,
    data: Path,
    installation: Installation,
    monkeypatch: pytest.MonkeyPatch,
    is_directory: bool,
) -> None:
    def access(path: Path, _mode: int) -> bool:
        return path != cache

    cache.parent.mkdir(parents=True, mode=0o700)
    if is_directory:
        cache.mkdir()
        monkeypatch.setattr(os, "access", access)  # root may write
    else:
        cache.touch()
    with template_lock(KEYS[0]) as problem:
        assert not problem
        keep_migrated(data, KEYS[0], installation)
    template = find_migrated(KEYS[0], installation)
    assert template is not None
    assert not template.directory.is_relative_to(cache)


def test_user_without_a_cache_has_no_entry(
    data: Path, installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "kept_directories", lambda: iter(()))
    with template_lock(KEYS[0]) as problem:
        assert problem == "the user has no directory for the cache"
    assert find_migrated(KEYS[0], installation) is None
    with pytest.raises(FileNotFoundError, match="no directory for the cache"):
        keep_migrated(data, KEYS[0], installation)


def test_key_is_a_hash(installation: Installation) -> None:
    with pytest.raises(ValueError, match=r"key of migrations is '\.\./a': expected a SHA-256"):
        find_migrated("../a", installation)
