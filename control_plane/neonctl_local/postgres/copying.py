"""Copies of data directories."""

import os
import re
import shutil
import struct
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.cloning import FileCopier, spread
from neonctl_local.postgres.errors import FULL, MORE_SPACE, ClusterError, DiskFullError
from neonctl_local.postgres.files import open_directory, open_file, read_file

EMPTY: Final = frozenset(
    {
        "pg_dynshmem",
        "pg_notify",
        "pg_replslot",
        "pg_serial",
        "pg_snapshots",
        "pg_stat_tmp",
        "pg_wal/archive_status",
    }
)
"""The directories that are copied without their contents, which each server creates itself."""

LEFT_OUT: Final = re.compile(r"pgsql_tmp|pg_internal\.init|t\d+_\d|\.s\.PGSQL\.")
"""The names of files that are not copied: temporary files, sockets, and caches of a server."""

CONTROL_FILE: Final = "global/pg_control"
LEFT_OUT_BY_DIRECTORY: Final = {
    "": frozenset({"postmaster.pid", "postmaster.opts", "current_logfiles"}),
    "global": frozenset({"pg_control"}),  # copied last
}

REQUIRED: Final = ("PG_VERSION", CONTROL_FILE)
"""The files by which a data directory is recognized."""

SEGMENT: Final = re.compile(r"[0-9A-F]{24}")
"""The name of a WAL segment."""

PAGE_HEADER: Final = struct.Struct("=HHIQ")
"""The start of a WAL segment: magic number, flags, timeline, and the segment's position."""


def copy_cluster(
    source: Path,
    target: Path,
    *,
    account: ServerAccount | None,
    wal: Sequence[str] | None = None,
) -> None:
    """Copy a data directory whose server is stopped, or in backup mode.

    In backup mode, ``wal`` names the WAL segments to copy; segments that are needed later can be
    added with copy_wal(). Without ``wal``, all segments with contents are copied. The copy belongs
    to the account. Raise ClusterError, and leave nothing behind, if the copy fails.
    """
    try:
        copy_directory(source, target, account=account, wal=wal)
    except OSError as error:
        raise failure(source, target, error) from error


def copy_directory(
    source: Path,
    target: Path,
    *,
    account: ServerAccount | None,
    wal: Sequence[str] | None = None,
) -> None:
    """Copy like copy_cluster(), but raise OSError if files cannot be read or written."""
    partial = target.with_name(f"{target.name}.partial")
    try:
        remove(partial)
        spread(target.parent)
        _TreeCopy(source, partial, account, wal=wal).run()
        partial.rename(target)
    except BaseException:
        with suppress(OSError):  # the first error is reported
            remove(partial)
        raise


def copy_wal(
    source: Path, target: Path, names: Iterable[str], *, account: ServerAccount | None
) -> None:
    """Copy WAL segments into the copy of a data directory. Existing segments are replaced.

    Raise ClusterError if a segment does not exist, or cannot be copied.
    """
    copier = FileCopier(account)
    try:
        for name in names:
            (target / "pg_wal" / name).unlink(missing_ok=True)
            with open_directory(source / "pg_wal") as old, open_directory(target / "pg_wal") as new:
                copier.copy(name, name, parents=(old, new))
    except OSError as error:
        raise failure(source, target, error) from error


def remove(directory: Path) -> None:
    """Remove a directory with its contents. A missing directory is not an error."""
    while True:
        try:
            shutil.rmtree(directory)
        except FileNotFoundError:  # another process may have removed a file
            if directory.exists():
                continue
        return


def disk_usage(directory: Path) -> int:
    """Return how many bytes a directory's files use on disk. Files may vanish during the count."""
    used = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                used += Path(parent, name).lstat().st_blocks * 512
    return used


def has_contents(segment: os.DirEntry[str], directory: int) -> bool:
    """Return whether a WAL segment in an open directory contains records of its own.

    Postgres renames old segments to use them again later. The first page of such a file still gives
    its old position in the WAL, which differs from the position in the name.
    """
    size = segment.stat(follow_symlinks=False).st_size
    with os.fdopen(open_file(segment.name, directory), "rb") as file:
        header = file.read(PAGE_HEADER.size)
    if len(header) < PAGE_HEADER.size:
        return False
    position: int = PAGE_HEADER.unpack(header)[3]
    return position == (int(segment.name[8:16], 16) << 32) + int(segment.name[16:], 16) * size


def is_unlogged(name: str, numbers: Collection[str]) -> bool:
    """Return whether a file holds contents of an unlogged table with one of these file numbers."""
    number = re.split(r"[._]", name, maxsplit=1)[0]
    return number in numbers and name != f"{number}_init"


