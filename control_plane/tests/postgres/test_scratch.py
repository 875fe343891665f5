"""Temporary directories."""

import os
import time
from pathlib import Path

import pytest

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.cache import locked
from neonctl_local.postgres.errors import PostgresUnavailableError
from neonctl_local.postgres.scratch import LOCK, PREFIX, remove_abandoned, scratch_directory


@pytest.fixture
def system(open_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's directory for temporary files."""
    monkeypatch.setattr("tempfile.tempdir", str(open_directory))
    return open_directory


def abandoned(system: Path, name: str, *, age: float = 60) -> Path:
    """Make a directory as a killed process leaves it."""
    directory = system / f"{PREFIX}{name}"
    (directory / "data").mkdir(parents=True)
    (directory / LOCK).touch()
    os.utime(directory, (time.time() - age, time.time() - age))
    return directory


def test_directory_is_private_and_removed(system: Path) -> None:
    with scratch_directory(None) as directory:
        assert directory.parent == system
        assert directory.stat().st_mode & 0o777 == 0o700
        (directory / "file").touch()
    assert not list(system.iterdir())


def test_directory_is_removed_after_an_error(system: Path) -> None:
    with pytest.raises(ValueError, match="an error"):
        with scratch_directory(None):
            raise ValueError("an error")
    assert not list(system.iterdir())


def test_account_that_cannot_enter_is_refused(system: Path) -> None:
    system.chmod(0o700)
    with pytest.raises(PostgresUnavailableError, match="cannot enter"):
        with scratch_directory(ServerAccount(54321, 54321, "stranger")):
            pass
    assert not list(system.iterdir())


def test_directories_of_killed_processes_are_removed(system: Path) -> None:
    abandoned(system, "a")
    (abandoned(system, "b") / LOCK).unlink()
    os.utime(system / f"{PREFIX}b", (0, 0))
    remove_abandoned(None)
    assert not list(system.iterdir())


def test_directories_in_use_are_kept(system: Path) -> None:
    new = abandoned(system, "new", age=0)
    used = abandoned(system, "used")
    other = system / "other"
    other.mkdir()
    with locked(used / LOCK):
        remove_abandoned(None)
    assert set(system.iterdir()) == {new, used, other}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change owners")
def test_directories_of_other_users_are_kept(system: Path) -> None:
    for name, owner in [("stranger", 54321), ("account", 54322), ("own", 0)]:
        os.chown(abandoned(system, name), owner, owner)
    remove_abandoned(ServerAccount(54322, 54322, "account"))
    assert [path.name for path in system.iterdir()] == [f"{PREFIX}stranger"]
