"""The processes below another one, and their memory (Linux only)."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_PROCESSES = Path("/proc")


class Process(NamedTuple):
    """A running process."""

    pid: int
    parent: int
    name: str


def running() -> list[Process]:
    """Return all processes of the machine."""
    found: list[Process] = []
    for folder in _PROCESSES.iterdir():
        if folder.name.isdecimal():
            try:
                stat = (folder / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:  # the process has ended
                continue
            # The name is in parentheses and may contain any character.
            name, _, rest = stat.partition("(")[2].rpartition(")")
            found.append(Process(int(folder.name), int(rest.split()[1]), name))
    return found


def tree(root: int) -> list[Process]:
    """Return a process and everything that it started, directly or not."""
    processes = running()
    pids, size = {root}, 0
    while len(pids) > size:
        size = len(pids)
        pids |= {process.pid for process in processes if process.parent in pids}
    return [process for process in processes if process.pid in pids]


def megabytes(processes: Iterable[Process]) -> float:
    """Return the memory of processes. Shared pages are divided among the processes."""
    total = 0
    for process in processes:
        try:
            text = (_PROCESSES / str(process.pid) / "smaps_rollup").read_text(encoding="ascii")
        except OSError:  # the process has ended
            continue
        (line,) = (line for line in text.splitlines() if line.startswith("Pss:"))
        total += int(line.split()[1]) * 1024
    return total / 1e6
