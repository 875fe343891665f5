"""The directories of a control plane: data directories by id, sockets, and their locks."""

import logging
import os
import secrets
import stat
import sys
import tempfile
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from neonctl_local.postgres.account import ServerAccount, check_reachable, give
from neonctl_local.postgres.cache import try_lock
from neonctl_local.postgres.copying import remove
from neonctl_local.postgres.errors import ClusterError, PostgresUnavailableError
from neonctl_local.postgres.files import write_file
from neonctl_local.postgres.history.archive import history_of
from neonctl_local.postgres.servers.guardian import end_servers, remove_clusters
from neonctl_local.postgres.template import password_file

logger: Final = logging.getLogger("neonctl_local")

PREFIX: Final = "neonctl-pg-"
"""The start of the names of temporary directories."""

SOCKET_LENGTH: Final = 107 if sys.platform == "linux" else 103
"""The greatest length of a socket's path, in bytes."""

LOCK: Final = "lock"
INDEX: Final = "clusters.json"
OWNER: Final = "owner"
"""The file with the id of the data file that the directory belongs to."""
OBJECTS: Final = ("br-", "snap-")
"""The id prefixes of branches and snapshots. Data files do not list other clusters."""
_ROOT: Final = "root"
_LOCK_TIMES: Final = (8.0, 2.0)
"""How long to wait for the lock of a dead process, and of one that seems alive, in seconds.

A killed process seems to be alive until its parent process has reaped it.
"""
_ABANDONED_AGE: Final = 60.0
_START_TIME: Final = 0.5
_SPAWN_TIME: Final = 0.1


class DataFile(msgspec.Struct, frozen=True):
    """The contents of a control plane's data file that its directories are checked against.

    ``id`` identifies the file. It is None before the first start with the file has succeeded.
    ``needed`` contains the ids of the clusters that were completed and not deleted. ``known``
    contains the ids of all branches and snapshots that the file has ever contained; it is None if
    there is no data file.
    """

    id: str | None = None
    needed: frozenset[str] = frozenset()
    known: frozenset[str] | None = None

    def is_strange(self, id: str) -> bool:
        """Return whether a cluster belongs to a branch or snapshot that was never in this file.

        Rows are written before their clusters, so a kill cannot cause this: the file must be an
        older copy, or must have lost its last transactions.
        """
        strange = self.known is not None and id.partition(".")[0] not in self.known
        return strange and id.startswith(OBJECTS)


