"""The command in a separate process."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

_SLOW = re.compile(r"(?:\S+ \S+ WARNING asyncio )?Executing <.*> took \d+\.\d+ seconds$")


class Served:
    """A server process, and the variables that it printed."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.base_url = self.api_key = ""

    async def console_url(self) -> str:
        """Return the link that the server has printed to standard error."""
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            if line.startswith(b"console: "):
                return line.decode().strip().removeprefix("console: ")
        raise AssertionError("the server printed no link")

    async def kill(self) -> str:
        """Kill the process. Return its log."""
        self.process.kill()
        _, err = await self.process.communicate()
        return err.decode()

    async def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int | None, str, str]:
        """Send a signal. Return the exit status, and the output since the last read.

        The warnings of asyncio's debug mode about slow callbacks are left out: they depend on the
        load of the machine.
        """
        self.process.send_signal(number)
        out, err = await self.process.communicate()
        lines = [line for line in err.decode().splitlines(True) if not _SLOW.match(line)]
        return self.process.returncode, out.decode(), "".join(lines)


@asynccontextmanager
async def serving(*arguments: str) -> AsyncGenerator[Served, None]:
    """Run the command on a free port with warnings as errors."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "error", "-m", "neonctl_local", "--port", "0"),
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONDEVMODE": "1"},
    )
    served = Served(process)
    try:
        served.base_url = await _exported(process, "NEON_API_HOST")
        served.api_key = await _exported(process, "NEON_API_KEY")
        yield served
    finally:
        if process.returncode is None:
            await served.kill()


async def _exported(process: asyncio.subprocess.Process, name: str) -> str:
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    assert line.startswith(f"export {name}="), (line, (await process.communicate())[1].decode())
    return line.strip().partition("=")[2]
