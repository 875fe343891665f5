"""Short runs of Postgres programs, with a time limit."""

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from neonctl_async.local.postgres.account import ServerAccount

_KEPT_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR")


class Finished(NamedTuple):
    """The exit status of a program, and its output and messages in the order they appeared."""

    status: int
    output: str


class ProgramTimeoutError(Exception):
    """A program was killed, because it did not finish in its time."""


def program_environment() -> dict[str, str]:
    """Return the environment variables of Postgres programs.

    Other variables are removed: some change the programs (``PGDATA``), others are secrets of the
    control plane. Messages are in English. The time zone is GMT, as at Neon.
    """
    kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    return kept | {"LC_ALL": "C", "TZ": "GMT"}


def run_program(
    command: Sequence[str | Path], *, timeout: float, account: ServerAccount | None = None
) -> Finished:
    """Run a program, as another account if one is given, and return its result.

    The program and its children are killed after ``timeout`` seconds: this raises
    ProgramTimeoutError. Raise OSError if the program cannot be started.
    """
    identity = (account.uid, account.gid, []) if account else (None, None, None)
    user, group, extra_groups = identity
    with subprocess.Popen(  # noqa: S603 - the programs are Postgres's, and no shell is involved
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        env=program_environment(),
        start_new_session=True,
        user=user,
        group=group,
        extra_groups=extra_groups,
        umask=0o077,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except BaseException as error:
            with suppress(ProcessLookupError):  # the group ended by itself
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise ProgramTimeoutError from error
            raise
    return Finished(process.returncode, output.decode(errors="replace"))