class Directories:
    """The files of one control plane. All methods block.

    The directory of a cluster has a random name. The index assigns ids to these names, and is
    replaced as a whole. Directories that the index does not name are incomplete or deleted, and
    ``open`` removes them, unless ``data_file`` shows that the index belongs to another data file,
    or is lost. Clusters that were never in the data file are set aside: they stay in the index for
    the data file that they belong to, and nothing else uses or removes them.
    """

    def __init__(
        self,
        root: Path | None,
        account: ServerAccount | None,
        *,
        durable: bool,
        history: bool = False,
        data_file: DataFile | None = None,
    ) -> None:
        self._history = history
        self._data_file = data_file or DataFile()
        self._kept = root
        self._account = account
        self._durable = durable
        self._incomplete: set[str] = set()
        self._names: dict[str, str] = {}
        self.locks: list[int] = []
        self.temporary: Path = Path()
        self.root: Path = Path()
        self._locked = False

    @property
    def sockets(self) -> Path:
        """The directory that holds the servers' sockets."""
        return self.temporary / "s"

    @property
    def extensions(self) -> Path:
        """The directory that holds the extensions' control files."""
        return self.temporary / "e"

    @property
    def is_temporary(self) -> bool:
        """True if the data is removed when the control plane stops."""
        return self._kept is None

    def open(self) -> dict[str, Path]:
        """Create the directories, and return the data directories of the usable clusters, by id.

        Leftovers of control planes that were killed are removed, and their servers stopped. Raise
        RuntimeError, and leave the data unchanged, if some is missing or of another data file.
        """
        try:
            self._open()
        except BaseException:
            self.close()
            raise
        strange = {id for id in self._names if self._data_file.is_strange(id)}
        if strange:
            self._report_strange(strange)
        unserved = strange | self._incomplete
        return {id: self._data(name) for id, name in self._names.items() if id not in unserved}

    def close(self) -> None:
        """End the remaining servers, remove the temporary directory, and unlock the data."""
        if self._locked:
            end_servers(self.root)
        if self.temporary.name:
            remove_clusters(self.temporary.glob("data/clusters/*"))
            with suppress(OSError):  # the next control plane removes the rest
                remove(self.temporary)
        for lock in self.locks:
            os.close(lock)
        self.locks.clear()

    def claim(self, id: str) -> None:
        """Store the id of the data file that the directory belongs to."""
        with suppress(ClusterError):  # a full disk: the next start tries again
            write_file(self.root / OWNER, id, account=None, durable=self._durable)

    def new(self) -> Path:
        """Return the path of a new data directory. It does not exist yet."""
        return self._data(secrets.token_hex(8))

    def assign(self, changes: Mapping[str, Path | None]) -> None:
        """Give data directories their ids in one atomic step. Remove ids that map to None."""
        names = {id: path.name for id, path in changes.items() if path is not None}
        kept = {id: name for id, name in self._names.items() if id not in changes}
        if self._kept:  # nobody reads the index of temporary data
            text = msgspec.json.encode(kept | names).decode()
            write_file(self.root / INDEX, text, account=None, durable=self._durable)
        self._names = kept | names

    def _open(self) -> None:
        if self._kept and not (self._kept / INDEX).exists():
            cause = f"There is no {str(self._kept / INDEX)!r}"
            self._refuse_if_lost(cause, "it and the data file", self._names)
        base = _temporary()
        remove_abandoned(base)
        self.temporary = self._make_temporary(base)
        self._make_private(self.sockets)
        give(self.sockets, self._account)
        self._check_sockets()
        self.root = self._kept.absolute() if self._kept else self.temporary / "data"
        self._make_private(self.root)
        self._enter(self.root)
        self._enter(self.temporary)
        self.root = self.root.resolve()
        check_reachable(self.root, self._account)
        if self._kept:
            self.locks.append(lock_directory(self.root))
            (self.temporary / _ROOT).write_text(str(self.root), encoding="utf-8")
        self._locked = True
        self._make_private(self.root / "clusters")
        self._enter(self.root / "clusters")
        end_servers(self.root)
        self._read_index()

    def _make_temporary(self, base: Path) -> Path:
        while True:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
            lock = _try_lock(path)
            if lock is not None:
                _write_owner(lock)
                self.locks.append(lock)
                return path
            # Another control plane has removed the directory before it was locked.

    @staticmethod
    def _make_private(path: Path) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _enter(self, path: Path) -> None:
        """Let the servers' account enter a directory, but not list it."""
        if self._account is not None:
            mode = path.stat().st_mode
            if not mode & 0o001:
                path.chmod(mode | 0o011)

    def _check_sockets(self) -> None:
        longest = self.sockets / ".s.PGSQL.65535"
        length = len(os.fsencode(longest))
        if length > SOCKET_LENGTH:
            raise PostgresUnavailableError(
                f"the path of the sockets would have {length} bytes ({longest}), and the longest"
                f" possible path has {SOCKET_LENGTH}: set TMPDIR to a shorter directory"
            )
        if "," in str(longest):
            raise PostgresUnavailableError(
                f"the path of the sockets has a comma ({self.sockets}), which separates directories"
                " in the settings of Postgres: set TMPDIR to a directory without one"
            )

    def _read_index(self) -> None:
        """Read the index, and remove the directories that it does not name."""
        file = self.root / INDEX
        if file.exists():
            try:
                self._names = msgspec.json.decode(file.read_bytes(), type=dict[str, str])
            except msgspec.DecodeError as error:
                raise RuntimeError(
                    f"The file {str(file)!r} is damaged: {error}. Restore it, or use another"
                    " directory"
                ) from error
        complete = {path.parent.name for path in self.root.glob("clusters/*/PG_VERSION")}
        self._check_owner(complete)
        unnamed = complete - set(self._names.values())
        for found in sorted(str(self._data(name)) for name in unnamed):
            self._refuse_if_lost(f"{str(file)!r} does not name {found!r}", found, self._names)
        if self._names and not complete:
            cause = f"There are no data in {str(self.root / 'clusters')!r}"
            self._refuse_if_lost(cause, "it and the data file", ())
        for id in sorted(self._data_file.needed - self._names.keys()):
            logger.warning("the index %s does not name the data of %s", file, id)
        for id, name in list(self._names.items()):
            if not (self._data(name) / "PG_VERSION").is_file():
                logger.warning("the data directory %s of %s is missing", self._data(name), id)
                if id in self._data_file.needed:
                    self._incomplete.add(id)  # its other files, such as its history, stay
                else:
                    del self._names[id]
        named = set(self._names.values())
        passwords = {password_file(self._data(name)).name for name in named}
        # Without history, WAL is not archived, so history of an earlier run has a gap.
        histories = {history_of(self._data(name)).name for name in named if self._history}
        for path in set((self.root / "clusters").glob("*.password*")):
            if path.name not in passwords:
                path.unlink()
        directories = (self.root / "clusters").iterdir()
        kept = named | passwords | histories
        remove_clusters(path for path in directories if path.name not in kept)
        for path in self.root.glob(f"{INDEX}.*.tmp"):
            path.unlink()

    def _check_owner(self, complete: Collection[str]) -> None:
        """Raise RuntimeError if the data belongs to another data file, which may still need it."""
        file = self.root / OWNER
        if complete and file.exists() and file.read_text(encoding="utf-8") != self._data_file.id:
            raise RuntimeError(
                f"The directory {str(self.root)!r} has the databases of another data file: restore"
                " that file beside it, or move the directory away to start without databases"
            )

    def _refuse_if_lost(self, cause: str, obstacle: str, found: Collection[str]) -> None:
        """Raise RuntimeError if data that the data file needs is missing."""
        lost = sorted(self._data_file.needed.difference(found))
        if lost:
            raise RuntimeError(
                f"{cause}, and the data of {len(lost)} branches and snapshots are missing"
                f" ({', '.join(lost[:3])}{', …' * (len(lost) > 3)}): restore the directory"
                f" {str(self._kept)!r} from a backup, or move {obstacle} away to start without them"
            )

    def _report_strange(self, ids: Collection[str]) -> None:
        directories = sorted(str(self._data(self._names[id])) for id in ids)
        logger.warning(
            "the data file has never had %d of the branches and snapshots in %s: it is an older"
            " copy, or has lost its last changes. Their databases are kept, but not served (%s)."
            " To use them, stop, and restore the newer data file. To free their disk space, stop,"
            " and delete their directories (%s)",
            *(len(ids), self.root, ", ".join(sorted(ids)), ", ".join(directories)),
        )

    def _data(self, name: str) -> Path:
        return self.root / "clusters" / name


