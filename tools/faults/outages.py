"""Outages: nothing is executed meanwhile, so each call is retried until it succeeds.

Client and control plane run on a fake clock. The client has the default settings.
"""

import asyncio
import random
import socket
from collections.abc import Collection
from pathlib import Path

from control_plane.tests.client import Http
from neonctl_async import NeonClient
from neonctl_async.testing import loop_clock
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.support.clock import now
from tools.faults.callers import NOTES, PATIENT, Caller, Outcome
from tools.faults.final_state import FinalState
from tools.faults.log import FaultLog
from tools.faults.report import Report

UNAVAILABLE, REFUSED = "503 for every request", "connections refused"
OUTAGES = {
    f"{kind} for {seconds:g} s": (kind, seconds)
    for kind in (UNAVAILABLE, REFUSED)
    for seconds in (3.0, 10.0)
}
"""The kind of each outage, and its length in seconds."""
ROUNDS = 4
"""The number of times that each outage happens."""
CALLERS = 10
QUIET = 6.0
"""The seconds before and after an outage in which callers start calls."""
PAUSE = 2.0
"""The longest time between two calls of a caller, in seconds."""


async def inject(
    report: Report, names: Collection[str], chance: random.Random, directory: Path
) -> None:
    """Let callers meet each outage some times."""
    for number, name in enumerate([*names] * ROUNDS):
        outage = Outage(*OUTAGES[name], chance, directory / f"outage-{number}.db")
        calls, violations = await outage.run()
        report.faults[name] += 1
        report.violations += violations
        for call in calls:
            report.add_call_that_may_not_fail(name, call)


class Outage:
    """A control plane that cannot be used for some time."""

    def __init__(self, kind: str, seconds: float, chance: random.Random, data: Path) -> None:
        self._kind = kind
        self._seconds = seconds
        self._chance = chance
        self._data = data
        self._outcomes: list[Outcome] = []
        self._affected: list[Outcome] = []
        self._started = self._ended = 0.0
        self._is_over = False

    async def run(self) -> tuple[list[Outcome], list[str]]:
        """Make calls. Return those that met the outage, and the violations of all."""
        async with LocalControlPlane(
            data=self._data,
            port=_free_port(),  # the same one after a restart
            durations=Durations(default=self._chance.uniform(0.1, QUIET)),
            rate_limits=True,
            lock="none",
            clock=loop_clock(),
        ) as control_plane:
            base_url, key = control_plane.base_url, control_plane.api_key
            async with (
                Http(base_url, key) as http,
                NeonClient(key, base_url=base_url, hooks=[NOTES]) as neon,
            ):
                created = await http.request("POST", "/projects", {"project": {}})
                project = created["project"]["id"]
                async with asyncio.TaskGroup() as group:
                    for number in range(CALLERS):
                        group.create_task(self._call(f"c{number}", neon, project))
                    await self._break_down(control_plane)
                state = await FinalState.read(http, [project])
        return self._affected, [*state.violations(self._outcomes, FaultLog())]

    async def _break_down(self, control_plane: LocalControlPlane) -> None:
        await asyncio.sleep(QUIET)
        self._started = now()
        if self._kind == UNAVAILABLE:
            control_plane.inject(Fault(status=503))
            await asyncio.sleep(self._seconds)
            control_plane.clear_faults()
        else:
            await control_plane.stop()
            await asyncio.sleep(self._seconds)
            await control_plane.start()
        self._ended = now()
        await asyncio.sleep(QUIET)
        self._is_over = True

    async def _call(self, name: str, neon: NeonClient, project: str) -> None:
        caller = Caller(name, neon, [project], self._chance.random(), now, limits=PATIENT)
        while not self._is_over:
            await asyncio.sleep(self._chance.uniform(0, PAUSE))
            began = now()
            outcome = await caller.call()
            self._outcomes.append(outcome)
            if self._started and now() > self._started and began < (self._ended or now()):
                self._affected.append(outcome)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
