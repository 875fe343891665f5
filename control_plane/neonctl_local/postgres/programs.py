"""Short runs of Postgres programs, with a time limit."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from neonctl_local.postgres.account import ServerAccount

_KEPT_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")

KEPT_OUTPUT: Final = 64 * 1024
"""How many bytes of the output are kept by default: the last ones."""


class Finished(NamedTuple):
    """The exit status of a program, and its output and messages in the order they appeared."""

    status: int
    output: str


class ProgramTimeoutError(Exception):
    """A program was killed because it did not finish in time."""


def program_environment() -> dict[str, str]:
    """Return the environment variables of Postgres programs.

    Other variables are removed: some change what the programs do (``PGDATA``), others are secrets
    of the control plane. Messages are in English. The time zone is GMT, as on Neon.
    """
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return kept | {"LC_ALL": "C", "TZ": "GMT"}


def run_program(
    command: Sequence[str | Path],
    *,
    timeout: float,
    account: ServerAccount | None = None,
    kept: int = KEPT_OUTPUT,
) -> Finished:
    """Run a program, as another account if one is given, and return its result.

    The result contains the last ``kept`` bytes of the output. After ``timeout`` seconds, the
    program and its children are killed, and ProgramTimeoutError is raised. Raise OSError if the
    program cannot be started.
    """
    groups: list[int] | None = [] if account else None
    deadline = time.monotonic() + timeout
    with subprocess.Popen(  # noqa: S603 - the programs are Postgres's, and no shell is involved
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
        cwd="/",
        env=program_environment(),
        start_new_session=True,
        user=account.uid if account else None,
        group=account.gid if account else None,
        extra_groups=groups,
        umask=0o077,
    ) as process:
        try:
            output = _read(process, deadline, kept)
            process.wait(max(0, deadline - time.monotonic()))
        except BaseException as error:
            with suppress(ProcessLookupError):  # the processes finished
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise ProgramTimeoutError from error
            raise
    return Finished(process.returncode, output.decode(errors="replace"))


def _read(process: subprocess.Popen[bytes], deadline: float, kept: int) -> bytes:
    """Read the output of a program to its end, and return the last part of it.

    Raise ProgramTimeoutError if the program does not finish in time.
    """
    assert process.stdout is not None
    output = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0 and selector.select(left):
            piece = os.read(process.stdout.fileno(), KEPT_OUTPUT)
            if not piece:
                return bytes(output)
            output += piece
            del output[:-kept]
    raise ProgramTimeoutError
