"""The files of one cluster's history."""

import os
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.cloning import FileCopier
from neonctl_local.postgres.copying import (
    SEGMENT,
    copy_cluster,
    disk_usage,
    failure,
    has_contents,
    remove,
)
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.files import open_directory, read_file, write_file
from neonctl_local.postgres.history.bases import Base
from neonctl_local.postgres.programs import ProgramTimeoutError, run_program

SUFFIX: Final = ".history"
SIGNAL: Final = "recovery.signal"
"""The file that makes Postgres recover to a target when it starts."""

COPIED: Final = "neonctl_copied_at"
"""The file with the source's LSN, which a copy contains until its first start."""

LABEL: Final = "backup_label"
_LABELLED: Final = re.compile(r"^START WAL LOCATION: .*\(file ([0-9A-F]{24})\)$", re.MULTILINE)
_CHECKPOINT: Final = re.compile(r"^Latest checkpoint location: +(\S+)$", re.MULTILINE)
_SEGMENT: Final = re.compile(r"^Latest checkpoint's REDO WAL file: +(\S+)$", re.MULTILINE)
_TIME_LIMIT: Final = 10.0


def history_of(data: Path) -> Path:
    """Return the history directory of a data directory, which is beside it."""
    return data.with_name(f"{data.name}{SUFFIX}")


class History:
    """The archived WAL of one cluster, and copies of its data. All methods block.

    The server archives a WAL segment by making a hard link to it. This is safe, because the server
    does not write to complete segments while ``wal_recycle`` is off. A file
    ``NAME-1.json`` shows that the copy ``NAME-1`` is complete.
    """

    def __init__(self, data: Path, account: ServerAccount | None, *, durable: bool) -> None:
        self.data = data
        self._account = account
        self._durable = durable
        self._directory = history_of(data)
        self.wal: Path = self._directory / "wal"

    def settings(self) -> dict[str, str]:
        """Return the settings of a server that archives its WAL.

        Postgres repeats an interrupted command, so the command must succeed if the link exists.
        """
        directory = shlex.quote(f"../{self.wal.relative_to(self.data.parent)}")
        link = directory.replace("%", "%%") + "/%f"
        command = f"ln %p {link} || test %p -ef {link}"
        if self._durable:
            command = f"({command}) && sync {directory.replace('%', '%%')}"
        return {"archive_mode": "on", "archive_command": command}

    def open(self) -> None:
        """Make the directories, unless they exist."""
        copier = FileCopier(self._account)
        for directory in (self._directory, self.wal):
            if not directory.exists():
                copier.make_directory(str(directory))

    def bases(self) -> list[Base]:
        """Return the complete copies, oldest first."""
        files = self._directory.glob("*.json")
        found = [msgspec.json.decode(read_file(file), type=Base) for file in files]
        return sorted(found, key=lambda base: base.number)

    def new_base(self) -> int:
        """Return the number of the next copy. Remove what interrupted copies left behind."""
        kept = {base.number for base in self.bases()}
        names = {"wal", *(self.base_directory(number).name for number in kept)}
        for path in self._directory.iterdir():
            if path.is_dir() and path.name not in names:
                remove(path)
        return max(kept, default=0) + 1

    def base_directory(self, number: int) -> Path:
        """Return the data directory of a copy."""
        # ext4 places a directory by its name. With the same name in each history, new copies would
        # be placed where others were deleted, and would take up to 10 times as long.
        return self._directory / f"{self.data.name}-{number}"

    def begin(self, installation: Installation, changed: datetime | None) -> None:
        """Make the first copy, if there is none, before the server starts.

        The data of a killed server, whose last change is unknown, can only be copied while the
        server is running.
        """
        self.open()
        lsn = copied_at(self.data)
        if (lsn or changed) and not self.bases():
            self.copy_stopped(installation, lsn, first=self.is_new(), taken_at=changed)

    def is_new(self) -> bool:
        """Return whether no server has been started on the data since the branch was created."""
        return (self.data / COPIED).exists()

    def copy_stopped(
        self,
        installation: Installation,
        lsn: str = "",
        *,
        first: bool = False,
        taken_at: datetime | None = None,
    ) -> None:
        """Add a copy of the stopped server's data, which has not changed since ``taken_at``."""
        number = self.new_base()
        copy_cluster(self.data, self.base_directory(number), account=self._account)
        self.add(number, installation, lsn, first=first, taken_at=taken_at)

    def add(
        self,
        number: int,
        installation: Installation,
        lsn: str = "",
        *,
        first: bool = False,
        taken_at: datetime | None = None,
    ) -> None:
        """Record that a copy is complete. ``taken_at`` defaults to the current time.

        ``lsn`` is the LSN of the copy; it defaults to that of the copy's last checkpoint.
        """
        now, directory = datetime.now(UTC), self.base_directory(number)
        last, segment = read_checkpoint(directory, installation, self._account)
        with suppress(FileNotFoundError):
            label = _LABELLED.search(read_file(directory / LABEL).decode())
            segment = segment if label is None else label[1]
        base = Base(
            number=number,
            taken_at=taken_at or now,
            lsn=lsn or last,
            segment=segment,
            size=disk_usage(directory),
            first=first,
        )
        if self._durable:
            os.sync()
        text = msgspec.json.encode(base).decode()
        write_file(directory.with_suffix(".json"), text, account=None, durable=self._durable)

    def end_of_stopped(self, installation: Installation) -> str:
        """Return the LSN of the stopped server's last WAL record."""
        return read_checkpoint(self.data, installation, self._account)[0]

    def usage(self) -> list[tuple[Base, int]]:
        """Return the copies, oldest first, with the bytes of each and its WAL up to the next copy.

        For the latest copy, all WAL since it was taken counts.
        """
        bases = self.bases()
        names = self._archived() if bases else set[str]()
        size = next(((self.wal / name).stat().st_size for name in names), 0)
        used: list[tuple[Base, int]] = []
        ends = [*(base.segment[8:] for base in bases[1:]), "~"]
        for base, end in zip(bases, ends, strict=False):
            count = sum(base.segment[8:] <= name[8:] < end for name in names)
            used.append((base, base.size + count * size))
        return used

    def drop(self, dropped: Iterable[Base]) -> None:
        """Remove copies, and the WAL that only they need."""
        for base in dropped:
            directory = self.base_directory(base.number)
            directory.with_suffix(".json").unlink(missing_ok=True)
            remove(directory)
        needed = min((base.segment[8:] for base in self.bases()), default="")
        for name in self._archived():
            if name[8:] < needed:
                (self.wal / name).unlink(missing_ok=True)

    def restore(self, base: Base, target: Path, last: str | None) -> None:
        """Make ``target`` a data directory from which Postgres recovers, starting at a copy.

        It contains the WAL up to the segment ``last``, or all WAL if ``last`` is None. Raise
        ClusterError if WAL is missing, because recovery would end too early without an error.
        """
        copy_cluster(self.base_directory(base.number), target, account=self._account)
        try:
            self._add_wal(base, target, last)
        except BaseException as error:
            remove(target)
            if isinstance(error, OSError):
                raise failure(self.data, target, error) from error
            raise

    def _add_wal(self, base: Base, target: Path, last: str | None) -> None:
        copier = FileCopier(self._account)
        # In this order, because the server archives a segment before it removes it.
        live, archived = segments_in(self.data), self._archived()
        own = segments_in(target)
        needed = {name for name in own | live | archived if _follows(name, base.segment, last)}
        for name in needed & (live | archived):
            segment = target / "pg_wal" / name
            segment.unlink(missing_ok=True)
            # A server may still write to a segment that is not archived, so such segments are
            # copied.
            if name not in archived:
                with suppress(FileNotFoundError):  # it has been archived since
                    with open_directory(self.data / "pg_wal") as directory:
                        copier.copy(name, str(segment), parents=(directory, None))
                    continue
            os.link(self.wal / name, segment, follow_symlinks=False)
        self._check_complete(target, sorted(needed), base, last)
        copier.write(str(target / SIGNAL), b"")

    def _check_complete(
        self, target: Path, names: Sequence[str], base: Base, last: str | None
    ) -> None:
        size = (target / "pg_wal" / names[0]).stat().st_size if names else 0
        expected = [_start(base.segment, size) + number * size for number in range(len(names))]
        ends_early = last is not None and last not in names
        if not names or ends_early or [_start(name, size) for name in names] != expected:
            raise ClusterError(
                f"the history of {self.data.name} lacks WAL after {base.segment},"
                " so its data of that time cannot be recovered"
            )

    def _archived(self) -> set[str]:
        return {path.name for path in self.wal.iterdir() if SEGMENT.fullmatch(path.name)}


