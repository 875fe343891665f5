"""The cache of data directories: private directories, locks, and checksums that detect damage."""

import atexit
import os
import stat
import sys
import tempfile
import time
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from neonctl_local.postgres.copying import remove

if sys.platform != "win32":
    import fcntl

LOCK_TIME_LIMIT: Final = 90.0
"""The longest wait for another process that is making a template, in seconds."""

REMEDY: Final = "Free disk space" + (
    "" if sys.platform == "darwin" else ", or set XDG_CACHE_HOME to another directory"
)
"""The advice in error messages when the cache's disk is full."""

_LOCK_PAUSE: Final = 0.02

CHECKSUMS: Final = "checksums.json"
"""The file with the checksums of a cache entry's other files. It is written last."""

PARTIAL: Final = ".partial"
"""The suffix of a cache entry that is still being written."""


class _Contents(msgspec.Struct, frozen=True):
    """The directories of an entry, and the size and CRC-32 of each file, by relative path."""

    directories: list[str]
    files: dict[str, tuple[int, int]]


def cache_directories() -> Iterator[Path]:
    """Yield the user's directories for the cache, best first. Usually, the first one works.

    The last directory is temporary, and is removed when this process exits.
    """
    yield from kept_directories()
    temporary = Path(tempfile.mkdtemp(prefix="neonctl-async-cache-"))
    atexit.register(remove, temporary)
    yield temporary


def kept_directories() -> Iterator[Path]:
    """Yield the cache directories that outlive this process, best first."""
    for directory in _places():
        with suppress(OSError):  # not writable: the next one is used
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            if _is_private(directory):
                yield directory


@contextmanager
def replacing(entry: Path) -> Generator[Path]:
    """Yield a directory for an entry's new contents. On success, seal it and replace the entry.

    An incomplete directory never has the entry's name. The caller must hold the entry's lock.
    """
    partial = entry.with_name(f"{entry.name}{PARTIAL}")
    remove(partial)
    try:
        partial.mkdir(mode=0o700)
        yield partial
        seal(partial)
        remove(entry)
        partial.rename(entry)
    finally:
        remove(partial)


def seal(entry: Path) -> None:
    """Complete an entry by writing its checksums."""
    contents = msgspec.json.encode(_contents(entry))
    write_private(entry / CHECKSUMS, contents.decode())


def is_intact(entry: Path) -> bool:
    """Return whether an entry is complete, unchanged, and readable by its owner only."""
    try:
        written = msgspec.json.decode((entry / CHECKSUMS).read_bytes(), type=_Contents)
        return _contents(entry) == written
    except (OSError, msgspec.MsgspecError):
        return False


@contextmanager
def locked(file: Path, time_limit: float | None = None) -> Generator[None]:
    """Hold the lock of a file, which only one process can hold at a time.

    Raise TimeoutError if another process has not released the lock within ``time_limit`` seconds.
    The default is LOCK_TIME_LIMIT.
    """
    limit = LOCK_TIME_LIMIT if time_limit is None else time_limit
    deadline = time.monotonic() + limit
    while (opened := try_lock(file)) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"another process has held {file} for {limit:g} s")
        time.sleep(_LOCK_PAUSE)
    try:
        yield
    finally:
        os.close(opened)  # this unlocks the file


def try_lock(file: Path) -> int | None:
    """Lock a file, creating it if it does not exist, and return its descriptor.

    Return None if another process has locked the file, or has removed it in the meantime.
    """
    opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if lock_file(opened) and os.path.samestat(os.fstat(opened), file.stat()):
            return opened
    except FileNotFoundError:
        pass
    except BaseException:
        os.close(opened)
        raise
    os.close(opened)
    return None


def lock_file(opened: int) -> bool:
    """Lock an open file, or return False if another process has locked it."""
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def write_private(file: Path, text: str) -> None:
    """Write a new file that only its owner may read, whatever the umask."""
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(opened, "w", encoding="utf-8") as stream:
        os.fchmod(opened, 0o600)
        stream.write(text)


def _places() -> Iterator[Path]:
    """Yield the user's cache directory, if there is a home directory, and then a temporary one."""
    with suppress(RuntimeError):  # the user has no home directory
        if sys.platform == "darwin":
            cache = Path.home() / "Library" / "Caches"
        else:
            chosen = os.environ.get("XDG_CACHE_HOME", "")
            cache = Path(chosen) if chosen.startswith("/") else Path.home() / ".cache"
        yield cache / "neonctl-async" / "postgres"
    yield Path(tempfile.gettempdir()) / f"neonctl-async-{os.geteuid()}"


def _is_private(path: Path) -> bool:
    """Return whether only this user may read and write a file or a directory."""
    status = path.lstat()
    return status.st_uid == os.geteuid() and not stat.S_IMODE(status.st_mode) & 0o077


def _contents(entry: Path) -> _Contents:
    """Return the contents of an entry. Raise OSError if other users may read one of its files."""
    contents = _Contents([], {})
    pending = [""]
    while pending:
        relative = pending.pop()
        contents.directories.append(relative)
        with os.scandir(entry / relative) as found:
            for item in sorted(found, key=lambda item: item.name):
                path = f"{relative}/{item.name}"[not relative :]
                if not _is_private(Path(item)):
                    raise PermissionError(f"{item.path} is not private")
                if item.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif path != CHECKSUMS:
                    data = Path(item).read_bytes()
                    contents.files[path] = (len(data), zlib.crc32(data))
    return contents
