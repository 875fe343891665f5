"""Callers whose requests meet faults, while the control plane is killed and clocks jump.

Many callers create keys, projects, branches and roles, wait, list, rename and delete. Their
requests pass a proxy, which injects faults into most of them, or none if only kills are wanted.
Each kill restarts the control plane on its file. At the end, each outcome is compared with the
state of the control plane:

- A successful call was executed exactly once, and the operations that it waited for are finished.
- A result contains all operations of the call, and no others.
- A wait raises no error for a transient 404 or for a failure that Neon retries.
- A wait does not time out after a terminal record of each operation has arrived.
- A call gives up after a 429 only when its deadline is near.
- The status of an operation never goes back, and a name never goes back to an earlier one.
- An error that reports that nothing was done is right.
- An object that an error reports as created exists. A revoked key is rejected, and no other one.
- No call takes longer than its limits, and only the library's exceptions are raised.
- The control plane rejects no request, logs no traceback, and needs no more memory under load.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import fmean
from unittest import mock

from yarl import URL

from control_plane.tests.client import Http
from neonctl_async import NeonClient
from tests.support.server_process import Served, serving
from tools.campaign.callers import Caller, Shared, client_of, short_pauses
from tools.campaign.clocks import MODULES, ProcessClock, SuspendableLoop, jumping_wall_clock
from tools.campaign.final_state import FinalState
from tools.campaign.outcomes import FaultLog, Outcome, run_call
from tools.campaign.proxy import KILLED, PROXY_FAULTS, FaultProxy
from tools.campaign.report import Run
from tools.campaign.unreachable import UNREACHABLE, unreachable_clients
from tools.processes import megabytes, tree

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
SETTLING = 1.0
"""The seconds in which all operations finish."""
LAST_PAUSES = 60
"""The pauses for which the last server of a campaign of kills runs, while it is measured."""
GROWTH = 8.0
"""The growth of a server process that counts as a leak, in MB."""
TOKENS = 200
"""The number of keys that are used at the end."""
SUSPENDED, JUMPED = "the machine was suspended", "the wall clock jumped"
NAMES = (*PROXY_FAULTS, *UNREACHABLE, SUSPENDED, JUMPED)
"""All faults, except that the control plane is killed."""


async def inject(run: Run) -> None:
    """Inject a number of faults, and kill the control plane at times."""
    await Requests(run, only_kills=False).run()


async def kill_servers(run: Run) -> None:
    """Kill the control plane a number of times under load, without other faults."""
    await Requests(run._replace(names=()), only_kills=True).run()


class Requests:
    """A control plane that is killed at times, and callers whose requests meet faults."""

    def __init__(self, run: Run, *, only_kills: bool) -> None:
        self._report, self._chance, directory, self._faults, self._pause, self._names = run
        self._only_kills = only_kills
        self._outcomes: list[Outcome] = []
        self._log = FaultLog()
        self._clock = ProcessClock()
        self._up = asyncio.Event()
        self._is_over = False
        self._arguments = [
            *("--data", str(directory / "plane.db"), "--duration", "0.05", "--lock", "none"),
            "--quiet",
        ]

    async def run(self) -> None:
        """Inject the faults and check the outcomes."""
        async with serving(*self._arguments) as served:
            self._base_url, self._key = served.base_url, served.api_key
            self._arguments += ["--port", str(URL(self._base_url).port)]
            async with Http(self._base_url, self._key) as http:
                projects = [await create_project(http) for _ in range(PROJECTS)]
                before = await FinalState.read(http, [one.project_id for one in projects])
            async with running(self._call_all(projects)) as calls:
                await self._serve(served, calls)
                while not calls.done():
                    async with serving(*self._arguments) as restarted:
                        await self._serve(restarted, calls)
                await calls
        async with serving(*self._arguments) as served:
            await asyncio.sleep(SETTLING)
            await self._check(before)
            await self._kill(served)

    async def _serve(self, served: Served, calls: "asyncio.Task[None]") -> None:
        """Let the calls use a server for some time, and kill it."""
        self._up.set()
        if self._only_kills and self._log.counts[KILLED] == self._faults:
            await self._measure(served)
            self._is_over = True
            await asyncio.wait([calls])
        else:
            await asyncio.wait([calls], timeout=self._chance.uniform(0.1, 2 * self._pause))
        self._up.clear()
        await self._kill(served)
        self._log.counts[KILLED] += not calls.done()

    async def _kill(self, served: Served) -> None:
        log = await served.kill()
        if "Traceback" in log:
            self._report.violations.append(f"the log has a traceback: {log}")

    async def _measure(self, served: Served) -> None:
        """Compare the memory of the server process in both halves of the time."""
        await asyncio.sleep(LAST_PAUSES * self._pause / 5)  # it warms up
        halves: list[float] = []
        for _ in range(2):
            samples: list[float] = []
            for _ in range(10):
                await asyncio.sleep(LAST_PAUSES * self._pause / 25)
                processes = await asyncio.to_thread(tree, served.process.pid)
                samples.append(await asyncio.to_thread(megabytes, processes))
            halves.append(fmean(samples))
        self._report.notes[f"memory of {halves[0]:.1f} MB, then {halves[1]:.1f} MB"] += 1
        if halves[1] - halves[0] > GROWTH:
            self._report.violations.append(
                f"memory grew from {halves[0]:.1f} to {halves[1]:.1f} MB"
            )

    async def _call_all(self, projects: list[Shared]) -> None:
        """Make calls until there are enough faults."""
        jumping = jumping_wall_clock(self._chance, lambda: self._count(JUMPED))
        proxy = FaultProxy(self._base_url, self._chance, SHARE, self._log, self._names)
        async with AsyncExitStack() as stack:
            for module in MODULES if JUMPED in self._names else ():
                stack.enter_context(mock.patch(f"neonctl_async.{module}.datetime", jumping))
            stack.enter_context(short_pauses())
            await stack.enter_async_context(proxy)
            unreachable = await stack.enter_async_context(unreachable_clients(self._key))
            async with running(self._clock.run()), asyncio.TaskGroup() as group:
                for number in range(CALLERS):
                    group.create_task(self._call(number, proxy.base_url, projects))
                for name in unreachable.keys() & set(self._names):
                    group.create_task(self._call_unreachable(name, unreachable[name]))
                if SUSPENDED in self._names:
                    group.create_task(self._suspend())

    def _goes_on(self) -> bool:
        if not self._only_kills and self._log.counts.total() >= self._faults:
            self._is_over = True
        return not self._is_over

    async def _call(self, number: int, base_url: str, projects: list[Shared]) -> None:
        async with client_of(base_url, self._key) as neon:
            chance = random.Random(self._chance.random())
            caller = Caller(number, neon, projects, chance, self._log, self._clock)
            while self._goes_on():
                await self._up.wait()
                self._outcomes.append(await caller.call())

    async def _call_unreachable(self, fault: str, neon: NeonClient) -> None:
        while self._goes_on():
            outcome = Outcome(kind="key", name=f"{fault} {len(self._outcomes)}")
            call = neon.api_keys.create(key_name=outcome.name)
            await run_call(outcome, call, self._log, self._clock)
            self._outcomes.append(outcome)
            for request_id in outcome.requests:
                self._log.add(request_id, fault)
            await asyncio.sleep(UNREACHABLE_PAUSE)

    async def _suspend(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SuspendableLoop)
        while self._goes_on():
            await asyncio.sleep(2 * SUSPENSION)
            loop.suspended += SUSPENSION
            self._count(SUSPENDED)

    def _count(self, fault: str) -> None:
        self._log.counts[fault] += 1

    async def _check(self, before: FinalState) -> None:
        report = self._report
        async with Http(self._base_url, self._key) as http:
            state = await FinalState.read(http, [*before.names])
            report.violations += state.violations(self._outcomes, self._log)
            report.violations += state.contradictions(before, self._outcomes)
            report.violations += await self._wrong_keys(http)
        if (blocked := self._clock.longest_block) > LONGEST_BLOCK:
            report.violations.append(f"the event loop was blocked for {blocked:.1f} s")
        report.faults += self._log.counts
        for outcome in self._outcomes:
            report.add_call({self._log.by_request.get(id, "") for id in outcome.requests}, outcome)

    async def _wrong_keys(self, http: Http) -> list[str]:
        """Use some of the created keys."""
        revocations = {one.name: one for one in self._outcomes if one.kind == "revoked key"}
        created = [one for one in self._outcomes if one.token]
        wrong: list[str] = []
        for one in self._chance.sample(created, min(TOKENS, len(created))):
            revocation = revocations.get(one.id or "")
            expected = 200 if revocation is None else 401
            status = (await http.send("GET", "/users/me", key=one.token)).status
            if status != expected and (revocation is None or not revocation.error):
                wrong.append(f"key {one.name} got {status} instead of {expected}")
        return wrong


async def create_project(http: Http) -> Shared:
    """Create a project."""
    created = await http.request("POST", "/projects", {"project": {}})
    project, branch = created["project"], created["branch"]
    return Shared(project["id"], branch["id"])


@asynccontextmanager
async def running(coroutine: Coroutine[None, None, None]) -> AsyncGenerator["asyncio.Task[None]"]:
    """Run a coroutine in the background until the block ends."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
