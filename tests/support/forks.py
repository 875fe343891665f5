"""Runs a script in processes that start within milliseconds.

They are forked from a server process that has imported everything. Starting Python and importing
the package would take a third of a second or more.
"""

import asyncio
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import anyio.lowlevel

ROOT = Path(__file__).parents[2]


class Forks:
    """Runs a script repeatedly, each time in a new process."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server
        self._pid = 0

    async def start(self, *arguments: str, environment: Mapping[str, str], output: Path) -> None:
        """Start a process."""
        self._pid = await self._request(str(output), dict(environment), *arguments)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the process. Its id cannot be reused before :meth:`end`."""
        os.kill(self._pid, number)

    async def end(self) -> int:
        """Wait for the process, and return its exit code."""
        try:
            return await self._request()
        except asyncio.CancelledError:
            self.kill()  # otherwise the thread that waits for the process never returns
            raise

    async def _request(self, *request: object) -> int:
        return await asyncio.to_thread(self._exchange, json.dumps(request))

    def _exchange(self, line: str) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{line}\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


@contextmanager
def forks_of(script: Path) -> Generator[Forks]:
    """Start a server process that runs ``script`` on request, with warnings as errors."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", __name__, script],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if "NEON_" not in name},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Forked processes write to a file, through the stream that they get from this one.
        stderr=subprocess.DEVNULL if sys.stderr is None else None,
        text=True,
    ) as server:
        yield Forks(server)


def serve(script: str) -> None:
    """Handle requests: alternately start a process and wait for it.

    The responses are the id of the process and its exit code.
    """
    sys.path.insert(0, str(Path(script).parent))  # as Python does for a script
    runpy.run_path(script)  # imports the script; its __name__ is not __main__
    asyncio.run(anyio.lowlevel.checkpoint())  # imports what anyio imports at the first use
    while line := sys.stdin.readline():
        pid = os.fork()
        if not pid:
            run_script(script, *json.loads(line))
            return
        respond(pid)
        if not sys.stdin.readline():  # the tests have finished or failed
            os.kill(pid, signal.SIGKILL)
        respond(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def respond(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def run_script(script: str, output: str, environment: Mapping[str, str], *arguments: str) -> None:
    """Run the script as ``python SCRIPT`` does."""
    with Path(output).open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    # As at a terminal: a shell that starts the tests in the background has them ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ |= environment
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1])
