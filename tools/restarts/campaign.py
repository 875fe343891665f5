"""The campaign: writers change a server process that is killed and restarted on its file.

- Everything that a response confirmed is there, once.
- A request without a response took effect once or not at all.
- A revoked key stays revoked. A value never goes back to an earlier one.
- Every operation is listed once, and reaches a final status.
- No response has an unexpected status, and no process logs a traceback.
"""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from control_plane.tests.client import Http
from tests.support.server_process import Served, serving
from tools.restarts.writer import LostResponseError, Run, Writer

SECONDS_OF_AN_OPERATION = 0.05
FIRST_PAUSE = 0.1
"""The shortest time between the start of a server and its kill, in seconds."""


class Campaign:
    """One campaign on one file."""

    def __init__(self, data: Path, writers: int, seed: int) -> None:
        self._run = Run()
        self.findings = self._run.findings
        self._chance = random.Random(seed)
        self._writers = [
            Writer(number, self._run, random.Random(self._chance.random()))
            for number in range(writers)
        ]
        duration = str(SECONDS_OF_AN_OPERATION)
        self._arguments = ("--data", str(data), "--duration", duration, "--quiet")

    async def run(self, kills: int, pause: float) -> None:
        """Run the writers, kill the server, and compare everything at the end."""
        async with (
            serving(*self._arguments) as served,
            Http(served.base_url, served.api_key) as self._run.http,
        ):
            self._run.up.set()
            for writer in self._writers:
                await writer.create_project()
            async with asyncio.TaskGroup() as tasks:
                for writer in self._writers:
                    tasks.create_task(writer.work())
                await self._kill_after(served, pause)
                for _ in range(kills - 1):
                    async with self._restarted() as restarted:
                        await self._kill_after(restarted, pause)
                self._run.over = True
                self._run.up.set()  # Writers that wait for the next server send a last request.
            async with self._restarted() as last:
                await asyncio.sleep(4 * SECONDS_OF_AN_OPERATION)
                await self._check()
                await self._kill(last)

    async def _check(self) -> None:
        listed = [key["name"] for key in await self._run.http.get("/api_keys")]
        for writer in self._writers:
            writer.check_keys(listed)
            try:
                await writer.check()
            except LostResponseError as error:
                self.findings.violations.append(f"the data could not be compared: {error}")

    @asynccontextmanager
    async def _restarted(self) -> AsyncGenerator[Served]:
        async with serving(*self._arguments, first=False) as served:
            self._run.http.base_url = served.base_url
            self._run.up.set()
            yield served

    async def _kill_after(self, served: Served, pause: float) -> None:
        await asyncio.sleep(FIRST_PAUSE + self._chance.uniform(0, 2 * pause))
        self._run.up.clear()
        await self._kill(served)

    async def _kill(self, served: Served) -> None:
        log = await served.kill()
        if "Traceback" in log:
            self.findings.violations.append(f"the log has a traceback: {log}")

    def report(self) -> str:
        """Return the number of requests, by status, and of lost responses."""
        statuses = ", ".join(
            f"{n} x {status}" for status, n in sorted(self.findings.statuses.items())
        )
        return f"responses: {statuses}; requests without a response: {self.findings.lost_responses}"
