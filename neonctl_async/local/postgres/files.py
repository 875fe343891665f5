"""Small files that are always complete, whatever ends the process that writes them."""

import os
import secrets
from pathlib import Path

from neonctl_async.local.postgres.account import ServerAccount, give


def write_file(path: Path, text: str, *, account: ServerAccount | None, durable: bool) -> None:
    """Replace a file with one that only ``account`` can read."""
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
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
