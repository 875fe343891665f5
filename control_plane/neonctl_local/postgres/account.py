"""The unprivileged account that runs the servers, because Postgres refuses to run as root."""

import os
import stat
import sys
from pathlib import Path
from typing import Final, NamedTuple

from neonctl_local.postgres.errors import PostgresUnavailableError

if sys.platform != "win32":
    import pwd

NAMES: Final = ("postgres", "nobody")
"""The accounts that the servers may run as, in order of preference."""

STATUS: Final = Path("/proc/self/status")
CAPABILITIES: Final = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_FOWNER": 3,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
}
"""The Linux capabilities needed to start servers as another user, with their bit numbers."""


class ServerAccount(NamedTuple):
    """An operating-system account."""

    uid: int
    gid: int
    name: str


def server_account() -> ServerAccount | None:
    """Return the account for the servers if this process runs as root, else None.

    Raise PostgresUnavailableError if no account is suitable.
    """
    if sys.platform == "win32" or os.geteuid() != 0:
        return None
    if missing := _missing_capabilities():
        raise PostgresUnavailableError(
            f"Postgres does not run as root, and this process lacks {', '.join(missing)} to start"
            " it as another user: add the capabilities, or start this program as another user"
        )
    for name in NAMES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return ServerAccount(entry.pw_uid, entry.pw_gid, name)
    raise PostgresUnavailableError(
        "Postgres does not run as root, and neither the user 'postgres' nor 'nobody' exists:"
        " add one of them, or start this program as another user"
    )


def _missing_capabilities() -> list[str]:
    """Return the names of the capabilities in :data:`CAPABILITIES` that this process lacks."""
    try:
        lines = STATUS.read_text(encoding="ascii").splitlines()
    except OSError:  # another operating system
        return []
    [effective] = [int(line.split()[1], 16) for line in lines if line.startswith("CapEff:")]
    return [name for name, bit in CAPABILITIES.items() if not effective >> bit & 1]


def check_reachable(path: Path, account: ServerAccount | None) -> None:
    """Raise PostgresUnavailableError if the account may not enter a directory on the path.

    The message names the first such directory. Parts of the path that do not exist are ignored.
    """
    if account is None:
        return
    resolved = path.resolve()
    for directory in [*reversed(resolved.parents), resolved]:
        try:
            status = directory.stat()
        except FileNotFoundError:
            return
        if stat.S_ISDIR(status.st_mode) and not status.st_mode & _needed_bit(status, account):
            contents = "" if directory == resolved else f", which contains {str(path)!r}"
            raise PostgresUnavailableError(
                f"the user {account.name!r}, who runs Postgres, cannot enter {str(directory)!r}"
                f" (mode {stat.S_IMODE(status.st_mode):04o}){contents}:"
                f" use another place, or run chmod o+x {directory}"
            )


def _needed_bit(status: os.stat_result, account: ServerAccount) -> int:
    """Return the bit of a directory's mode that permits the account to enter it."""
    if status.st_uid == account.uid:
        return stat.S_IXUSR
    return stat.S_IXGRP if status.st_gid == account.gid else stat.S_IXOTH


def check_named(account: ServerAccount | None) -> None:
    """Raise PostgresUnavailableError if the current user has no name, which initdb requires.

    Containers often run with a user id that ``/etc/passwd`` does not list.
    """
    if account is not None or sys.platform == "win32":
        return
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise PostgresUnavailableError(
            f"Postgres needs the name of its user, and the user id {os.geteuid()} has none:"
            " add it to /etc/passwd, or start this program as a user that is there"
        ) from None


def give(path: Path, account: ServerAccount | None) -> None:
    """Make the account the owner of a file, or of a directory with all its contents."""
    if account is None or sys.platform == "win32":
        return
    own = [path]
    if path.is_dir() and not path.is_symlink():
        own += (
            Path(parent, name)
            for parent, directories, files in os.walk(path)
            for name in directories + files
        )
    for entry in own:
        os.chown(entry, account.uid, account.gid, follow_symlinks=False)
