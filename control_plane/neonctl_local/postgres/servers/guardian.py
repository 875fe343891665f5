"""Stops the Postgres servers of a control plane that was killed, and removes temporary files.

The control plane starts this file as a program with a pipe as standard input. The pipe is closed
when the control plane exits, even if it is killed. The program uses only the standard library,
because it must start quickly and need little memory.
"""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

PROGRAMS = frozenset({"postgres", "pg_dump", "pg_dumpall", "psql"})
"""The names of the programs to look for in data directories."""

DONE = b"done"
"""The message of a control plane that has stopped its servers and removed its files itself."""

HAS_PROC = Path("/proc/self/cwd").exists()
"""True if the system shows the working directory of each process, as Linux does."""

_INPUT = 0
_PARENT_CHECK = 5.0
_QUIT_TIME = 5.0
_DETACH_TIME = 1.0
_REMOVALS = 16
_LONGEST_LOCK_FILE = 4096


def find_servers(root: Path) -> list[int]:
    """Return the ids of the Postgres processes whose data directory is ``root`` or below it."""
    if HAS_PROC:
        return [pid for pid, directory in _working_directories() if _is_below(directory, root)]
    return [pid for pid, directory in _commands() if _is_below(directory, root)]


def _working_directories() -> Iterator[tuple[int, str]]:
    """Yield the process id and the working directory of each Postgres process on Linux.

    A server's working directory is its data directory from the moment it starts.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process is gone, or belongs to another user
            program = (process / "exe").readlink().name.removesuffix(" (deleted)")
            if program in PROGRAMS:
                directory = str((process / "cwd").readlink())
                yield int(process.name), directory.removesuffix(" (deleted)")


def _commands() -> Iterator[tuple[int, str]]:
    """Yield the process id and the option ``-D`` of each Postgres server that ``ps`` lists."""
    command = ["/bin/ps", "-axww", "-o", "pid=,command="]
    listing = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout  # noqa: S603 - no shell
    for line in listing.decode(errors="replace").splitlines():
        pid, _, rest = line.strip().partition(" ")
        program, found, directory = rest.partition(" -D ")
        if found and Path(program).name in PROGRAMS:
            yield int(pid), directory.partition(" -c ")[0]


def _is_below(directory: str, root: Path) -> bool:
    return directory == str(root) or directory.startswith(f"{root}/")


def end_servers(root: Path) -> int:
    """Stop all servers below ``root``, and return the number of processes found.

    The servers get a few seconds for an immediate shutdown, which does not lose committed
    transactions.
    """
    root = Path(os.path.realpath(root))
    memory = dict(_shared_memory(root))
    seen: set[int] = set()
    kill_at = time.monotonic() + _QUIT_TIME
    while True:
        found = find_servers(root)
        late = time.monotonic() > kill_at
        for pid in found:
            if late or pid not in seen:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if late else signal.SIGQUIT)
        seen.update(found)
        if not found:
            break
        time.sleep(0.02)
    remove_shared_memory(memory)
    return len(seen)


def _shared_memory(root: Path) -> Iterator[tuple[int, int]]:
    """Yield the id and key of the System V segment of each server that did not shut down."""
    files = [root / "postmaster.pid", *root.glob("*/postmaster.pid")]
    for file in [*files, *root.glob("clusters/*/postmaster.pid")]:
        with suppress(OSError, ValueError, IndexError):
            # The account of the servers may have put a link or a FIFO there.
            opened = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                lines = os.read(opened, _LONGEST_LOCK_FILE).decode(errors="replace").split("\n")
            finally:
                os.close(opened)
            key, segment = lines[6].split()
            yield int(segment), int(key) % 2**32


def remove_shared_memory(segments: dict[int, int]) -> None:
    """Remove System V segments that no process uses. ``segments`` maps ids to keys.

    Postgres uses a segment of 56 bytes for each server, and a killed server leaves it behind. A
    killed process stays attached to the segment for a moment after it has disappeared.
    """
    late = time.monotonic() + _DETACH_TIME
    while segments:
        used = _users_of_segments()
        for segment, key in segments.items():
            if used.get((segment, key)) == 0:
                ctypes.CDLL(None).shmctl(segment, 0, None)  # 0 is IPC_RMID
        segments = {id: key for id, key in segments.items() if used.get((id, key))}
        if time.monotonic() > late:
            return
        time.sleep(0.01 if segments else 0)


def _users_of_segments() -> dict[tuple[int, int], int]:
    """Return the number of processes that use each segment, by its id and key."""
    users: dict[tuple[int, int], int] = {}
    with suppress(OSError):
        for line in Path("/proc/sysvipc/shm").read_text(encoding="ascii").splitlines()[1:]:
            fields = line.split()
            users[int(fields[1]), int(fields[0]) % 2**32] = int(fields[6])
    return users


def remove_clusters(directories: Iterable[Path]) -> None:
    """Remove data directories. Errors are ignored: the next control plane removes the rest.

    Some file systems wait for the disk at each file, so threads remove directories in parallel.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - the guardian starts faster

    with ThreadPoolExecutor(_REMOVALS) as threads:
        for directory in directories:
            threads.submit(shutil.rmtree, directory, ignore_errors=True)


def wait_for_end(parent: int) -> bool:
    """Wait until the control plane exits. Return True if it has cleaned up itself."""
    while True:
        if select.select([_INPUT], [], [], _PARENT_CHECK)[0]:
            return os.read(_INPUT, 16) == DONE
        if os.getppid() != parent:  # a child process of the control plane holds the pipe open
            return False


def main(root: str, *temporary: str) -> None:
    """Wait until the control plane exits, then clean up unless it has done so itself."""
    parent = os.getppid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if wait_for_end(parent):
        return
    end_servers(Path(root))
    time.sleep(0.1)  # a process that was being started had no working directory yet
    end_servers(Path(root))
    for directory in map(Path, temporary):
        remove_clusters(directory.glob("data/clusters/*"))
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
