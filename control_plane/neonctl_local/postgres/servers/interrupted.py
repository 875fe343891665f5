"""Repairs copies of a running server after their first start was interrupted.

Such a copy has a backup label. Its first start notes the backup in the control file and renames the
label, then replays the WAL up to the end of the backup. If the start is interrupted during the
replay, Postgres refuses every later start, because without the label it does not replay the end of
the backup.
"""

import re
from pathlib import Path
from typing import Final

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.files import read_file
from neonctl_local.postgres.programs import ProgramTimeoutError, run_program

TIME_LIMIT: Final = 10.0
"""How long pg_controldata may take, in seconds."""

_PENDING: Final = re.compile(r"^Backup start location: +([0-9A-F]+/[0-9A-F]+)$", re.MULTILINE)
_LABELLED: Final = re.compile(r"^START WAL LOCATION: ([0-9A-F]+/[0-9A-F]+) ", re.MULTILINE)


def put_label_back(data: Path, installation: Installation, account: ServerAccount | None) -> bool:
    """Restore a cluster's backup label if the first start was interrupted.

    Return whether the start was interrupted. The server must not be running.
    """
    label, old = data / "backup_label", _renamed_label(data)
    if label.exists() or not old.exists():
        return False
    command = [installation.program("pg_controldata"), data]
    try:
        output = run_program(command, timeout=TIME_LIMIT, account=account).output
    except (OSError, ProgramTimeoutError) as error:
        raise ClusterError(
            f"{command[0]}, which shows whether a backup is complete, did not run: {error}"
        ) from error
    pending, labelled = _PENDING.search(output), _LABELLED.search(read_file(old).decode())
    if pending and labelled and _position(pending[1]) == _position(labelled[1]):
        old.rename(label)
        return True
    return False


def forget_label(data: Path) -> None:
    """Remove the renamed label of a cluster whose server has started."""
    _renamed_label(data).unlink(missing_ok=True)


def _renamed_label(data: Path) -> Path:
    return data / "backup_label.old"


def _position(location: str) -> tuple[int, int]:
    high, low = location.split("/")
    return int(high, 16), int(low, 16)
