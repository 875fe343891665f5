"""Runs the command line in forks of a process that has imported it, which is quick.

Reads cases from standard input, one JSON object per line. A case has ``arguments``, the kind of
standard output (``stdout``), an environment (``env``) and a working directory (``cwd``). Prints the
exit status and the standard error of each case, as one line of JSON.
"""

import gc
import json
import os
import sys
import tempfile
from typing import Any, NoReturn

from neonctl_async import NeonClient, progress  # imported before the forks
from neonctl_async.cli import running
from neonctl_async.cli.app import ENTRIES, app, load
from neonctl_async.cli.streams import exit_with

IMPORTED = (NeonClient, progress, running)


def redirect(kind: str) -> None:
    """Replace standard output as a shell would do it before the program starts."""
    os.close(1)
    match kind:
        case "closed":
            sys.stdout = None  # as Python does at its start
            return
        case "full":
            os.open("/dev/full", os.O_WRONLY)
        case "broken":
            reader, writer = os.pipe()
            os.close(reader)
            if writer != 1:
                os.dup2(writer, 1)
        case _:
            os.open(os.devnull, os.O_WRONLY)
    sys.stdout = os.fdopen(1, "w", closefd=False)


def run(case: dict[str, Any], stderr: int) -> NoReturn:
    """Run a case in this process, which is a fork."""
    os.environ.update(case["env"])
    os.chdir(case["cwd"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(stderr, 2)
    redirect(case["stdout"])
    exit_with(lambda: app(case["arguments"], prog_name="neonctl-async"))


def main() -> None:
    for name in ENTRIES:
        load(name)
    gc.freeze()  # the end of each fork would else visit, and copy, all objects
    for line in sys.stdin:
        with tempfile.TemporaryFile() as stderr:
            if (child := os.fork()) == 0:
                run(json.loads(line), stderr.fileno())
            _, status = os.waitpid(child, 0)
            stderr.seek(0)
            outcome = [os.waitstatus_to_exitcode(status), stderr.read().decode()]
        sys.stdout.write(json.dumps(outcome) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
