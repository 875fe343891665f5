"""Copies of data directories that can be restored after a server has changed them."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.cloning import FileCopier

MARK: Final = 1
"""The time of modification of files that no server has written, in nanoseconds since 1970.

A write sets the current time. Without the mark, a write directly after the copy would be invisible,
because the clocks of file systems stand still for some milliseconds.
"""

_NO_FILE: Final = -1


class _Entry(NamedTuple):
    """A file, by the properties that change when it is written or replaced, or a directory."""

    is_directory: bool
    inode: int = 0
    size: int = 0
    modified: int = 0

    def is_still(self, known: "_Entry | None") -> bool:
        """Return whether this is the same file, with any contents, or still a directory."""
        return known is not None and self.inode == known.inode


class RestorableCopy:
    """A copy of a data directory whose server is stopped. All methods block.

    Create it before the first start of the copy.
    """

    def __init__(self, source: Path, copy: Path, account: ServerAccount | None) -> None:
        self._source = source
        self._copy = copy
        self._account = account
        for path, entry in _scan(copy):
            if not entry.is_directory:
                _mark(copy / path)
        self._entries = dict(_scan(copy))

    def restore(self) -> None:
        """Give each file that was changed the contents of the source, which must not have changed.

        No server may run on the copy. Raise OSError if a file cannot be written.
        """
        current = dict(_scan(self._copy))
        for path, entry in current.items():
            if not entry.is_still(self._entries.get(path)):
                _remove(self._copy / path, entry)
        copier = FileCopier(self._account)
        for path, entry in self._entries.items():  # each directory precedes its files
            found = current.get(path)
            if found != entry:
                self._entries[path] = self._put_back(path, entry, found, copier)

    def _put_back(
        self, path: str, entry: _Entry, found: _Entry | None, copier: FileCopier
    ) -> _Entry:
        source, target = self._source / path, self._copy / path
        if entry.is_directory:
            copier.make_directory(str(target))
            return entry
        if found is not None and found.is_still(entry):
            copier.overwrite(str(source), str(target), entry.inode)
        else:
            copier.copy(str(source), str(target))
        _mark(target)
        return _entry(target.lstat())


def _scan(root: Path) -> Iterator[tuple[str, _Entry]]:
    """Yield the relative path of everything below a directory, each directory before its files."""
    waiting = [""]
    while waiting:
        relative = waiting.pop()
        with os.scandir(root / relative) as found:
            for one in found:
                path = f"{relative}{one.name}"
                if one.is_dir(follow_symlinks=False):
                    waiting.append(f"{path}/")
                    yield path, _Entry(is_directory=True)
                else:
                    yield path, _entry(one.stat(follow_symlinks=False))


def _entry(status: os.stat_result) -> _Entry:
    # A link can have the number of a removed file.
    inode = status.st_ino if stat.S_ISREG(status.st_mode) else _NO_FILE
    return _Entry(False, inode, status.st_size, status.st_mtime_ns)  # noqa: FBT003 - a row


def _mark(file: Path) -> None:
    os.utime(file, ns=(MARK, MARK), follow_symlinks=False)


def _remove(path: Path, entry: _Entry) -> None:
    """Remove a file, or a directory whose parent may be gone already."""
    if entry.is_directory:
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
