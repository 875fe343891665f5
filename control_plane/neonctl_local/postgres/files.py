"""Small files that are always complete, whatever ends the process that writes them."""

import os
import secrets
from pathlib import Path

from neonctl_local.postgres.account import ServerAccount, give
from neonctl_local.postgres.errors import FULL, ClusterError, DiskFullError


def write_file(path: Path, text: str, *, account: ServerAccount | None, durable: bool) -> None:
    """Replace a file with one that only ``account`` can read. Raise ClusterError if that fails."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        give(temporary, account)
        temporary.replace(path)
        if durable:
            _sync_directory(path.parent)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            kind = DiskFullError if error.errno in FULL else ClusterError
            raise kind(f"{str(path)!r} cannot be written: {error.strerror}") from error
        raise


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
