"""Kills a process before each statement of a migration.

``python -m control_plane.tests.storage.killed`` starts it.
The argument is a data file. Each attempt migrates a copy of it in a process of its own. After the
kill, the next start must find every record, and keep one complete backup.
"""

import os
import shutil
import signal
import sqlite3
import sys
from pathlib import Path

from control_plane.tests.storage.files import NEXT, lost, tables
from neonctl_local.storage import schema
from neonctl_local.storage.data_files import connect

_connect = sqlite3.connect


class Tracing(sqlite3.Connection):
    """A connection that kills the process before its statement number ``fatal``."""

    fatal = 0
    count = 0

    def count_statement(self, _statement: str) -> None:
        Tracing.count += 1
        if Tracing.count == Tracing.fatal:
            os.kill(os.getpid(), signal.SIGKILL)


def trace(database: Path, timeout: float = 5, isolation_level: None = None) -> sqlite3.Connection:
    """Connect as ``sqlite3.connect`` does."""
    connection = _connect(
        database, timeout=timeout, isolation_level=isolation_level, factory=Tracing
    )
    connection.set_trace_callback(connection.count_statement)
    return connection


def migrate(path: Path, fatal: int) -> int:
    """Migrate a file in another process. Return its status, which is negative if it was killed."""
    process = os.fork()
    if process == 0:
        Tracing.fatal = fatal
        sqlite3.connect = trace  # type: ignore[assignment]  # has the options that are used
        connect(path).close()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main(file: Path) -> None:
    """Kill the migration of a file before each statement, and write the number of kills."""
    before = tables(file)
    schema.MIGRATIONS = (*schema.MIGRATIONS, NEXT)  # type: ignore[misc]  # a schema to come
    killed = 0
    while True:
        directory = file.with_name(f"attempt-{killed + 1}")
        directory.mkdir()
        copy = Path(shutil.copy(file, directory))
        status = migrate(copy, killed + 1)
        connect(copy).close()
        after = tables(copy)
        assert lost(before, after) == []
        assert len(after["invented"][1]) == len(before["projects"][1])
        (backup,) = directory.glob("*backup*")
        assert tables(backup) == before
        if status == 0:
            break
        assert status == -signal.SIGKILL, status
        killed += 1
    sys.stdout.write(f"{killed}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
