"""Files in data directories: reads that do not follow links, and complete writes.

The servers' account can replace every file in a data directory, while the control plane may run as
root. So only regular files are read, and a new file is given to the account before it gets its
final name.
"""

import errno
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.errors import FULL, ClusterError, DiskFullError


def open_file(path: str | Path, directory: int | None = None) -> int:
    """Open a regular file for reading, in an open directory if one is given.

    Raise OSError for a link or a special file.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a FIFO would block
    file = os.open(path, flags, dir_fd=directory)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return file


def read_file(path: str | Path, directory: int | None = None) -> bytes:
    """Return the content of a regular file. Raise OSError for a link or a special file."""
    with os.fdopen(open_file(path, directory), "rb") as file:
        return file.read()


@contextmanager
def open_directory(path: str | Path, directory: int | None = None) -> Generator[int]:
    """Open a directory, in an open directory if one is given. Raise OSError for a link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
    opened = os.open(path, flags, dir_fd=directory)
    try:
        yield opened
    finally:
        os.close(opened)


def write_file(path: Path, text: str, *, account: ServerAccount | None, durable: bool) -> None:
    """Replace a file with one that only ``account`` can read. Raise ClusterError if that fails."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if durable:
                os.fsync(file.fileno())
            if account is not None:
                os.fchown(file.fileno(), account.uid, account.gid)
        temporary.replace(path)
        if durable:
            _sync_directory(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            kind = DiskFullError if error.errno in FULL else ClusterError
            raise kind(f"{str(path)!r} cannot be written: {error.strerror}") from error
        raise


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
