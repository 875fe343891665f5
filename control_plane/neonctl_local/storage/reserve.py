"""The reserve of a data file: disk space that only deletions may use when the disk is full."""

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

SIZE: Final = 4 << 20
"""The size of a reserve in bytes.

SQLite's log grows to 4 MB before it is written back and reused. Deleting a project with 1,000
branches adds 0.7 MB to it, and their index, which is replaced as a whole, has 50 kB.
"""
_STEP: Final = 1 << 20
"""The bytes that a start or one attempt of a deletion gets. Other programs may take them before."""
_ROOM: Final = SIZE
"""The free space from which the disk is not full any more, and the reserve is filled again."""


class Reserve:
    """A file beside the data file. All methods block. Only one process may use it at a time."""

    def __init__(self, data: Path) -> None:
        self._file = data.with_name(f"{data.name}.reserve")

    def fill(self) -> bool:
        """Take the missing space. Return False if it is missing, or if the disk is nearly full."""
        missing = SIZE - self.size()
        return self._free() >= missing + _ROOM and self._grow(SIZE)

    def spend(self) -> bool:
        """Free a part of the space. Return False if nothing is left."""
        size = self.size()
        with suppress(OSError):
            if size:
                os.truncate(self._file, max(0, size - _STEP))
                return True
        return False

    def allow_start(self) -> None:
        """Free a part of the space if the disk has none for the files of a start."""
        if self._free() < _STEP:
            self.spend()

    def take_back(self, size: int) -> None:
        """Take what a deletion has left of the space, up to the former size of the reserve."""
        self._grow(min(size, self.size() + self._free()))

    def size(self) -> int:
        """Return the bytes that are reserved now."""
        try:
            return self._file.stat().st_size
        except OSError:
            return 0

    def _free(self) -> int:
        try:
            return shutil.disk_usage(self._file.parent).free
        except OSError:
            return 0

    def _grow(self, size: int) -> bool:
        with suppress(OSError):  # a quota, or a read-only file system: the writes report it
            missing = size - self.size()
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                if missing > 0 and sys.platform == "linux":
                    os.posix_fallocate(descriptor, 0, size)
                elif missing > 0:  # elsewhere, only written bytes take space
                    file.write(bytes(missing))
            return True
        return False
