"""Recognizes that a data file cannot be written, because its disk is full."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
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


@contextmanager
def reported(path: Path | None) -> Generator[None, None, None]:
    """Raise StorageFullError if a data file cannot be written."""
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
