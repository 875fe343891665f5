"""``make faults``: thousands of faults, and what the callers got of each.

Many callers make keys, projects and branches, wait, list and revoke, through a proxy that strikes
most of their requests, while the control plane is killed and started again on its file, and
clocks jump. In the end the truth is read from the control plane, and each outcome is held
against it: a success was carried out exactly once, and what was waited for has ended; an error
that says that nothing was done is right; what an error hands over as created is there; nothing
took longer than its bounds; no exception but the library's came; no task and no file is left.
"""

import argparse
import asyncio
import gc
import logging
import random
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from unittest import mock

from yarl import URL

from neonctl_async import NeonClient, NeonError
from tests.faults.calls import Caller, Outcome, attempt, client_of
from tests.faults.chaos import Chaos, Strikes
from tests.faults.clocks import MODULES, OwnClock, SleepyLoop, jumping_wall_clock
from tests.faults.strays import strays
from tests.faults.truth import Truth
from tests.local.client import Http
from tests.local.process import serving

CALLERS = 60
PROJECTS = 4
SHARE = 0.7
"""Of the requests, how many are struck."""
STRAY_PAUSE = 0.1
"""Seconds between two calls that go where nobody is."""
LONGEST_BLOCK = 5.0
"""Seconds of processor time that the event loop may take between two turns: a tenth of a second or
three, but for machines whose processors are taken away unseen."""
SLEEP = 2.0
"""Seconds that a machine sleeps, each so many seconds."""
ASLEEP, JUMPED = "the machine was asleep", "the wall clock jumped"
ENDS = ("done", "refused", "may be done", "made, not ended")


class Campaign:
    """So many faults, and the outcomes of all calls that met them."""

    def __init__(self, faults: int, seed: int, data: Path, seconds_between_kills: float) -> None:
        self.outcomes: list[Outcome] = []
        self.strikes = Strikes()
        self.contradictions: list[str] = []
        self._clock = OwnClock()
        self._wanted = faults
        self._chance = random.Random(seed)
        self._arguments = ("--data", str(data), "--duration", "0.05", "--quiet")
        self._seconds_between_kills = seconds_between_kills

    async def run(self) -> None:
        """Run all of it, and hold the outcomes against the truth."""
        async with serving(*self._arguments) as served:
            base_url, key = served.base_url, served.api_key
            calls = asyncio.create_task(self._call_all(base_url, key))
            await asyncio.wait([calls], timeout=self._seconds_between_kills)
        # Left like this, the process has been killed.
        again = (*self._arguments, "--port", str(URL(base_url).port))
        try:
            while not calls.done():
                async with serving(*again, first=False):
                    await asyncio.wait([calls], timeout=self._seconds_between_kills)
            projects = await calls
        finally:
            calls.cancel()
        async with serving(*again, first=False):
            await self._reckon(base_url, key, projects)

    def table(self) -> Iterator[str]:
        """A line a fault: how often it struck, and how the calls that met it ended."""
        ends: dict[str, Counter[str]] = {}
        for outcome in self.outcomes:
            met = {self.strikes.of_request.get(id, "") for id in outcome.requests}
            for fault in met:
                ends.setdefault(fault, Counter())[end_of(outcome)] += 1
        yield f"{'fault':42}{'struck':>8}{'calls':>8}" + "".join(f"{end:>17}" for end in ENDS)
        for fault, count in sorted(self.strikes.counts.items()):
            of_fault = ends.get(fault, Counter())
            figures = "".join(f"{of_fault[end]:>17}" for end in ENDS)
            yield f"{fault:42}{count:>8}{of_fault.total():>8}{figures}"
        yield f"{'in all':42}{self.strikes.counts.total():>8}{len(self.outcomes):>8}"

    async def _call_all(self, base_url: str, key: str) -> list[str]:
        """Make calls until there were faults enough; answers the projects that they shared."""
        async with Http(base_url, key) as http:
            made = [
                await http.request("POST", "/projects", {"project": {}}) for _ in range(PROJECTS)
            ]
        projects = [one["project"]["id"] for one in made]
        jumping = jumping_wall_clock(self._chance, lambda: self._count(JUMPED))
        async with AsyncExitStack() as stack:
            for module in MODULES:
                stack.enter_context(mock.patch(f"neonctl_async.{module}.datetime", jumping))
            chaos = Chaos(base_url, self._chance, SHARE, self.strikes)
            await stack.enter_async_context(chaos)
            astray = await stack.enter_async_context(strays(key))
            async with running(self._clock.run()), asyncio.TaskGroup() as group:
                for number in range(CALLERS):
                    group.create_task(self._call(f"c{number}", chaos.base_url, key, projects))
                for name, neon in astray.items():
                    group.create_task(self._stray(name, neon))
                group.create_task(self._sleep_at_times())
        return projects

    @property
    def _is_over(self) -> bool:
        return self.strikes.counts.total() >= self._wanted

    async def _call(self, name: str, base_url: str, key: str, projects: list[str]) -> None:
        async with client_of(base_url, key) as neon:
            caller = Caller(name, neon, projects, self._chance.random(), self._clock)
            while not self._is_over:
                self.outcomes.append(await caller.call())

    async def _stray(self, fault: str, neon: NeonClient) -> None:
        while not self._is_over:
            outcome = Outcome(kind="key", name=f"{fault} {len(self.outcomes)}")
            call = neon.api_keys.create(key_name=outcome.name)
            await attempt(outcome, call, self._clock)
            self.outcomes.append(outcome)
            for request_id in outcome.requests:
                self.strikes.note(request_id, fault)
            await asyncio.sleep(STRAY_PAUSE)

    async def _sleep_at_times(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SleepyLoop)
        while not self._is_over:
            await asyncio.sleep(2 * SLEEP)
            loop.slept += SLEEP
            self._count(ASLEEP)

    def _count(self, fault: str) -> None:
        self.strikes.counts[fault] += 1

    async def _reckon(self, base_url: str, key: str, projects: list[str]) -> None:
        async with Http(base_url, key) as http:
            truth = await Truth.read(http, projects)
        self.contradictions += truth.contradictions(self.outcomes)
        if (blocked := self._clock.longest_block) > LONGEST_BLOCK:
            self.contradictions.append(f"the event loop was blocked for {blocked:.1f} s")
        left = asyncio.all_tasks() - {asyncio.current_task()}
        self.contradictions += [f"a task is left: {task}" for task in left]


