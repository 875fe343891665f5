"""The local control plane with Postgres, as a process that is killed and started again."""

import asyncio
import math
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from benchmarks.servers.nginx import free_port
from tools.processes import Process, running_in, tree

START_SECONDS = 90.0
"""The longest allowed start. It takes a second, and half a minute on a very busy machine."""
STOP_SECONDS = 60.0
"""The longest allowed clean stop."""
CRASH_SECONDS = 2.0
"""The seconds after the kill of a Postgres process in which operations may fail."""
GUARDIAN_SECONDS = 60.0
"""The time within which the guardian must stop all servers of a killed control plane."""


class ServerError(Exception):
    """The control plane did not start or stop as it must."""


class Server:
    """The process. Its data, its temporary files and its log are in one directory.

    With ``recycled``, it keeps nothing after its end, and uses databases of deleted branches again.
    """

    def __init__(self, directory: Path, *, history: bool = False, recycled: bool = False) -> None:
        self.directory = directory
        self.history = history
        self.recycled = recycled
        self.databases: set[Path] = set()
        """All data directories that were seen."""
        self.up = asyncio.Event()
        self.base_url = self.api_key = ""
        self.starts = 0
        self._crashed_at = -math.inf
        self._temporary = directory / "tmp"
        self._temporary.mkdir(mode=0o711)
        self._log = directory / "log"
        self._process: asyncio.subprocess.Process | None = None
        self._ports = (free_port(), free_port())

    @property
    def log(self) -> str:
        """The warnings of the control plane."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    async def start(self) -> None:
        """Start the control plane on its data, and wait until it serves."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", *self._program()),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=os.environ | {"TMPDIR": str(self._temporary), "PYTHONDEVMODE": "1"},
            )
        try:
            async with asyncio.timeout(START_SECONDS):
                self.base_url = await self._exported("NEON_API_HOST")
                self.api_key = self.api_key or await self._exported("NEON_API_KEY")
        except (TimeoutError, ValueError) as error:
            raise ServerError(
                f"start {self.starts} failed: {error!r}: {self.log[-2000:]}"
            ) from error
        self.starts += 1
        self.up.set()

    async def recycle(self, branch_id: str) -> None:
        """Keep copies of a branch ready from now on."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{branch_id}\n".encode())
        await self._process.stdin.drain()

    async def kill(self) -> None:
        """Kill the control plane."""
        assert self._process is not None
        self.up.clear()
        self._process.kill()
        await self._process.wait()

    async def stop(self) -> None:
        """Stop the control plane cleanly."""
        assert self._process is not None
        self.up.clear()
        self._process.terminate()
        try:
            status = await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        except TimeoutError:
            await self.kill()
            raise ServerError(f"the control plane runs {STOP_SECONDS} s after SIGTERM") from None
        if status != 0:
            raise ServerError(f"the control plane stopped with exit status {status}")

    async def end(self) -> None:
        """Kill everything that still runs."""
        if self._process is not None and self._process.returncode is None:
            await self.kill()
        for process in await asyncio.to_thread(self.processes):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)

    def crash(self) -> None:
        """Record that a Postgres process is killed now. That may let an operation fail."""
        self._crashed_at = time.monotonic()

    def crashed_since(self, moment: float) -> bool:
        """Return whether a process was killed since a moment, or shortly before it.

        Postgres ends all other sessions too, a moment after one of its processes was killed.
        """
        return self._crashed_at > moment - CRASH_SECONDS

    def guardians(self) -> list[Process]:
        """Return the running guardians of this control plane."""
        assert self._process is not None
        return [one for one in tree(self._process.pid) if "guardian" in one.command]

    def postmasters(self) -> list[Process]:
        """Return the Postgres servers that run."""
        servers = [one for one in self.processes() if one.name == "postgres"]
        pids = {one.pid for one in servers}
        return [one for one in servers if one.parent not in pids]

    def archivers(self) -> list[Process]:
        """Return the processes that archive WAL, and their commands."""
        return [
            one for one in self.processes() if "archiver" in one.command or one.name in {"sh", "ln"}
        ]

    def backends(self) -> list[Process]:
        """Return the processes of Postgres servers that serve a client."""
        return [one for one in self.processes() if "[local]" in one.command]

    def processes(self) -> list[Process]:
        """Return the processes that work on the data of this control plane, without itself."""
        own = self._process.pid if self._process is not None else 0
        return [one for one in running_in(self.directory) if one.pid not in (own, os.getpid())]

    def temporary_files(self) -> list[Path]:
        """Return the temporary files and directories."""
        return list(self._temporary.iterdir())

    def data_directories(self) -> list[Path]:
        """Return all data directories of Postgres, without the copies of the history."""
        found = [path.parents[1] for path in self.directory.rglob("global/pg_control")]
        directories = [path for path in found if path.parent.suffix != ".history"]
        self.databases.update(directories)
        return directories

    async def without_processes(self) -> list[Process]:
        """Wait until no process is left; return those that are left after the time limit."""
        deadline = time.monotonic() + GUARDIAN_SECONDS
        left = await asyncio.to_thread(self.processes)
        while left and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
            left = await asyncio.to_thread(self.processes)
        return left

    def _program(self) -> list[str]:
        """Return the module that runs, and its arguments."""
        http, postgres = (str(port) for port in self._ports)
        if self.recycled:
            return ["tools.campaign.databases.recycling", http, postgres]
        return [
            *("neonctl_local", "--port", http, "--quiet", "--no-console", "--duration", "0"),
            *("--lock", "none"),  # several workers change a project at the same time
            *("--data", str(self.directory / "plane.db")),
            *("--postgres", "--postgres-port", postgres),
            *(["--history"] if self.history else []),
        ]

    async def _exported(self, name: str) -> str:
        assert self._process is not None
        assert self._process.stdout is not None
        line = (await self._process.stdout.readline()).decode()
        found, _, value = line.removeprefix("export ").strip().partition("=")
        if found != name:
            raise ValueError(f"the first lines have {line!r}: expected {name}")
        return value