def failure(source: Path, target: Path, error: OSError) -> ClusterError:
    """Return the error to report when a copy failed."""
    if error.errno in FULL:
        return DiskFullError(
            f"the disk of {str(target.parent)!r} is full: it has no space for a copy of cluster"
            f" {source.name!r}. {MORE_SPACE}"
        )
    return ClusterError(
        f"cluster {source.name!r} was not copied: {error.strerror}: {error.filename!r}"
    )


class _TreeCopy:
    """The copy of one data directory."""

    def __init__(
        self,
        source: Path,
        target: Path,
        account: ServerAccount | None,
        *,
        wal: Sequence[str] | None,
    ) -> None:
        self._source = source
        self._target = target
        self._wal = None if wal is None else frozenset(wal)
        self._running = wal is not None or (source / "postmaster.pid").exists()
        self._empty = EMPTY | {"pg_subtrans"} if self._running else EMPTY
        self._account = account
        self._copier = FileCopier(account)

    def run(self) -> None:
        for name in REQUIRED:
            if not (self._source / name).is_file():
                raise ClusterError(f"{str(self._source)!r} is not a data directory: no file {name}")
        self._copier.make_directory(str(self._target))
        with open_directory(self._source) as source, open_directory(self._target) as target:
            self._copy_contents("", source, target)
            copy_wal(self._source, self._target, self._wal or (), account=self._account)
            self._copy_control_file(source, target)

    def _copy_directory(self, name: str, path: str, parents: tuple[int, int]) -> None:
        """Copy a directory and its subdirectories, without the files that a copy must not have.

        Each directory is opened relative to its parent, so a link that replaces it is never
        followed.
        """
        self._copier.make_directory(name, parents[1])
        if path not in self._empty:
            with (
                open_directory(name, parents[0]) as source,
                open_directory(name, parents[1]) as target,
            ):
                self._copy_contents(path, source, target)

    def _copy_contents(self, relative: str, source: int, target: int) -> None:
        with os.scandir(source) as entries:
            selected = list(self._selected(relative, entries, source))
        for entry in selected:
            path = f"{relative}/{entry.name}" if relative else entry.name
            with self._vanishing(entry.name, path):
                if entry.is_dir(follow_symlinks=False):
                    self._copy_directory(entry.name, path, (source, target))
                elif entry.is_file(follow_symlinks=False):
                    self._copier.copy(entry.name, entry.name, parents=(source, target))
                else:
                    raise ClusterError(
                        f"'{self._source}/{path}' is a link or a special file:"
                        " tablespaces outside the data directory cannot be copied"
                    )

    def _selected(
        self, relative: str, entries: Iterable[os.DirEntry[str]], directory: int
    ) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of a directory that belong in a copy."""
        if relative == "pg_wal":
            yield from (entry for entry in entries if self._is_selected_wal(entry, directory))
            return
        left_out = LEFT_OUT_BY_DIRECTORY.get(relative, frozenset())
        kept = [e for e in entries if not (LEFT_OUT.match(e.name) or e.name in left_out)]
        if unlogged := self._unlogged(relative, kept):
            kept = [e for e in kept if not is_unlogged(e.name, unlogged)]
        yield from kept

    def _is_selected_wal(self, entry: os.DirEntry[str], directory: int) -> bool:
        if not SEGMENT.fullmatch(entry.name):
            return True
        if self._wal is not None:
            return False  # copied by name
        return self._running or has_contents(entry, directory)

    def _unlogged(self, relative: str, entries: Iterable[os.DirEntry[str]]) -> frozenset[str]:
        """Return the file numbers of unlogged tables, if the server is running.

        When the copy's server starts, it recreates these tables from their ``…_init`` files.
        """
        if not (self._running and relative.startswith("base/")):
            return frozenset()
        names = (entry.name for entry in entries)
        return frozenset(name.removesuffix("_init") for name in names if name.endswith("_init"))

    @contextmanager
    def _vanishing(self, name: str, path: str) -> Generator[None]:
        """Ignore files that a running server has deleted.

        This is safe, because the WAL contains the deletion of their table or database. Other errors
        are raised with the complete path.
        """
        try:
            yield
        except OSError as error:
            if error.filename == name:
                error.filename = f"{self._source}/{path}"
            if not (self._running and isinstance(error, FileNotFoundError)):
                raise

    def _copy_control_file(self, source: int, target: int) -> None:
        """Copy the control file, which a running server may write while it is being read."""
        directory, name = CONTROL_FILE.split("/")
        with (
            self._vanishing(name, CONTROL_FILE),
            open_directory(directory, source) as reading,
            open_directory(directory, target) as writing,
        ):
            contents, previous = read_file(name, reading), b""
            while contents != previous:
                contents, previous = read_file(name, reading), contents
            self._copier.write(name, contents, writing)
