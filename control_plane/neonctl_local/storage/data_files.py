"""Opens data files, restricts their permissions, and migrates older schemas after a backup.

The caller must hold the lock of the file: see ``locks.py``.
"""

import filecmp
import logging
import os
import sqlite3
import stat
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

from neonctl_local.storage import full_disk, schema

_logger: Final = logging.getLogger("neonctl_local")
_BUSY_MILLISECONDS: Final = 2000
"""The longest wait for another program that writes to the file, such as ``sqlite3``."""
_LONG_LOG: Final = 16 << 20
"""The size at which the write-ahead log counts as long, in bytes. SQLite keeps about 4 MB."""
_LOG_MILLISECONDS: Final = 50
"""How long the writer waits for reads that use a long log, such as those of a paused export."""
_LOCKED: Final = "database is locked"
_NO_DATABASE: Final = "file is not a database"


def connect(path: Path | None, *, durable: bool = False) -> sqlite3.Connection:
    """Open a data file in the newest schema, for reading and writing.

    If ``path`` is None, open a database in memory. If other users can read the file, it becomes
    readable by its owner only. A file of an older schema is migrated, after a backup. With
    ``durable``, a commit returns only when the data is on the disk. Raises RuntimeError if the file
    cannot be used.
    """
    if path is None:
        return _connect_memory()
    file = path.resolve()  # the files beside it are named after the file, not after a link to it
    try:
        _create(file)
        # Wait at every statement: an export that starts or ends locks the file for a moment.
        wait = _BUSY_MILLISECONDS / 1000
        connection = sqlite3.connect(file, timeout=wait, isolation_level=None)
        try:
            _prepare(connection, file, durable=durable)
        except BaseException:
            connection.close()
            raise
    except (sqlite3.Error, OSError, ValueError) as error:
        raise RuntimeError(f"cannot keep data in {path}: {_reason(error)}") from error
    return connection


def _reason(error: sqlite3.Error | OSError | ValueError) -> str:
    if str(error) == _LOCKED:
        return "another program is using it: stop it, or use another file"
    if str(error) == _NO_DATABASE:
        return f"{error}: use another file"
    if isinstance(error, sqlite3.Error) and full_disk.is_full(error):
        return f"the disk is full ({error})"
    return str(error)


def _connect_memory() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(connection, schema.newest())
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open an existing data file for reading, without migrating its schema.

    It can be read while another connection, or another process, writes to it. Any thread may use
    the connection, but only one at a time. Raises sqlite3.Error if the file cannot be opened.
    """
    # SQLite must be able to remove the log after a kill, although this connection only reads.
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=_BUSY_MILLISECONDS / 1000,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA query_only = ON")
    return connection


@contextmanager
def new_file(path: Path) -> Generator[sqlite3.Connection, None, None]:
    """Open a new data file without tables. It gets its name only if the block succeeds.

    Raises OSError if the file already contains data.
    """
    path = path.resolve()
    for file in (path, path.with_name(f"{path.name}-wal")):
        if file.exists() and (not file.is_file() or file.stat().st_size):
            raise OSError(f"{file} exists already: name a new file")
    incomplete = path.with_name(f"{path.name}.import.tmp")
    journal = path.with_name(f"{incomplete.name}-journal")
    try:
        for leftover in (incomplete, journal):  # of a process that was killed
            leftover.unlink(missing_ok=True)
        _create(incomplete)
        with closing(sqlite3.connect(incomplete, isolation_level=None)) as connection:
            yield connection
        incomplete.replace(path)
        sync_directory(path.parent)
    finally:
        incomplete.unlink(missing_ok=True)
        journal.unlink(missing_ok=True)


def checkpoint_long_log(connection: sqlite3.Connection, path: Path) -> None:
    """Empty the write-ahead log of a file if it is long.

    SQLite does this itself only at a moment without reads, which may never come on a busy server.
    This function waits briefly for the running reads, so that later reads do not need the log.
    """
    with suppress(OSError, sqlite3.Error):  # a full disk: a later check tries again
        if path.with_name(f"{path.name}-wal").stat().st_size > _LONG_LOG:
            connection.execute(f"PRAGMA busy_timeout = {_LOG_MILLISECONDS}")
            try:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            finally:
                connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")


def _create(path: Path) -> None:
    """Create a file that only its owner can read, if there is none."""
    if not path.exists():
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    elif not path.is_file():
        raise OSError("it is not a regular file: use another file")
    elif not os.access(path, os.R_OK | os.W_OK):  # SQLite would open it for reading only
        raise OSError("you may not write to it: change its permissions, or use another file")


def _narrow(path: Path) -> None:
    """Remove other users' access to a file and to the files of its log."""
    if sys.platform == "win32":  # there, a file has the permissions of its directory
        return
    modes: list[str] = []
    for suffix in ("", "-wal", "-shm"):
        file = path.with_name(f"{path.name}{suffix}")
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(file.stat().st_mode)
            if mode & 0o077:
                _remove_access(file, mode)
                modes.append(f"{mode:04o}")
    if modes:
        narrowed = "other users could use %s (mode %s): now only its owner can"
        _logger.warning(narrowed, path, modes[0])


def _remove_access(file: Path, mode: int) -> None:
    try:
        file.chmod(mode & 0o700)
    except PermissionError:
        raise OSError(
            f"other users can use {file} (mode {mode:04o}), and only its owner can change that: "
            "use another file"
        ) from None


def _prepare(connection: sqlite3.Connection, path: Path, *, durable: bool) -> None:
    """Configure a connection, and migrate the file to the newest schema."""
    version = schema.version_of(connection)
    _narrow(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    connection.execute("PRAGMA foreign_keys = ON")
    if version == schema.newest():
        return
    backup = back_up(connection, path, version) if version else None
    schema.migrate(connection, schema.newest())
    if backup is not None:
        _logger.warning(
            "migrated %s from schema %d to schema %d: the backup is %s",
            *(path, version, schema.newest(), backup),
        )


def back_up(connection: sqlite3.Connection, path: Path, version: int) -> Path:
    """Copy an open data file to ``FILE.schema-VERSION.backup``, and return the path of the copy.

    Only the owner can read the copy. An earlier backup is never replaced: if its content differs,
    the new name ends in a number. Raises OSError or sqlite3.Error if the copy fails.
    """
    incomplete = path.with_name(f"{path.name}.backup.tmp")
    incomplete.unlink(missing_ok=True)  # of a process that was killed
    try:
        os.close(os.open(incomplete, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(sqlite3.connect(incomplete)) as copy:
            connection.backup(copy)
        backup = _backup_name(path, version, incomplete)
        if not backup.exists():
            incomplete.replace(backup)
            sync_directory(path.parent)
    finally:
        incomplete.unlink(missing_ok=True)
    return backup


def _backup_name(path: Path, version: int, content: Path) -> Path:
    """Return the first name that is free, or whose file already has the same content."""
    for number in count(1):
        suffix = "" if number == 1 else f"-{number}"
        backup = path.with_name(f"{path.name}.schema-{version}{suffix}.backup")
        if not backup.exists() or filecmp.cmp(backup, content, shallow=False):
            return backup
    raise AssertionError("there is always a free name")


def sync_directory(directory: Path) -> None:
    """Wait until the names of the files in a directory are on the disk."""
    if sys.platform == "win32":  # a directory cannot be opened
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
