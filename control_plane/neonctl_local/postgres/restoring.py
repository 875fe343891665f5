"""Copies of data directories that can be restored after a server has changed them."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, NamedTuple

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.cloning import FileCopier
from neonctl_local.postgres.files import open_directory, read_file

MARK: Final = 1
"""The modification time of files that no server has written, in nanoseconds since 1970.

A write sets the current time. Without the mark, a write directly after the copy might not change
the time, because file systems update their clocks only every few milliseconds.
"""

CACHE: Final = "pg_internal.init"
"""The file in which the first session of a database stores what it has read from the catalogs.

Each start of a server removes it. Each database has such a file, and so have the shared catalogs.
"""

_NO_FILE: Final = -1


class _Entry(NamedTuple):
    """A directory, or a file with the properties that change when it is written or replaced."""

    is_directory: bool
    inode: int = 0
    size: int = 0
    modified: int = 0

    def is_still(self, known: "_Entry | None") -> bool:
        """Return whether ``known`` is the same file, even if changed, or also a directory."""
        return known is not None and self.inode == known.inode


class RestorableCopy:
    """A copy of a data directory whose server is stopped. All methods block.

    Create this object before the copy's first start.
    """

    def __init__(self, source: Path, copy: Path, account: ServerAccount | None) -> None:
        self._source = source
        self._copy = copy
        self._account = account
        for path, entry in _scan(copy):
            if not entry.is_directory:
                _mark(copy / path)
        self._entries = dict(_scan(copy))
        self._caches: dict[Path, bytes] = {}

    def restore(self) -> None:
        """Undo all changes to the copy. The source, whose files are used, must not have changed.

        No server may be running on the copy. Raise OSError if a file cannot be written.
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

    def keep_caches(self) -> None:
        """Store the server's catalog caches. Call this before a client can change the catalogs."""
        with suppress(OSError):
            for file in (self._copy / "global" / CACHE, *self._copy.glob(f"base/*/{CACHE}")):
                self._caches[file.parent.relative_to(self._copy)] = read_file(file)

    def put_caches_back(self) -> bool:
        """Write the stored caches to the restored copy. Return False if there are none.

        The caches are still valid, because the catalogs are the same again. This takes 1 ms.
        Opening a session in each database would take 10 ms of processor time.
        """
        copier = FileCopier(self._account)
        new = f"{CACHE}.new"
        for path, contents in self._caches.items():
            with suppress(OSError), ExitStack() as stack:
                directory: int | None = None
                for part in (str(self._copy), *path.parts):
                    directory = stack.enter_context(open_directory(part, directory))
                copier.write(new, contents, directory)
                os.rename(new, CACHE, src_dir_fd=directory, dst_dir_fd=directory)
        return bool(self._caches)

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
    # A link can have the inode number of a removed file.
    inode = status.st_ino if stat.S_ISREG(status.st_mode) else _NO_FILE
    return _Entry(False, inode, status.st_size, status.st_mtime_ns)  # noqa: FBT003 - a row


def _mark(file: Path) -> None:
    os.utime(file, ns=(MARK, MARK), follow_symlinks=False)


def _remove(path: Path, entry: _Entry) -> None:
    """Remove a file or a directory, which may already be gone with its parent."""
    if entry.is_directory:
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
