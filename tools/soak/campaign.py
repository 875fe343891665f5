"""The campaign: writers change a server process that is killed and restarted on its file.

- Everything that a response confirmed is there, once.
- A request without a response took effect once or not at all.
- A revoked key stays revoked. A value never goes back to an earlier one.
- Every operation is listed once, and reaches one final status.
- No response has an unexpected status, and no process logs a traceback.
- The memory of a process does not grow under load.
"""

import asyncio
import random
import resource
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from control_plane.tests.client import Http
from tests.support.server_process import Served, serving
from tools.soak.project import Project
from tools.soak.run import LostResponseError, Run
from tools.soak.writer import Writer

SECONDS_OF_AN_OPERATION = 0.05
FIRST_PAUSE = 0.1
"""The shortest time between the start of a server and its kill, in seconds."""
SETTLING = 1.0
"""The time in which all operations finish, in seconds."""
MEGABYTE = 1 << 20
GROWTH = 8 * MEGABYTE
"""The growth of a process that counts as a leak, in bytes."""


class Campaign:
    """One campaign on one file. Writer 0 works in project 0, writer 1 in project 1, and so on."""

    def __init__(self, data: Path, *, writers: int, projects: int, seed: int) -> None:
        self.state = Run()
        self._chance = random.Random(seed)
        self._projects = [Project(self.state, f"project-{number}") for number in range(projects)]
        self._writers = [
            Writer(
                number,
                self.state,
                self._projects[number % projects],
                random.Random(self._chance.random()),
            )
            for number in range(writers)
        ]
        duration = str(SECONDS_OF_AN_OPERATION)
        self._arguments = ("--data", str(data), "--duration", duration, "--lock", "none", "--quiet")
        self._memory: list[int] = []

    async def run(self, kills: int, pause: float, seconds: float) -> None:
        """Run the writers, kill servers, measure the last one, and compare everything."""
        async with (
            serving(*self._arguments) as served,
            Http(served.base_url, served.api_key) as self.state.http,
        ):
            self.state.up.set()
            for project in self._projects:
                await project.create()
            async with asyncio.TaskGroup() as group:
                writing = [
                    group.create_task(writer.work(renames=number < len(self._projects)))
                    for number, writer in enumerate(self._writers)
                ]
                await self._kill_after(served, pause)
                for _ in range(kills - 1):
                    async with self._restarted() as restarted:
                        await self._kill_after(restarted, pause)
                async with self._restarted() as last:
                    await self._measure(last, seconds)
                    self.state.over = True
                    await asyncio.wait(writing)
                    await asyncio.sleep(SETTLING)
                    await self._check()
                    await self._kill(last)

    def report(self) -> str:
        """Return the number of requests, by status, and of lost responses, and the memory."""
        statuses = ", ".join(f"{n} x {status}" for status, n in sorted(self.state.statuses.items()))
        early, late = _halves(self._memory)
        return (
            f"responses: {statuses}; requests without a response: {self.state.lost_responses}; "
            f"memory: {early / MEGABYTE:.1f} MiB, then {late / MEGABYTE:.1f} MiB"
        )

    async def _check(self) -> None:
        listed = [key["name"] for key in await self.state.http.get("/api_keys")]
        for writer in self._writers:
            writer.check_keys(listed)
        for project in self._projects:
            try:
                await project.check()
            except LostResponseError as error:
                self.state.violations.append(f"the data could not be compared: {error}")
        early, late = _halves(self._memory)
        if early and late - early > GROWTH:
            self.state.violations.append(f"memory grew from {early:.0f} to {late:.0f} bytes")

    async def _measure(self, served: Served, seconds: float) -> None:
        """Measure the memory of a process for some time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await asyncio.sleep(min(1.0, seconds / 10))
            self._memory.append(await asyncio.to_thread(_resident, served.process.pid))

    @asynccontextmanager
    async def _restarted(self) -> AsyncGenerator[Served]:
        async with serving(*self._arguments) as served:
            self.state.http.base_url = served.base_url
            self.state.up.set()
            yield served

    async def _kill_after(self, served: Served, pause: float) -> None:
        await asyncio.sleep(FIRST_PAUSE + self._chance.uniform(0, 2 * pause))
        self.state.up.clear()
        await self._kill(served)

    async def _kill(self, served: Served) -> None:
        log = await served.kill()
        if "Traceback" in log:
            self.state.violations.append(f"the log has a traceback: {log}")


def _halves(numbers: list[int]) -> tuple[float, float]:
    """Return the means of both halves, without the first fifth, in which a process warms up."""
    steady = numbers[len(numbers) // 5 :]
    middle = len(steady) // 2
    return _mean(steady[:middle]), _mean(steady[middle:])


def _mean(numbers: list[int]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def _resident(pid: int) -> int:
    """Return the memory of a process in bytes, or 0 if the system does not report it."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0
