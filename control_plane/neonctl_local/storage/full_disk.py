"""Detects that the disk of a data file is full, and keeps a reserve for deletions."""

import os
import shutil
import sqlite3
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from neonctl_local.errors import StorageFullError

_CODES: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        # The error of a quota, or of a limit on the size of a file.
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_DIR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
    }
)
RESERVE_SIZE: Final = 4 << 20
"""The size of a reserve in bytes.

SQLite's log grows to 4 MB before it is written back and reused. Deleting a project with 1,000
branches adds 0.7 MB to the log, and the new ``clusters.json`` for their real databases takes 50 kB.
"""
_STEP: Final = 1 << 20
"""The number of bytes that a start, or one attempt at a deletion, takes from the reserve.

Other programs may use the freed space first.
"""
_ROOM: Final = RESERVE_SIZE
"""The number of free bytes, besides the reserve, at which the disk no longer counts as full."""


@contextmanager
def reported(path: Path | None) -> Generator[None, None, None]:
    """Raise StorageFullError if the block cannot write to a data file because the disk is full."""
    try:
        yield
    except sqlite3.Error as error:
        if is_full(error):
            raise StorageFullError(_message(path, error)) from error
        raise


def is_full(error: sqlite3.Error) -> bool:
    """Return whether SQLite could not write because the disk is full."""
    return getattr(error, "sqlite_errorcode", None) in _CODES


def _message(path: Path | None, error: sqlite3.Error) -> str:
    place = "the memory" if path is None else f"the disk of the data file {path.name!r}"
    return f"nothing was changed, because {place} is full ({error}): free space and retry"


class Reserve:
    """A file beside the data file, whose space only deletions may use when the disk is full.

    All methods block. Only one process may use it at a time.
    """

    def __init__(self, data: Path) -> None:
        self._file = data.with_name(f"{data.name}.reserve")

    def fill(self) -> bool:
        """Reserve the missing space. Return False if that fails, or if the disk is nearly full."""
        missing = RESERVE_SIZE - self.size()
        return self._free() >= missing + _ROOM and self._grow(RESERVE_SIZE)

    def spend(self) -> bool:
        """Free a part of the reserve. Return False if nothing is left."""
        size = self.size()
        with suppress(OSError):
            if size:
                os.truncate(self._file, max(0, size - _STEP))
                return True
        return False

    def allow_start(self) -> None:
        """Free a part of the reserve if the disk lacks space for the files that a start creates."""
        if self._free() < _STEP:
            self.spend()

    def take_back(self, size: int) -> None:
        """Fill the reserve again up to its former size, with the space that a deletion has left."""
        self._grow(min(size, self.size() + self._free()))

    def size(self) -> int:
        """Return the size of the reserve in bytes."""
        try:
            return self._file.stat().st_size
        except OSError:
            return 0

    def _free(self) -> int:
        try:
            return shutil.disk_usage(self._file.parent).free
        except OSError:
            return 0

    def _grow(self, size: int) -> bool:
        with suppress(OSError):  # a quota, or a read-only file system: the writes report it
            missing = size - self.size()
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                if missing > 0 and sys.platform == "linux":
                    os.posix_fallocate(descriptor, 0, size)
                elif missing > 0:  # on other systems, only written bytes take up space
                    file.write(bytes(missing))
            return True
        return False