@asynccontextmanager
async def running(coroutine: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    """Run it besides, and end it with what it goes with."""
    task = asyncio.create_task(coroutine)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def end_of(outcome: Outcome) -> str:
    """How a call ended, in the words of the table."""
    if outcome.error is None:
        return "done"
    if outcome.id is not None and outcome.kind != "revoked key":
        return "made, not ended"
    is_open = isinstance(outcome.error, NeonError) and outcome.error.maybe_delivered
    return "may be done" if is_open else "refused"


def run(faults: int, seed: int, directory: Path, seconds_between_kills: float) -> Campaign:
    """Run a campaign on an event loop of its own, and see what it leaves behind."""
    campaign = Campaign(faults, seed, directory / "plane.db", seconds_between_kills)
    before = open_files()
    with asyncio.Runner(loop_factory=SleepyLoop) as runner:
        runner.run(campaign.run())
    gc.collect()
    if (more := open_files() - before) > 0:
        campaign.contradictions.append(f"{more} files or connections are left open")
    return campaign


def open_files() -> int:
    """How many files and connections this process has open; 0 where the system does not tell."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return 0


def main() -> int:
    """Run campaigns; answers 1 if anything contradicts the truth."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.campaign")
    parser.add_argument("--faults", type=int, default=10_000, help="how many, with each seed")
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[1, 2, 3], help="a campaign is run with each"
    )
    parser.add_argument(
        "--seconds-between-kills", type=float, default=15.0, help="of the control plane"
    )
    options = parser.parse_args()
    logging.disable()
    wrong: list[str] = []
    for seed in options.seeds:
        with tempfile.TemporaryDirectory() as directory:
            campaign = run(options.faults, seed, Path(directory), options.seconds_between_kills)
        sys.stdout.write(f"seed {seed}\n")
        sys.stdout.writelines(f"{line}\n" for line in campaign.table())
        sys.stdout.writelines(f"{line}\n" for line in campaign.contradictions[:20])
        sys.stdout.write(f"{len(campaign.contradictions)} violations\n\n")
        wrong += campaign.contradictions
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
