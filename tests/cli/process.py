"""The command line as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import neonctl_async

COMMAND = (sys.executable, "-W", "error", "-m", "neonctl_async")
PACKAGE = str(Path(neonctl_async.__file__).parents[1])
"""Where the package under test is imported from; a process starts in another directory."""


class Ended(NamedTuple):
    out: str
    err: str
    code: int


@contextmanager
def started(*command: str, **env: str) -> Generator[subprocess.Popen[str]]:
    """A process, which is killed if it is not ended."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
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
    """What it printed, and how it ended."""
    out, err = process.communicate()
    return Ended(out, err, process.returncode)
