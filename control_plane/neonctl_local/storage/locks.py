"""The lock of a data file, which makes sure that only one process uses the file.

The lock is on a file beside the data file, such as ``control-plane.db.lock``, which names the
process that holds it. The operating system releases the lock when the process ends, even after
``kill -9``.
"""

import os
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_RELEASE_SECONDS: Final = 2.0
"""How long to wait for the lock of a process that is gone, in seconds.

If the process was killed while it was starting a program, that program holds the lock briefly.
"""
_LOCKED_BYTE: Final = 1 << 30
"""The position of the byte that Windows locks.

It lies far beyond the content, because no other process can read a locked byte.
"""


class FileLock:
    """The lock of a data file. Create it with :func:`lock_data_file`."""

    def __init__(self, file: Path, descriptor: int) -> None:
        self._file = file
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock, so that other processes can use the data file."""
        if sys.platform != "win32":  # Windows cannot delete an open file
            with suppress(OSError):  # if the directory is read-only now, the file stays
                self._file.unlink()
        os.close(self._descriptor)


def lock_data_file(path: Path) -> FileLock:
    """Lock a data file. Raise RuntimeError if another process uses it, or if locking fails."""
    resolved = path.resolve()  # one lock, whatever symbolic link names the file
    file = resolved.with_name(f"{resolved.name}.lock")
    try:
        return _lock_data_file(path, file)
    except FileNotFoundError as error:
        raise RuntimeError(
            f"cannot keep data in {path}: the directory {resolved.parent} does not exist: create "
            "it, or use another file"
        ) from error
    except OSError as error:
        raise RuntimeError(
            f"cannot keep data in {path}: the lock {file} cannot be used: "
            f"{error.strerror}. Move it away or change its permissions, or use another file"
        ) from error


def _lock_data_file(path: Path, file: Path) -> FileLock:
    deadline = time.monotonic() + _RELEASE_SECONDS
    while (descriptor := _try_lock(file)) is None:
        owner = _Owner.read(file)
        if owner.is_alive or time.monotonic() > deadline:
            raise RuntimeError(
                f"cannot keep data in {path}: {owner} uses it; connect to its server, or use "
                "another file"
            )
        time.sleep(0.02)
    with suppress(OSError):  # on a full disk, the lock works without the process's name
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()} {socket.gethostname()}\n".encode())
    return FileLock(file, descriptor)


class _Owner:
    """The process that a lock file names."""

    def __init__(self, process: int | None, machine: str) -> None:
        self._process = process
        self._machine = machine

    @classmethod
    def read(cls, file: Path) -> "_Owner":
        """Read the process from a lock file, which is empty for a moment after its creation."""
        with suppress(OSError, ValueError):
            process, _, machine = file.read_text(encoding="utf-8").strip().partition(" ")
            return cls(int(process), machine)
        return cls(None, "")

    def __str__(self) -> str:
        if self._process is None:
            return "another process"
        if not self._is_local:  # in another container, or on a machine that shares the disk
            return f"process {self._process} on {self._machine}"
        if self._process == os.getpid():
            return f"this process ({self._process})"
        return f"process {self._process}"

    @property
    def is_alive(self) -> bool:
        """True if the process exists, as far as this process can know."""
        if self._process is None:
            return False
        if not self._is_local or sys.platform == "win32":  # os.kill ends it on Windows
            return True
        try:
            os.kill(self._process, 0)
        except PermissionError:
            return True
        except (ProcessLookupError, OverflowError):
            return False
        return True

    @property
    def _is_local(self) -> bool:
        return self._machine == socket.gethostname()


def _try_lock(file: Path) -> int | None:
    """Lock a file. Return None if it is already locked, or if its owner has just removed it."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    try:
        _lock(descriptor)
        if os.path.samestat(os.fstat(descriptor), file.stat()):
            return descriptor
    except (BlockingIOError, PermissionError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


def _lock(descriptor: int) -> None:
    """Lock an open file. Raise BlockingIOError or PermissionError if another process holds it."""
    if sys.platform == "win32":
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
