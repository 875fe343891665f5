"""Data directories with applied migrations, which the cache keeps for later test runs."""

import os
import re
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.cache import (
    CHECKSUMS,
    PARTIAL,
    REMEDY,
    is_intact,
    kept_directories,
    locked,
    replacing,
    write_private,
)
from neonctl_local.postgres.copying import copy_directory, disk_usage, remove
from neonctl_local.postgres.errors import FULL, DiskFullError
from neonctl_local.postgres.template import Template, entry_name, password_file

LIMIT: Final = 1024**3
"""How many bytes all entries may use together. The most recently used entry always stays."""

WAIT_LIMIT: Final = 600.0
"""The longest wait for another test run that is making the same entry, in seconds."""

_KEY: Final = re.compile(r"[0-9a-f]{64}")


@contextmanager
def template_lock(key: str) -> Generator[str]:
    """Hold the lock of a template in the user's cache, to load it, or to make and keep it.

    This ensures that only one process makes the template of a key; see ``Tenant.load_template`` and
    ``Tenant.keep_template``. Yield an empty string, or the reason why the cache cannot be used: no
    directory is writable, or another process has held the lock for too long. A killed process
    releases its lock.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(_lock(_directory(), key), WAIT_LIMIT))
        except OSError as error:
            yield str(error)
        else:
            yield ""


def find_migrated(key: str, installation: Installation) -> Template | None:
    """Return the entry for a key, and record its use. Return None if there is no intact entry."""
    try:
        entry = _entry(key, installation)
        if not is_intact(entry):
            return None
        os.utime(entry / CHECKSUMS)
    except OSError:
        return None
    return Template(entry / "data")


def keep_migrated(data: Path, key: str, installation: Installation) -> None:
    """Copy a stopped server's data directory to the entry for a key. Drop entries beyond LIMIT.

    Raise OSError or ClusterError, and leave nothing behind, if the directory cannot be copied.
    """
    entry = _entry(key, installation)
    try:
        with replacing(entry) as new:
            copy_directory(data, new / "data", account=None)
            password = password_file(data).read_text(encoding="utf-8")
            write_private(password_file(new / "data"), password)
    except OSError as error:
        if error.errno not in FULL:
            raise
        directory = str(entry.parent)
        raise DiskFullError(f"the disk of {directory!r} is full. {REMEDY}") from error
    _drop_oldest(entry.parent)


def _directory() -> Path:
    """Return the first writable directory for entries. Raise OSError if there is none."""
    for directory in kept_directories():
        migrated = directory / "migrated"
        with suppress(OSError):  # the next one is used
            migrated.mkdir(exist_ok=True, mode=0o700)
            if os.access(migrated, os.W_OK):
                return migrated
    raise FileNotFoundError("the user has no directory for the cache")


def _entry(key: str, installation: Installation) -> Path:
    if not _KEY.fullmatch(key):
        raise ValueError(f"the key of migrations is {key!r}: expected a SHA-256 in hexadecimal")
    return _directory() / f"{key}-{entry_name(installation)}"


def _lock(directory: Path, key: str) -> Path:
    return directory / f"{key}.lock"


def _drop_oldest(directory: Path) -> None:
    """Drop the least recently used entries beyond LIMIT, and those of killed processes."""
    entries = [path for path in directory.iterdir() if path.is_dir()]
    used = 0
    for number, entry in enumerate(sorted(entries, key=_used_at, reverse=True)):
        used += disk_usage(entry)
        if number and (used > LIMIT or entry.suffix == PARTIAL):
            _drop(entry)


def _used_at(entry: Path) -> float:
    try:
        return (entry / CHECKSUMS).stat().st_mtime
    except OSError:  # it is incomplete
        return 0.0


def _drop(entry: Path) -> None:
    """Remove an entry and its lock, unless a process is reading or making the entry."""
    lock = _lock(entry.parent, entry.name.partition("-")[0])
    with suppress(OSError), locked(lock, time_limit=0.0):
        remove(entry)
        lock.unlink()
