"""Waits in one project, each with its own deadline, on a fake clock.

A wait must not time out if its operation had finished a while before and a poll was possible.
"""

import asyncio
import random
from collections.abc import Collection
from pathlib import Path

from neonctl_async import NeonClient, RateBudget, WaitTimeoutError
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import API_KEY, PROJECT, ref
from tests.support.strict_limits import StrictLimits
from tools.faults.callers import NOTES, Limits, Outcome, run_call
from tools.faults.report import Report

SPREAD = "end shortly before a deadline of its own"
ROUNDS = 10
WAITS = (5, 150)
"""The smallest and the largest number of waits of a round."""
PER_MINUTE = (70, 300, 700)
"""The limits of the account, drawn per round."""
ARRIVALS, TIMEOUTS = 10.0, (1.0, 40.0)
"""The seconds in which all waits start, and the shortest and the longest timeout."""
MARGIN = 0.5
"""The time from the end of an operation to the deadline within which the wait must return."""


async def inject(
    report: Report, _names: Collection[str], chance: random.Random, _directory: Path
) -> None:
    """Run rounds of waits with random deadlines."""
    for _ in range(ROUNDS):
        await _Round(report, chance).run()


class _Round:
    """Waits of one client, whose account has enough requests for most of them."""

    def __init__(self, report: Report, chance: random.Random) -> None:
        self._report = report
        self._chance = chance
        self._per_minute = chance.choice(PER_MINUTE)
        self._per_second = max(1, self._per_minute * 40 // 700)

    async def run(self) -> None:
        async with FakeNeon() as self._fake_neon:
            limits = StrictLimits(self._fake_neon, self._per_minute, self._per_second)
            self._polls = limits.polls.setdefault(PROJECT, [])
            budget = RateBudget(per_minute=self._per_minute, per_route_per_second=self._per_second)
            base_url = self._fake_neon.base_url
            async with NeonClient(API_KEY, base_url=base_url, budget=budget, hooks=[NOTES]) as neon:
                waits = range(self._chance.randint(*WAITS))
                await asyncio.gather(*(self._wait(neon, f"op-{number}") for number in waits))
        if limits.rejected:
            self._report.violations.append(f"{SPREAD}: {limits.rejected} polls got status 429")

    async def _wait(self, neon: NeonClient, id: str) -> None:
        chance = self._chance
        timeout = chance.uniform(*TIMEOUTS)
        early = chance.choice((MARGIN, chance.uniform(MARGIN, 1.5), chance.uniform(-5, timeout)))
        await asyncio.sleep(chance.uniform(0, ARRIVALS))
        end = now() + max(0.1, timeout - early)
        self._fake_neon.start(id, states={now(): "running", end: "finished"})
        deadline = now() + timeout
        outcome = Outcome(kind="wait", name=id, id=id, limits=Limits(timeout, timeout))
        wait = neon.operations.wait(ref(id), timeout=timeout)
        await run_call(outcome, wait, now)
        self._report.add_call([SPREAD], outcome)
        if end > deadline - MARGIN + 1e-6:
            return
        self._report.faults[SPREAD] += 1
        is_excused = isinstance(outcome.error, WaitTimeoutError) and not self._could_poll(
            end, deadline
        )
        if outcome.error is not None and not is_excused:
            self._report.violations.append(
                f"{SPREAD}: {id} finished {deadline - end:.2f} s before the deadline of "
                f"{timeout:.1f} s, {self._per_minute} requests a minute: {outcome.error!r}"
            )

    def _could_poll(self, since: float, until: float) -> bool:
        """Return whether a slot was free for a poll at some time."""
        freed = (at + period for at in self._polls for period in (1.0, 60.0))
        return any(
            self._used(at, 60.0) < self._per_minute - 1 and self._used(at, 1.0) < self._per_second
            for at in (since, *freed)
            if since <= at < until
        )

    def _used(self, at: float, period: float) -> int:
        return sum(at - period < poll <= at for poll in self._polls)
