"""Copies of files, which share disk blocks with the originals if the file system supports it."""

import errno
import os
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.files import open_directory, open_file

if sys.platform != "win32":
    import fcntl

SMALL: Final = 8 * 1024
"""The size in bytes, one Postgres page, below which files are copied instead of cloned."""

PIECE: Final = 256 * 1024
"""The number of bytes that are read and written at once."""

# The ioctl requests to a file system on Linux.
FICLONE: Final = 0x40049409
GET_FLAGS: Final = 0x80086601
SET_FLAGS: Final = 0x40086602
TOP_OF_HIERARCHY: Final = 0x00020000

_FLAGS: Final = struct.Struct("i4x")
_CANNOT_CLONE: Final = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTTY, errno.EOPNOTSUPP, errno.EPERM, errno.EXDEV}
)


class FileCopier:
    """Copies files from one file system to another, or within a file system.

    Only the owner of a copy may read it. The owner is ``account``, if it is given. Once the file
    system has refused to clone a file, further files are not cloned either.
    """

    def __init__(self, account: ServerAccount | None) -> None:
        self._account = account
        self._clones = sys.platform == "linux"
        self._buffer = memoryview(bytearray(PIECE))

    def make_directory(self, path: str, parent: int | None = None) -> None:
        """Make a new directory that only its owner may enter.

        ``parent`` is the descriptor of an open directory that the path is relative to.
        """
        os.mkdir(path, 0o700, dir_fd=parent)
        with open_directory(path, parent) as directory:
            os.fchmod(directory, 0o700)
            if self._account:
                os.fchown(directory, self._account.uid, self._account.gid)

    def copy(
        self, source: str, target: str, *, parents: tuple[int | None, int | None] = (None, None)
    ) -> None:
        """Copy a regular file. The target must not exist.

        ``parents`` are the descriptors of open directories that the two paths are relative to.
        """
        reading = open_file(source, parents[0])
        try:
            with self._new_file(target, parents[1]) as writing:
                self._copy_contents(reading, writing)
        finally:
            os.close(reading)

    def overwrite(self, source: str, target: str, inode: int) -> None:
        """Overwrite an existing file, whose inode number is known, with the contents of another.

        Creating a new file would take several times as long, because ext4 has to find an inode and
        blocks for it. Raise OSError if another file has replaced the target.
        """
        reading = open_file(source)
        try:
            writing = os.open(target, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                if os.fstat(writing).st_ino != inode:
                    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), target)
                os.ftruncate(writing, os.fstat(reading).st_size)
                self._copy_contents(reading, writing)
            finally:
                os.close(writing)
        finally:
            os.close(reading)

    def write(self, target: str, contents: bytes, parent: int | None = None) -> None:
        """Write a new file. The target must not exist."""
        with self._new_file(target, parent) as writing:
            _write(writing, memoryview(contents))

    @contextmanager
    def _new_file(self, path: str, parent: int | None) -> Generator[int]:
        """Open a new file, whose mode does not depend on the process's umask."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        file = os.open(path, flags, 0o600, dir_fd=parent)
        try:
            os.fchmod(file, 0o600)
            if self._account:
                os.fchown(file, self._account.uid, self._account.gid)
            yield file
        finally:
            os.close(file)

    def _copy_contents(self, reading: int, writing: int) -> None:
        start = self._buffer[:SMALL]
        size = os.readv(reading, [start])
        if size == SMALL and self._clone(reading, writing):
            return
        _write(writing, start[:size])
        while size := os.readv(reading, [self._buffer]):
            _write(writing, self._buffer[:size])

    def _clone(self, reading: int, writing: int) -> bool:
        """Try to clone the file, and return whether this succeeded."""
        if self._clones:
            try:
                fcntl.ioctl(writing, FICLONE, reading)
            except OSError as error:
                if error.errno not in _CANNOT_CLONE:
                    raise
                self._clones = False
        return self._clones


def spread(directory: Path) -> None:
    """Ask ext4 to place the subdirectories of a directory far from each other.

    ext4 without a journal, which is common in virtual machines, avoids reusing the inodes of
    recently deleted files. Without this request, a copy that follows the deletion of other copies
    takes up to 10 times as long.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError):  # other file systems do not have this flag
        file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            (flags,) = _FLAGS.unpack(fcntl.ioctl(file, GET_FLAGS, bytes(_FLAGS.size)))
            if not flags & TOP_OF_HIERARCHY:
                fcntl.ioctl(file, SET_FLAGS, _FLAGS.pack(flags | TOP_OF_HIERARCHY))
        finally:
            os.close(file)


def _write(file: int, contents: memoryview) -> None:
    while contents:
        contents = contents[os.write(file, contents) :]
