"""The number of file descriptors that a process may open."""

import sys
from typing import Final

WANTED: Final = 65_536
"""Enough for 30,000 connections: the proxy needs two descriptors for each."""


def raise_descriptor_limit() -> None:
    """Raise this process's limit on open files, to allow many database connections.

    The command-line program and the pytest plugin call this. Other programs can do so themselves.
    """
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - does not exist on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
