"""The memory that all requests and results may hold together."""

import ctypes
import threading
from contextlib import suppress
from typing import Final

from neonctl_local.errors import ApiError

_MIB: Final = 1 << 20
_MMAP_THRESHOLD: Final = -3
"""The number of the M_MMAP_THRESHOLD option in glibc's ``malloc.h``."""


class MemoryFullError(ApiError):
    """A request needs more memory than is left. The response is a 503."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            503,
            f"requests and results need more than the {limit / _MIB:.0f} MiB that all of them may "
            "hold together: send this one again later, let it be smaller, or raise the limit with "
            f"--connections '{{\"memory\": {2 * limit}}}'",
            headers={"Retry-After": "1"},
        )


def return_large_blocks() -> None:
    """Make this process return the memory of large requests and results to the system.

    By default, glibc keeps blocks of up to 32 MiB in the heap of each thread to reuse them: after
    five simultaneous requests of 20 MB, it kept 200 MB. Other C libraries have no such option.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _MIB)


class Memory:
    """Counts bytes up to a limit. All threads of the server can use it at the same time."""

    def __init__(self, limit: int) -> None:
        self.limit: Final = limit
        self._used = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """The number of bytes that are reserved."""
        return self._used

    def add(self, size: int) -> None:
        """Reserve bytes. Raise MemoryFullError if fewer are left."""
        with self._lock:
            if self._used + size > self.limit:
                raise MemoryFullError(self.limit)
            self._used += size

    def remove(self, size: int) -> None:
        """Release bytes."""
        with self._lock:
            self._used -= size


class Reservation:
    """The memory of one request. After :meth:`release`, :meth:`add` reserves nothing."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._size = 0
        self._is_released = False
        self._lock = threading.Lock()

    def add(self, size: int) -> None:
        """Reserve more bytes. Raise MemoryFullError if fewer are left."""
        with self._lock:
            if not self._is_released:
                self._memory.add(size)
                self._size += size

    def remove(self, size: int) -> None:
        """Release some of the bytes."""
        with self._lock:
            size = min(size, self._size)
            self._memory.remove(size)
            self._size -= size

    def release(self) -> None:
        """Release all bytes, at the end of the request."""
        with self._lock:
            self._memory.remove(self._size)
            self._size, self._is_released = 0, True
