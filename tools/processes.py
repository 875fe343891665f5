"""The processes of the machine, those that belong together, and their memory (Linux only)."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_PROCESSES = Path("/proc")


class Process(NamedTuple):
    """A running process."""

    pid: int
    parent: int
    name: str

    @property
    def command(self) -> str:
        """The command line, separated by spaces; empty if the process has finished."""
        try:
            return (_folder(self) / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
        except OSError:
            return ""


def running() -> list[Process]:
    """Return all processes of the machine."""
    found: list[Process] = []
    for folder in _PROCESSES.iterdir():
        if folder.name.isdecimal():
            try:
                stat = (folder / "stat").read_text(encoding="ascii", errors="replace")
            except OSError:  # the process has finished
                continue
            # The name is in parentheses and may contain any character.
            name, _, rest = stat.partition("(")[2].rpartition(")")
            state, parent, *_ = rest.split()
            if state != "Z":
                found.append(Process(int(folder.name), int(parent), name))
    return found


def tree(root: int) -> list[Process]:
    """Return a process and everything that it started, directly or not."""
    processes = running()
    pids, size = {root}, 0
    while len(pids) > size:
        size = len(pids)
        pids |= {process.pid for process in processes if process.parent in pids}
    return [process for process in processes if process.pid in pids]


def running_in(directory: Path) -> list[Process]:
    """Return the processes whose working directory is below a directory, or that mention it."""
    return [process for process in running() if _is_in(process, directory)]


def megabytes(processes: Iterable[Process]) -> float:
    """Return the memory of processes. Shared pages are divided among the processes."""
    total = 0
    for process in processes:
        try:
            text = (_folder(process) / "smaps_rollup").read_text(encoding="ascii")
        except OSError:  # the process has finished
            continue
        (line,) = (line for line in text.splitlines() if line.startswith("Pss:"))
        total += int(line.split()[1]) * 1024
    return total / 1e6


def _is_in(process: Process, directory: Path) -> bool:
    try:
        works_in = (_folder(process) / "cwd").readlink()
    except OSError:
        return False
    return works_in.is_relative_to(directory) or str(directory) in process.command


def _folder(process: Process) -> Path:
    return _PROCESSES / str(process.pid)