def lock_directory(directory: Path) -> int:
    """Lock a directory, and return the descriptor of the lock.

    The lock of a killed control plane lasts until its guardian has stopped the servers. Raise
    RuntimeError if the lock is not released within a few seconds.
    """
    began = time.monotonic()
    while (lock := _try_lock(directory)) is None:
        owner = _read_owner(directory)
        if time.monotonic() - began > _LOCK_TIMES[_is_alive(owner)]:
            raise RuntimeError(
                f"The directory {str(directory)!r} is in use by another control plane"
                f" (process {owner or 'unknown'}): stop it, or use another directory"
            )
        time.sleep(0.05)
    _write_owner(lock)
    return lock


def remove_leftovers() -> None:
    """Remove the databases of local control planes that were killed, and end their servers.

    Each start of a local control plane with databases does this. Call this function if no such
    start will follow.
    """
    remove_abandoned(_temporary())


def _temporary() -> Path:
    return Path(os.path.realpath(tempfile.gettempdir()))


def remove_abandoned(base: Path) -> None:
    """Remove the temporary directories of control planes that were killed with their guardians."""
    for path in base.glob(f"{PREFIX}*"):
        with suppress(OSError):
            status = path.lstat()
            if not stat.S_ISDIR(status.st_mode):
                continue
            young = time.time() - status.st_mtime < _ABANDONED_AGE
            if status.st_uid != os.geteuid() or (young and not (path / LOCK).exists()):
                continue
            lock = _lock_abandoned(path)
            if lock is not None:
                try:
                    _end_abandoned(path)
                    remove_clusters(path.glob("data/clusters/*"))
                    remove(path)
                finally:
                    os.close(lock)


def _lock_abandoned(temporary: Path) -> int | None:
    """Lock a directory whose control plane was killed. Return None if it is in use.

    A program that the control plane was starting may still hold the lock for a moment.
    """
    deadline = time.monotonic() + _START_TIME
    while (lock := _try_lock(temporary)) is None:
        if _is_alive(_read_owner(temporary)) or time.monotonic() > deadline:
            return None
        time.sleep(0.02)
    time.sleep(_SPAWN_TIME)  # a server that was being started has no working directory yet
    return lock


def _end_abandoned(temporary: Path) -> None:
    """End the servers of a control plane that was killed with its guardian."""
    end_servers(temporary)
    text = (temporary / _ROOT).read_text(encoding="utf-8") if (temporary / _ROOT).exists() else ""
    if text:  # a kill may have left the file empty, which would name the working directory
        root = Path(text)
        lock = _try_lock(root)
        if lock is not None:  # otherwise, a new control plane has stopped them
            try:
                end_servers(root)
            finally:
                os.close(lock)


def _try_lock(directory: Path) -> int | None:
    """Lock a directory. Return None if it is locked already, or has been removed."""
    try:
        return try_lock(directory / LOCK)
    except FileNotFoundError:
        return None


def _read_owner(directory: Path) -> str:
    return (directory / LOCK).read_text(encoding="ascii", errors="replace").strip()


def _write_owner(lock: int) -> None:
    os.ftruncate(lock, 0)
    os.write(lock, f"{os.getpid()}\n".encode())


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except PermissionError:
        return True
    except (ValueError, OverflowError, ProcessLookupError):
        return False
    return True
