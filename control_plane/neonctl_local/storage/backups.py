"""Backups of data files, made before a migration."""

import filecmp
import os
import sqlite3
import sys
from contextlib import closing
from itertools import count
from pathlib import Path


def back_up(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """Copy an open data file to ``FILE.schema-VERSION.backup``, and return the path of the copy.

    Only the owner can read the copy. An earlier backup is never replaced: if its content differs,
    the new name ends in a number. Raises OSError or sqlite3.Error.
    """
    incomplete = path.with_name(f"{path.name}.backup.tmp")
    incomplete.unlink(missing_ok=True)  # of a process that was killed
    try:
        os.close(os.open(incomplete, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(incomplete)) as copy:
            connection.backup(copy)
        backup = _name(path, version, incomplete)
        if not backup.exists():
            incomplete.replace(backup)
            sync_directory(path.parent)
    finally:
        incomplete.unlink(missing_ok=True)
    return backup


def _name(path: Path, version: int, content: Path) -> Path:
    """Return the first name that is free, or that has the same content already."""
    for number in count(1):
        suffix = "" if number == 1 else f"-{number}"
        backup = path.with_name(f"{path.name}.schema-{version}{suffix}.backup")
        if not backup.exists() or filecmp.cmp(backup, content, shallow=False):
            return backup
    raise AssertionError("there is always a free name")


def sync_directory(directory: Path) -> None:
    """Wait until the disk has the names of the files of a directory."""
    if sys.platform == "win32":  # a directory cannot be opened
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
