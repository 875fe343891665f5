"""Random waits in one project, each with a deadline of its own, under strict rate limits."""

import asyncio
import random

import pytest

from neonctl_async import NeonClient, RateBudget, WaitTimeoutError
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import API_KEY, PROJECT, ref
from tests.support.strict_limits import StrictLimits

WAITS = (5, 150)
"""The smallest and the largest number of waits."""
PER_MINUTE = (70, 300, 700)
"""The limits of the account."""
ARRIVALS, TIMEOUTS = 10.0, (1.0, 40.0)
"""The seconds in which all waits start, and the shortest and the longest timeout."""
MARGIN = 0.5
"""The time from the end of an operation to the deadline within which the wait must return."""


class Waits:
    """Waits of one client, whose account has enough requests for most of them."""

    def __init__(self, fake_neon: FakeNeon, chance: random.Random) -> None:
        self.failed: list[str] = []
        self._fake_neon = fake_neon
        self._chance = chance
        self._per_minute = chance.choice(PER_MINUTE)
        self._per_second = max(1, self._per_minute * 40 // 700)

    async def run(self) -> None:
        limits = StrictLimits(self._fake_neon, self._per_minute, self._per_second)
        self._polls = limits.polls.setdefault(PROJECT, [])
        budget = RateBudget(per_minute=self._per_minute, per_route_per_second=self._per_second)
        async with NeonClient(API_KEY, base_url=self._fake_neon.base_url, budget=budget) as neon:
            waits = range(self._chance.randint(*WAITS))
            await asyncio.gather(*(self._wait(neon, f"op-{number}") for number in waits))
        assert limits.rejected == 0

    async def _wait(self, neon: NeonClient, id: str) -> None:
        chance = self._chance
        timeout = chance.uniform(*TIMEOUTS)
        early = chance.choice((MARGIN, chance.uniform(MARGIN, 1.5), chance.uniform(-5, timeout)))
        await asyncio.sleep(chance.uniform(0, ARRIVALS))
        end, deadline = now() + max(0.1, timeout - early), now() + timeout
        self._fake_neon.start(id, states={now(): "running", end: "finished"})
        try:
            await neon.operations.wait(ref(id), timeout=timeout)
        except WaitTimeoutError:
            if end <= deadline - MARGIN + 1e-6 and self._could_poll(end, deadline):
                self.failed.append(f"{id} finished {deadline - end:.2f} s before its deadline")

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


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    "seed",
    [
        *(pytest.param(seed, marks=pytest.mark.long) for seed in range(5)),
        *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(5, 35)),
    ],
)
async def test_wait_sees_an_end_before_its_deadline_if_a_poll_was_possible(
    fake_neon: FakeNeon, seed: int
) -> None:
    waits = Waits(fake_neon, random.Random(seed))
    await waits.run()
    assert waits.failed == []
