"""Prism, which serves the published description and tells what in a request violates it."""

import re
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.contract.description import FOLDER
from tests.contract.node import node

_HANGS_UP = 'process.stdin.on("end", () => process.exit()).resume()'
"""Has Prism end with the tests, whatever ends them: its standard input is theirs."""
_START = 60.0


@contextmanager
def serving(description: Path) -> Generator[str]:
    """The address of a Prism that answers a violation with an error.

    Without its flag ``--errors``, which would have it refuse its own answers as well: a few of
    the documented ones violate their schema.
    """
    program = str(FOLDER / "node_modules" / ".bin" / "prism")
    command = [node(), "--import", f"data:text/javascript,{_HANGS_UP}", program, "mock"]
    command += ["--host", "127.0.0.1", "--port", "0", str(description)]
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        with (
            log.open("wb") as output,
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT
            ) as process,
        ):
            try:
                yield _address(process, log)
            finally:
                process.kill()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """The address that Prism listens on, once it does."""
    deadline = time.monotonic() + _START
    while time.monotonic() < deadline and process.poll() is None:
        told = re.search(r"Prism is listening on (\S+)", log.read_text())
        if told:
            return told[1]
        time.sleep(0.05)
    raise RuntimeError(f"Prism did not start: {log.read_text()[-2000:]}")
