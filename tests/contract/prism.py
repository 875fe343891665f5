"""Prism, a server that validates requests against the published description."""

import re
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.contract.description import FOLDER, Description
from tests.contract.node import node

_EXIT_WITH_TESTS = 'process.stdin.on("end", () => process.exit()).resume()'
"""Stops Prism when the tests stop, even after a crash: they hold its standard input."""


@contextmanager
def prism_server(description: Description) -> Generator[str]:
    """Start Prism, which returns an error for each violation. Yield its address.

    Its option ``--errors`` is off, because Prism would then also reject its own responses. Some of
    the documented examples violate their schema.
    """
    program = str(FOLDER / "node_modules" / ".bin" / "prism")
    command = [node(), "--import", f"data:text/javascript,{_EXIT_WITH_TESTS}", program, "mock"]
    with TemporaryDirectory() as folder:
        document, log = Path(folder) / "description.json", Path(folder) / "log"
        description.write(document)
        command += ["--host", "127.0.0.1", "--port", "0", str(document)]
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
    """Wait until Prism listens, and return its address."""
    while process.poll() is None:
        listening = re.search(r"Prism is listening on (\S+)", log.read_text())
        if listening:
            return listening[1]
        time.sleep(0.05)
    raise RuntimeError(f"Prism did not start: {log.read_text()[-2000:]}")
