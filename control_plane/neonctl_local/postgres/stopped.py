"""What the files of a stopped server show."""

import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from neonctl_local.postgres.copying import CONTROL_FILE
from neonctl_local.postgres.files import open_directory, read_file

PAGE: Final = 8192
"""The size of a page of Postgres, in bytes."""

_STATE: Final = struct.Struct("=I")
_STATE_OFFSET: Final = 16
_SHUT_DOWN: Final = 1
"""The state in ``pg_control`` after a clean stop, before which the server wrote all pages."""

_COMMIT: Final = struct.Struct("=qH")
"""The commit of one transaction: its time in microseconds since 2000, or 0, and its origin."""

_COMMITS: Final = PAGE // _COMMIT.size
_PAGES: Final = 32
"""How many pages a file of ``pg_commit_ts`` has, unless it is the newest one."""

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)


def stopped_cleanly(data: Path) -> bool:
    """Return whether the server wrote everything to its files before it ended."""
    [state] = _STATE.unpack_from(read_file(data / CONTROL_FILE), _STATE_OFFSET)
    return bool(state == _SHUT_DOWN)


def newest_commit(data: Path, first: int) -> datetime:
    """Return the time of the newest commit, provided that its transaction is ``first`` or later.

    If there was no such commit, the result is the time of an earlier commit, or the year 2000.
    """
    file, page = divmod(first // _COMMITS, _PAGES)
    newest = 0
    with open_directory(data / "pg_commit_ts") as directory:
        while True:
            try:
                pages = read_file(f"{file:04X}", directory)
            except FileNotFoundError:
                return _EPOCH + timedelta(microseconds=newest)
            for start in range(page * PAGE, len(pages), PAGE):
                commits = _COMMIT.iter_unpack(pages[start : start + _COMMITS * _COMMIT.size])
                newest = max(newest, *(time for time, _ in commits))
            file, page = file + 1, 0
