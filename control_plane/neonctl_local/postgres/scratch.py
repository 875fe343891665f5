"""Temporary directories that the servers' account can enter."""

import os
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from neonctl_local.postgres.account import ServerAccount, check_reachable
from neonctl_local.postgres.cache import lock_file, locked
from neonctl_local.postgres.cloning import spread
from neonctl_local.postgres.copying import remove

PREFIX: Final = "neonctl-async-initdb-"
LOCK: Final = "lock"
"""The file that is locked until the directory is removed."""

SHORTEST_AGE: Final = 5.0
"""The age, in seconds, below which directories are not removed: they may not be locked yet."""


@contextmanager
def scratch_directory(account: ServerAccount | None) -> Generator[Path]:
    """Make a private temporary directory, and remove it on exit.

    Raise PostgresUnavailableError if the account may not enter the system's temporary directory.
    """
    system = Path(tempfile.gettempdir())
    check_reachable(system, account)
    directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=system))
    try:
        with locked(directory / LOCK):
            spread(directory)
            yield directory
    finally:
        remove(directory)


def remove_abandoned(account: ServerAccount | None) -> None:
    """Remove the temporary directories of killed processes."""
    for directory in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # another process removes it
            if _is_abandoned(directory, account):
                remove(directory)


def _is_abandoned(directory: Path, account: ServerAccount | None) -> bool:
    """Return whether no process uses a directory of this user or of the account."""
    status = directory.lstat()
    owners = {os.geteuid(), account.uid if account else os.geteuid()}
    if status.st_uid not in owners or time.time() - status.st_mtime < SHORTEST_AGE:
        return False
    try:
        opened = os.open(directory / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return True  # the process was killed before it made the file
    try:
        return lock_file(opened)
    finally:
        os.close(opened)
