"""The client side of the simulator: starts it, starts operations in it, and gets its report.

::

    async with SimulatorProcess(Settings(round_trip=0.05)) as server:
        operations = await server.start({"project": [1.0, 2.5]})
        ...  # wait for them through server.base_url
        report = await server.report()
"""

import sys
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterable
from pathlib import Path
from typing import Self

import aiohttp
import msgspec

from benchmarks.servers.control_plane import API, Report, Settings, Start
from neonctl_async import Operation

ROOT = Path(__file__).parents[2]


class SimulatorProcess:
    """A simulator in its own process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._process: Process | None = None
        self._http: aiohttp.ClientSession | None = None
        self._origin = ""

    async def __aenter__(self) -> Self:
        settings = msgspec.json.encode(self._settings).decode()
        self._process = await create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.servers.simulator", settings),
            cwd=ROOT,
            stdin=PIPE,
            stdout=PIPE,
        )
        assert self._process.stdout is not None
        port = int(await self._process.stdout.readline())
        self._origin = f"http://127.0.0.1:{port}"
        self._http = aiohttp.ClientSession(self._origin, raise_for_status=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.close()
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()  # ends the process
            await self._process.wait()

    @property
    def base_url(self) -> str:
        """The base URL of the API."""
        return self._origin + API

    async def start(self, seconds_by_project: Start) -> list[Operation]:
        """Start operations that take these seconds; the report does not count this request."""
        order = msgspec.json.encode(seconds_by_project)
        started = await self._send("POST", "/control/start", order)
        return msgspec.json.decode(started, type=list[Operation])

    async def report(self) -> Report:
        """Return the report of everything so far."""
        return msgspec.json.decode(await self._send("GET", "/control/report"), type=Report)

    async def _send(self, method: str, path: str, body: bytes | None = None) -> bytes:
        assert self._http is not None
        async with self._http.request(method, path, data=body) as response:
            return await response.read()


def last_finish(report: Report, operations: Iterable[Operation]) -> float:
    """Return when the last of these operations finished, by the simulator's clock."""
    return max(report.finishes[operation.id] for operation in operations)
