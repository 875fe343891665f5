"""Waits for states that start and finish in any order: random programs, each with its own seed.

They use no sockets, so that a program takes little time.
"""

import asyncio
import random
from collections.abc import Collection
from typing import Final

import pytest

from neonctl_async import (
    ClientClosedError,
    ConnectionLostError,
    NotFoundError,
    PollPolicy,
    StateTimeoutError,
)
from neonctl_async.testing import FakeClockLoop
from neonctl_async.transport.dispatcher import HookDispatcher
from neonctl_async.waiting.source import OperationSource
from neonctl_async.waiting.states.sources import ObservedState
from neonctl_async.waiting.states.waits import StateWaits
from neonctl_async.waiting.waiter import Waiter
from tests.support.clock import now
from tests.support.idle_source import IdleSource

PROGRAMS = 50
CHUNKS = 10
SLOWEST_RESPONSE = 0.4
MAX_DELAY = 5.5 + 3 * SLOWEST_RESPONSE
"""Longest time from a change to the end of a wait for it, without failures, in seconds."""
DELETED: Final = "deleted"


class Changing:
    """An object whose state changes at random times. Responses are late, or missing."""

    project_id = "p-1"

    def __init__(self, id: str, generator: random.Random) -> None:
        self.id = id
        self._random = generator
        self.reads = 0
        self.concurrent_reads = 0
        self.fails_until = 0.0
        self.timeline = [(0.0, "init")]
        for _ in range(generator.randint(0, 3)):
            at = self.timeline[-1][0] + generator.uniform(0, 40)
            self.timeline.append((at, generator.choice(["init", "idle", "ready", DELETED])))

    def __str__(self) -> str:
        return self.id

    def state(self, at: float) -> str:
        """Return the state at a time."""
        return [state for time, state in self.timeline if time <= at][-1]

    async def read(self, _polls: OperationSource) -> ObservedState[str]:
        """Return the state at the time of the request."""
        self.reads += 1
        self.concurrent_reads += 1
        try:
            assert self.concurrent_reads == 1
            state = self.state(now())
            await asyncio.sleep(self._random.uniform(0, SLOWEST_RESPONSE))
        finally:
            self.concurrent_reads -= 1
        if now() < self.fails_until:
            raise ConnectionLostError(
                "lost", method="GET", path="/", request_id="r", maybe_delivered=True
            )
        if state == DELETED:
            raise NotFoundError(status=404, message="gone", method="GET", path="/")
        return ObservedState(state=state, record=state)

    async def read_list(
        self, _ids: Collection[str], _polls: OperationSource
    ) -> dict[str, ObservedState[str]]:
        """Return nothing: no list contains the object."""
        return {}


async def wait_and_check(waits: StateWaits, changing: Changing, generator: random.Random) -> None:
    """Run one wait, and check how and when it finishes."""
    await asyncio.sleep(generator.uniform(0, 60))
    started, wanted = now(), generator.choice(["ready", "idle", DELETED])
    timeout = generator.choice([5.0, 50.0, 200.0])
    changes = [started, *(time for time, _ in changing.timeline if time > started)]
    reached = next((at for at in changes if changing.state(at) == wanted), None)
    gone = next((at for at in changes if changing.state(at) == DELETED), None)
    last_change = changing.timeline[-1][0]
    try:
        record = await waits.wait_for(changing, wanted, timeout)
    except NotFoundError:
        assert gone is not None
        assert wanted != DELETED
    except StateTimeoutError:
        assert now() == pytest.approx(started + timeout, abs=0.01)
        latest = max(last_change, started, changing.fails_until) + MAX_DELAY
        assert now() < latest or changing.state(last_change) not in {wanted, DELETED}
    else:
        assert reached is not None
        assert record == (None if wanted == DELETED else wanted)
        if changing.state(last_change) == wanted:
            assert now() < max(last_change, started, changing.fails_until) + MAX_DELAY


async def run_program(seed: int) -> None:
    generator = random.Random(seed)
    source = IdleSource()
    dispatcher = HookDispatcher(())
    waiter = Waiter(source, PollPolicy(), dispatcher)
    waits = StateWaits(source, PollPolicy(), waiter, dispatcher)
    objects = [Changing(f"o-{number}", generator) for number in range(generator.randint(1, 3))]
    for changing in objects:
        changing.fails_until = generator.choice([0.0, 0.0, 20.0])
    tasks = [
        asyncio.create_task(wait_and_check(waits, generator.choice(objects), generator))
        for _ in range(generator.randint(1, 20))
    ]
    for task in generator.sample(tasks, k=len(tasks) // 4):
        asyncio.get_running_loop().call_later(generator.uniform(0, 80), task.cancel)
    if generator.random() < 0.2:
        await asyncio.sleep(generator.uniform(0, 80))
        await waits.aclose()
        await waiter.aclose()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    allowed = (asyncio.CancelledError, ClientClosedError)
    assert [each for each in results if each is not None and not isinstance(each, allowed)] == []
    assert asyncio.all_tasks() == {asyncio.current_task()}
    longest = 60 + 200
    assert all(changing.reads < 40 + longest + 3 * len(tasks) for changing in objects)
    await waits.aclose()
    await waiter.aclose()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_every_wait_finishes_correctly_and_in_time_and_leaves_no_task(chunk: int) -> None:
    for seed in range(chunk, PROGRAMS, CHUNKS):
        with asyncio.Runner(loop_factory=FakeClockLoop) as runner:
            try:
                runner.run(run_program(seed))
            except AssertionError as error:
                error.add_note(f"seed {seed}")
                raise
