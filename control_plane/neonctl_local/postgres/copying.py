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
from neonctl_local.postgres.errors import FULL, ClusterError, DiskFullError

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
"""The directories that a copy has without their contents: a server starts with new files."""

LEFT_OUT: Final = re.compile(r"pgsql_tmp|pg_internal\.init|t\d+_\d|\.s\.PGSQL\.")
"""The start of the names of temporary files, sockets, and caches that a server makes again."""

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
"""The start of a WAL segment: magic number, flags, time line, and the segment's position."""


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
        raise failure(source, error) from error


def copy_directory(
    source: Path,
    target: Path,
    *,
    account: ServerAccount | None,
    wal: Sequence[str] | None = None,
) -> None:
    """Do the work of copy_cluster(), and raise OSError if files cannot be read or written."""
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
            segment = target / "pg_wal" / name
            segment.unlink(missing_ok=True)
            copier.copy(str(source / "pg_wal" / name), str(segment))
    except OSError as error:
        raise failure(source, error) from error


def remove(directory: Path) -> None:
    """Remove a directory with its contents. A missing directory is not an error."""
    while True:
        try:
            shutil.rmtree(directory)
        except FileNotFoundError:  # of the directory, or of a file that another process removed
            if directory.exists():
                continue
        return


def disk_usage(directory: Path) -> int:
    """Return the bytes that the files below a directory use. Files may vanish meanwhile."""
    used = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            with suppress(OSError):
                used += Path(parent, name).lstat().st_blocks * 512
    return used


def has_contents(segment: os.DirEntry[str]) -> bool:
    """Return whether a WAL segment has records of its own.

    Postgres renames old segments to use them again later. The first page of such a file still has
    its old position in the WAL, which differs from the position in the name.
    """
    size = segment.stat(follow_symlinks=False).st_size
    with Path(segment).open("rb") as file:
        header = file.read(PAGE_HEADER.size)
    if len(header) < PAGE_HEADER.size:
        return False
    position: int = PAGE_HEADER.unpack(header)[3]
    return position == (int(segment.name[8:16], 16) << 32) + int(segment.name[16:], 16) * size


def is_unlogged(name: str, numbers: Collection[str]) -> bool:
    """Return whether a file has the contents of an unlogged table with one of these numbers."""
    number = re.split(r"[._]", name, maxsplit=1)[0]
    return number in numbers and name != f"{number}_init"


def failure(source: Path, error: OSError) -> ClusterError:
    """Return the error to report when a copy failed."""
    if error.errno in FULL:
        return DiskFullError(
            f"the disk is full: it has no space for a copy of cluster {source.name!r}."
            " Delete branches that you do not need, or free disk space, then try again"
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
        self._copier = FileCopier(account)

    def run(self) -> None:
        for name in REQUIRED:
            if not (self._source / name).is_file():
                raise ClusterError(f"{str(self._source)!r} is not a data directory: no file {name}")
        self._copy_directory("")
        for name in self._wal or ():
            self._copier.copy(*self._paths(f"pg_wal/{name}"))
        self._copy_control_file()

    def _copy_directory(self, relative: str) -> None:
        """Copy a directory and its subdirectories, without the files that a copy must not have."""
        source, target = self._paths(relative)
        self._copier.make_directory(target)
        if relative in self._empty:
            return
        with os.scandir(source) as entries:
            selected = list(self._selected(relative, entries))
        for entry in selected:
            path = f"{relative}/{entry.name}" if relative else entry.name
            with self._vanishing():
                if entry.is_dir(follow_symlinks=False):
                    self._copy_directory(path)
                elif entry.is_file(follow_symlinks=False):
                    self._copier.copy(entry.path, f"{self._target}/{path}")
                else:
                    raise ClusterError(
                        f"{entry.path!r} is a link or a special file:"
                        " tablespaces outside the data directory cannot be copied"
                    )

    def _selected(
        self, relative: str, entries: Iterable[os.DirEntry[str]]
    ) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of a directory that belong into a copy."""
        if relative == "pg_wal":
            yield from (entry for entry in entries if self._is_selected_wal(entry))
            return
        left_out = LEFT_OUT_BY_DIRECTORY.get(relative, frozenset())
        kept = [e for e in entries if not (LEFT_OUT.match(e.name) or e.name in left_out)]
        if unlogged := self._unlogged(relative, kept):
            kept = [e for e in kept if not is_unlogged(e.name, unlogged)]
        yield from kept

    def _is_selected_wal(self, entry: os.DirEntry[str]) -> bool:
        if not SEGMENT.fullmatch(entry.name):
            return True
        if self._wal is not None:
            return False  # copied by name
        return self._running or has_contents(entry)

    def _unlogged(self, relative: str, entries: Iterable[os.DirEntry[str]]) -> frozenset[str]:
        """Return the numbers of unlogged tables, if the server runs.

        The start of the copied server makes them empty, from the files ``…_init``.
        """
        if not (self._running and relative.startswith("base/")):
            return frozenset()
        names = (entry.name for entry in entries)
        return frozenset(name.removesuffix("_init") for name in names if name.endswith("_init"))

    @contextmanager
    def _vanishing(self) -> Generator[None]:
        """Ignore files of a running server that do not exist any more.

        The WAL has the reason: a table or a database was deleted.
        """
        try:
            yield
        except FileNotFoundError:
            if not self._running:
                raise

    def _copy_control_file(self) -> None:
        """Copy the control file. A running server may write it during a read."""
        source, target = self._paths(CONTROL_FILE)
        contents, previous = Path(source).read_bytes(), b""
        while contents != previous:
            contents, previous = Path(source).read_bytes(), contents
        self._copier.write(target, contents)

    def _paths(self, relative: str) -> tuple[str, str]:
        """Return the paths of a file in the source and in the target."""
        if not relative:
            return str(self._source), str(self._target)
        return f"{self._source}/{relative}", f"{self._target}/{relative}"
