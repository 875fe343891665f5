"""Errors of a local control plane's real databases."""

import errno
import os
from typing import Final


class PostgresUnavailableError(RuntimeError):
    """Postgres cannot be used on this machine. The message names the remedy."""


class ClusterError(Exception):
    """Work on a Postgres cluster failed. The message becomes the ``error`` of an operation."""


class ClusterBusyError(ClusterError):
    """A client's transaction holds a lock that the work on a cluster needs."""

    def __init__(self, work: str) -> None:
        super().__init__(
            f"a transaction of a client has a lock that {work} needs: end it, then try again"
        )


class DiskFullError(ClusterError):
    """The disk has no space for the work on a cluster."""


MORE_SPACE: Final = (
    "Delete branches that you do not need, free disk space, or put the data on another disk, with"
    " --data or TMPDIR"
)
"""The advice in error messages when the disk is full.

Clusters are stored beside the data file (``--data``), or in a temporary directory (``TMPDIR``).
"""


FULL: Final = (errno.ENOSPC, errno.EDQUOT)
"""The error numbers that report a full disk."""


def says_full(message: str) -> bool:
    """Return whether an English error message reports a full disk."""
    return any(os.strerror(number) in message for number in FULL)
