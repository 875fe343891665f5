"""Mixed faults: a call meets any number of them, and must report its outcome truthfully.

Many callers create keys, projects and branches, wait, list and revoke. Their requests pass a proxy
that injects faults into most of them. Meanwhile the control plane is killed and restarted on its
file, and clocks jump. At the end, each outcome is compared with the state of the control plane:

- A successful call was executed exactly once, and the operations that it waited for are finished.
- A result contains all operations of the call, and no others.
- A wait raises no error for a transient 404 or for a failure that Neon retries.
- A wait does not time out after a terminal record of each operation has arrived.
- A call gives up after a 429 only when its deadline is near.
- The status of an operation never goes back.
- An error that reports that nothing was done is right.
- An object that an error reports as created exists.
- No call takes longer than its limits, and only the library's exceptions are raised.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Collection, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from unittest import mock

from yarl import URL

from control_plane.tests.client import Http
from neonctl_async import NeonClient
from tests.support.server_process import serving
from tools.faults.callers import Caller, Outcome, client_of, run_call, short_pauses
from tools.faults.clocks import MODULES, ProcessClock, SuspendableLoop, jumping_wall_clock
from tools.faults.final_state import FinalState
from tools.faults.log import FaultLog
from tools.faults.proxy import PROXY_FAULTS, FaultProxy
from tools.faults.report import Report
from tools.faults.unreachable import UNREACHABLE, unreachable_clients

CALLERS = 60
PROJECTS = 4
SHARE = 0.7
"""The share of requests into which a fault is injected."""
UNREACHABLE_PAUSE = 0.1
"""The seconds between two calls of an unreachable client."""
LONGEST_BLOCK = 5.0
"""The seconds of CPU time for which the event loop may be blocked.

It usually needs 0.1 to 3 s. Virtual machines may lose their processors without noticing.
"""
SUSPENSION = 2.0
"""The seconds for which the machine is suspended, and twice as long until the next time."""
SUSPENDED, JUMPED = "the machine was suspended", "the wall clock jumped"
NAMES = (*PROXY_FAULTS, *UNREACHABLE, SUSPENDED, JUMPED)
"""All mixed faults, except that the control plane is killed."""


async def inject(
    report: Report,
    names: Collection[str],
    chance: random.Random,
    directory: Path,
    *,
    faults: int,
    seconds_between_kills: float,
) -> None:
    """Inject a number of faults, and kill the control plane at times."""
    data = directory / "mixed.db"
    mixed = MixedFaults(
        report, names, chance, data, faults=faults, seconds_between_kills=seconds_between_kills
    )
    await mixed.run()


class MixedFaults:
    """A control plane that is killed at times, and callers whose requests meet faults."""

    def __init__(
        self,
        report: Report,
        names: Collection[str],
        chance: random.Random,
        data: Path,
        *,
        faults: int,
        seconds_between_kills: float,
    ) -> None:
        self._report = report
        self._outcomes: list[Outcome] = []
        self._log = FaultLog()
        self._clock = ProcessClock()
        self._wanted = faults
        self._names = names
        self._chance = chance
        self._arguments = ("--data", str(data), "--duration", "0.05", "--lock", "none", "--quiet")
        self._seconds_between_kills = seconds_between_kills

    async def run(self) -> None:
        """Inject the faults and check the outcomes."""
        async with serving(*self._arguments) as served:
            base_url, key = served.base_url, served.api_key
            calls = asyncio.create_task(self._call_all(base_url, key))
            await asyncio.wait([calls], timeout=self._seconds_between_kills)
        # Leaving the context has killed the process.
        restart = (*self._arguments, "--port", str(URL(base_url).port))
        try:
            while not calls.done():
                async with serving(*restart):
                    await asyncio.wait([calls], timeout=self._seconds_between_kills)
            projects = await calls
        finally:
            calls.cancel()
        async with serving(*restart):
            await self._check(base_url, key, projects)

    async def _call_all(self, base_url: str, key: str) -> list[str]:
        """Make calls until there are enough faults; return the projects that the callers share."""
        async with Http(base_url, key) as http:
            created = [
                await http.request("POST", "/projects", {"project": {}}) for _ in range(PROJECTS)
            ]
        projects = [one["project"]["id"] for one in created]
        jumping = jumping_wall_clock(self._chance, lambda: self._count(JUMPED))
        async with AsyncExitStack() as stack:
            for module in MODULES if JUMPED in self._names else ():
                stack.enter_context(mock.patch(f"neonctl_async.{module}.datetime", jumping))
            stack.enter_context(short_pauses())
            proxy = FaultProxy(base_url, self._chance, SHARE, self._log, self._names)
            await stack.enter_async_context(proxy)
            unreachable = await stack.enter_async_context(unreachable_clients(key))
            async with running(self._clock.run()), asyncio.TaskGroup() as group:
                for number in range(CALLERS):
                    group.create_task(self._call(f"c{number}", proxy.base_url, key, projects))
                for name in unreachable.keys() & set(self._names):
                    group.create_task(self._call_unreachable(name, unreachable[name]))
                if SUSPENDED in self._names:
                    group.create_task(self._suspend())
        return projects

    @property
    def _is_over(self) -> bool:
        return self._log.counts.total() >= self._wanted

    async def _call(self, name: str, base_url: str, key: str, projects: list[str]) -> None:
        async with client_of(base_url, key) as neon:
            caller = Caller(name, neon, projects, self._chance.random(), self._clock)
            while not self._is_over:
                outcome = await caller.call()
                finished = self._log.finished
                outcome.too_early = [one.id for one in outcome.operations if one.id not in finished]
                self._outcomes.append(outcome)

    async def _call_unreachable(self, fault: str, neon: NeonClient) -> None:
        while not self._is_over:
            outcome = Outcome(kind="key", name=f"{fault} {len(self._outcomes)}")
            call = neon.api_keys.create(key_name=outcome.name)
            await run_call(outcome, call, self._clock)
            self._outcomes.append(outcome)
            for request_id in outcome.requests:
                self._log.add(request_id, fault)
            await asyncio.sleep(UNREACHABLE_PAUSE)

    async def _suspend(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SuspendableLoop)
        while not self._is_over:
            await asyncio.sleep(2 * SUSPENSION)
            loop.suspended += SUSPENSION
            self._count(SUSPENDED)

    def _count(self, fault: str) -> None:
        self._log.counts[fault] += 1

    async def _check(self, base_url: str, key: str, projects: list[str]) -> None:
        async with Http(base_url, key) as http:
            state = await FinalState.read(http, projects)
        report = self._report
        report.violations += state.violations(self._outcomes, self._log)
        if (blocked := self._clock.longest_block) > LONGEST_BLOCK:
            report.violations.append(f"the event loop was blocked for {blocked:.1f} s")
        report.faults += self._log.counts
        for outcome in self._outcomes:
            report.add_call({self._log.by_request.get(id, "") for id in outcome.requests}, outcome)


@asynccontextmanager
async def running(coroutine: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    """Run a coroutine in the background until the block ends."""
    task = asyncio.create_task(coroutine)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])