def copied_at(data: Path) -> str:
    """Return the LSN of data that was copied and never started, or "" if it is unknown."""
    file = data / COPIED
    return read_file(file).decode("ascii") if file.exists() else ""


def recovered_to(data: Path) -> str:
    """Return the LSN at which a recovery ended: the LSN of the latest timeline switch."""
    newest = max((data / "pg_wal").glob("*.history"))
    return read_file(newest).decode("ascii").rstrip().splitlines()[-1].split("\t")[1]


def segments_in(data: Path) -> set[str]:
    """Return the names of the WAL segments of a data directory that contain records."""
    found: set[str] = set()
    with open_directory(data / "pg_wal") as directory, os.scandir(directory) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # the server removed it
                if SEGMENT.fullmatch(entry.name) and has_contents(entry, directory):
                    found.add(entry.name)
    return found


def read_checkpoint(
    data: Path, installation: Installation, account: ServerAccount | None
) -> tuple[str, str]:
    """Return the LSN of a data directory's last checkpoint, and the segment of its redo point."""
    command = [installation.program("pg_controldata"), data]
    try:
        output = run_program(command, timeout=_TIME_LIMIT, account=account).output
    except (OSError, ProgramTimeoutError) as error:
        raise ClusterError(f"{command[0]} did not run: {error}") from error
    checkpoint, segment = _CHECKPOINT.search(output), _SEGMENT.search(output)
    if checkpoint is None or segment is None:
        raise ClusterError(f"{command[0]} reports no checkpoint: {output.strip()[-300:]}")
    return checkpoint[1], segment[1]


def _follows(name: str, first: str, last: str | None) -> bool:
    """Return whether a segment is on the timeline of ``first``, between ``first`` and ``last``."""
    return name[:8] == first[:8] and first <= name <= (last or "~")


def _start(name: str, size: int) -> int:
    return (int(name[8:16], 16) << 32) + int(name[16:], 16) * size
