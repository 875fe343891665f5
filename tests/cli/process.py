"""The command line as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

import neonctl_async

COMMAND = (sys.executable, "-W", "error", "-m", "neonctl_async")
PACKAGE = str(Path(neonctl_async.__file__).parents[1])
"""The directory of the package under test; processes start in another directory."""

UNWRITABLE = [
    pytest.param("{}>&-", id="closed"),
    pytest.param(
        "{}>/dev/full",
        id="full",
        marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full disk to write to"),
    ),
]
"""Redirections of a stream, by its number, to where nothing can be written."""


class Ended(NamedTuple):
    out: str
    err: str
    code: int


@contextmanager
def started(*command: str, **env: str) -> Generator[subprocess.Popen[str]]:
    """Start a process, and kill it at the end of the block."""
    with subprocess.Popen(
        command,
        # Closed where that of the tests is.
        stdin=None if sys.stdin is None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": PACKAGE, **env},
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> Ended:
    """Wait for a process. Return its output and its exit status."""
    out, err = process.communicate()
    return Ended(out, err, process.returncode)


def redirected(redirection: str, *command: str, **env: str) -> Ended:
    """Run a command with a redirection of the shell."""
    with started("sh", "-c", f'exec "$@" {redirection}', "sh", *command, **env) as process:
        return ended(process)
