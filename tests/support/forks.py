"""Processes that begin within milliseconds: forked from one that has imported everything.

Starting Python and importing the package takes a third of a second and more.
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
    """Runs of a script, each in a process of its own, one after another."""

    def __init__(self, server: "subprocess.Popen[str]") -> None:
        self._server = server
        self._pid = 0

    async def start(self, *arguments: str, environment: Mapping[str, str], output: Path) -> None:
        """Have a process begin."""
        self._pid = await self._order(str(output), dict(environment), *arguments)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Signal the process wherever it is. Until :meth:`end`, its id is no other's."""
        os.kill(self._pid, number)

    async def end(self) -> int:
        """The exit code of the process, once it has ended."""
        try:
            return await self._order()
        except asyncio.CancelledError:
            self.kill()  # or the thread that waits for it would wait on
            raise

    async def _order(self, *order: object) -> int:
        return await asyncio.to_thread(self._exchange, json.dumps(order))

    def _exchange(self, line: str) -> int:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(f"{line}\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())


@contextmanager
def forks_of(script: Path) -> Generator[Forks]:
    """Have runs of ``script``, warnings being errors."""
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-m", __name__, script],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if "NEON_" not in name},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        yield Forks(server)


def serve(script: str) -> None:
    """Start a process an order and tell its id; at the next order reap it and tell its exit."""
    sys.path.insert(0, str(Path(script).parent))  # as Python does
    runpy.run_path(script)  # not as __main__: it imports, and no more
    asyncio.run(anyio.lowlevel.checkpoint())  # what anyio imports when it is first used
    while line := sys.stdin.readline():
        pid = os.fork()
        if not pid:
            become(script, *json.loads(line))
            return
        tell(pid)
        if not sys.stdin.readline():  # the tests have ended, or failed
            os.kill(pid, signal.SIGKILL)
        tell(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def tell(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def become(script: str, output: str, environment: Mapping[str, str], *arguments: str) -> None:
    """Run the script, as Python does when it is given one."""
    with Path(output).open("ab") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    # As at a terminal: a shell that starts the tests in the background has them ignore SIGINT.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ |= environment
    sys.argv = [script, *arguments]
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1])
