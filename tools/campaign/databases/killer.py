"""Kills processes at random moments, and checks what must happen next."""

import asyncio
import os
import random
import signal
import subprocess

from benchmarks.servers.queries import DRIVER_ERRORS, fetch_number
from neonctl_local.postgres.binaries import find_installations
from tools.campaign.databases.rows import BranchLedger
from tools.campaign.databases.server import Server
from tools.campaign.report import Report
from tools.processes import Process

CONTROL_PLANE, GUARDIAN = "control plane", "guardian"
BOTH = "guardian and control plane"
POSTMASTER, BACKEND, CLIENT = "Postgres server", "Postgres backend", "client of the proxy"
ARCHIVER = "archiver"
WEIGHTS = {CONTROL_PLANE: 5, GUARDIAN: 1, BOTH: 2, POSTMASTER: 3, BACKEND: 3, CLIENT: 2}
LONG_COPY = "COPY (SELECT generate_series(1, 1000000000)) TO STDOUT"
STILL_COPYING = """
SELECT count(*) FROM pg_stat_activity WHERE starts_with(query, 'COPY (SELECT') AND state = 'active'
"""
FOLLOW_UP_SECONDS = 45.0
"""The time within which a new guardian runs, and the server process of a killed client ends."""


class Killer:
    """Kills processes, one after another."""

    def __init__(
        self, server: Server, root: BranchLedger, report: Report, chance: random.Random
    ) -> None:
        self._server = server
        self._root = root
        self._report = report
        self._chance = chance
        self._kinds = {
            CONTROL_PLANE: self._kill_control_plane,
            GUARDIAN: self._kill_guardian,
            BOTH: self._kill_both,
            POSTMASTER: self._kill_postmaster,
            BACKEND: self._kill_backend,
            CLIENT: self._kill_client,
        }
        self._weights = dict(WEIGHTS)
        if server.history:
            self._kinds[ARCHIVER] = self._kill_archiver
            self._weights[ARCHIVER] = 3
        if server.recycled:
            # Nothing outlives the control plane, and a client of the root branch would start it.
            for kind in (CONTROL_PLANE, BOTH, CLIENT):
                del self._kinds[kind], self._weights[kind]

    async def run(self, kills: int, pause: float) -> None:
        """Kill processes with random pauses; each kind at least once if there are enough kills."""
        kinds = [*self._kinds] if kills >= len(self._kinds) else []
        kinds += self._chance.choices(
            [*self._weights], [*self._weights.values()], k=kills - len(kinds)
        )
        self._chance.shuffle(kinds)
        for kind in kinds:
            found = False
            while not found:  # on a slow machine, it may take some time until such a process runs
                await asyncio.sleep(self._chance.uniform(0, 2 * pause))
                self._server.data_directories()
                found = await self._kinds[kind]()
            self._report.faults[kind] += 1

    async def _kill_control_plane(self) -> bool:
        await self._server.kill()
        if self._chance.random() < 0.5:
            await self._expect_no_processes()
        else:
            await asyncio.sleep(self._chance.uniform(0, 0.3))
        await self._server.start()
        return True

    async def _kill_guardian(self) -> bool:
        before = self._server.guardians()
        if not _kill_any(before, self._chance):
            self._report.violations.append("no guardian runs")
            return False
        pids = {one.pid for one in before}
        for _ in range(int(FOLLOW_UP_SECONDS / 0.05)):
            if any(one.pid not in pids for one in self._server.guardians()):
                return True
            await asyncio.sleep(0.05)
        self._report.violations.append("no new guardian runs after the first one was killed")
        return True

    async def _kill_both(self) -> bool:
        """Kill the guardian and at once the control plane: the next start must clean up."""
        _kill_any(self._server.guardians(), self._chance)
        await self._server.kill()
        await self._server.start()
        return True

    async def _kill_postmaster(self) -> bool:
        self._server.crash()
        return _kill_any(self._server.postmasters(), self._chance)

    async def _kill_backend(self) -> bool:
        self._server.crash()
        return _kill_any(self._server.backends(), self._chance)

    async def _kill_archiver(self) -> bool:
        """Kill the process that archives WAL, or its command halfway."""
        self._server.crash()
        return _kill_any(self._server.archivers(), self._chance)

    async def _kill_client(self) -> bool:
        """Kill a client that reads a long result: its server process must end."""
        psql = next(iter(find_installations().values())).program("psql")
        client = await asyncio.create_subprocess_exec(
            *(str(psql), "-X", "-q", "-c", LONG_COPY, self._root.uris[0]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        await asyncio.sleep(self._chance.uniform(0.1, 0.5))
        killed = client.returncode is None
        if killed:
            client.kill()
        await client.wait()
        for _ in range(int(FOLLOW_UP_SECONDS / 0.1)):
            if await self._copies() == 0:
                return killed
            await asyncio.sleep(0.1)
        self._report.violations.append("the server still works for a client that was killed")
        return killed

    async def _copies(self) -> int | None:
        try:
            return await fetch_number(self._root.uris[0], STILL_COPYING)
        except DRIVER_ERRORS as error:
            self._report.add_error(error)
            return None

    async def _expect_no_processes(self) -> None:
        for process in await self._server.without_processes():
            self._report.violations.append(f"still running after a kill: {process.command}")


def _kill_any(processes: list[Process], chance: random.Random) -> bool:
    """Kill one of these processes; return False if there is none."""
    if not processes:
        return False
    try:
        os.kill(chance.choice(processes).pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
