"""No wait times out whose operation has finished in time, at any distance from the server."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from random import Random

import msgspec
import pytest

from benchmarks.harness import virtual_time
from benchmarks.servers.control_plane import ControlPlane, Settings
from neonctl_async import NeonClient, Operation, OperationRef, RateBudget, WaitTimeoutError
from tests.support.clock import now, skip_ahead
from tests.support.fake_neon import FakeNeon
from tests.support.records import client_of, operation, ref
from tests.support.server import Received, Respond

UNSEEN = 0.5
"""The time before a deadline in which an operation may finish unseen, in seconds."""
WAITS = 12


class Distance:
    """Waits at a distance from the server, and those that timed out although they need not have."""

    def __init__(self, plane: ControlPlane, neon: NeonClient, rng: Random) -> None:
        self._plane = plane
        self._neon = neon
        self._rng = rng
        self._projects = 0
        self.unjust: list[str] = []

    async def wait(self, seconds: float, timeout: float, *, by_reference: bool = False) -> None:
        """Wait for an operation of a project, which takes ``seconds``."""
        self._projects += 1
        slowest = self._plane.settings.round_trip * (1 + self._plane.settings.jitter)
        records = self._plane.start({f"p{self._projects}": [seconds]})
        [started] = msgspec.json.decode(records, type=list[Operation])
        what: Operation | OperationRef = started.ref if by_reference else started
        try:
            await self._neon.operations.wait(what, timeout=timeout)
        except WaitTimeoutError:
            if timeout - seconds >= max(UNSEEN, 2 * slowest):
                self.unjust.append(f"{seconds:.3f} s with a timeout of {timeout:.3f} s")
        await asyncio.sleep(self._rng.uniform(0.0, 5.0))


def run(
    waits: Callable[[Distance], Awaitable[None]], round_trip: float, jitter: float, seed: str
) -> list[str]:
    """Run waits on the fake clock. Return those that timed out although they need not have."""

    async def main(plane: ControlPlane) -> list[str]:
        async with NeonClient("napi_key", base_url=virtual_time.BASE_URL) as neon:
            distance = Distance(plane, neon, Random(seed))
            await waits(distance)
            return distance.unjust

    return virtual_time.run(main, Settings(round_trip=round_trip, jitter=jitter), seed)


@pytest.mark.parametrize("jitter", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("usual", [None, 2.0, 10.0])
@pytest.mark.parametrize("round_trip", [0.001, 0.02, 0.045, 0.06, 0.1, 0.2, 0.35, 0.5])
def test_no_wait_times_out_whose_operation_has_finished_in_time(
    round_trip: float, usual: float | None, jitter: float
) -> None:
    seed = f"{round_trip} {usual} {jitter}"
    rng = Random(seed)

    async def waits(distance: Distance) -> None:
        for _ in range(8 if usual else 0):
            await distance.wait(usual or 0.0, 300.0)
        for number in range(WAITS):
            timeout = rng.choice([1.3, 2.5, 5.0, 20.0])
            early = rng.choice([1.0, 1.2, 2.0, 4.0]) * max(UNSEEN, 2 * round_trip * (1 + jitter))
            await distance.wait(max(timeout - early, 0.05), timeout, by_reference=number % 3 == 2)

    assert run(waits, round_trip, jitter, seed) == []


def delayed(fake_neon: FakeNeon, seconds: float) -> Callable[[Received], Respond]:
    """Return a fault that responds as usual, ``seconds`` later."""

    def fault(request: Received) -> Respond:
        async def respond(writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(seconds / 2)
            response = fake_neon.response_to(request)
            await asyncio.sleep(seconds / 2)
            await response(writer)

        return respond

    return fault


@pytest.mark.virtual_time
@pytest.mark.parametrize("seconds", [0.001, 0.05, 0.15])
async def test_waits_that_the_caller_gives_up_soon_see_the_end_at_last(
    fake_neon: FakeNeon, seconds: float
) -> None:
    fake_neon.start("op", ends=2.0)
    fake_neon.fault = delayed(fake_neon, seconds)
    while now() < 10.0:
        try:
            async with asyncio.timeout(0.2):
                await fake_neon.client.operations.wait(operation("op"))
            break
        except TimeoutError:
            pass
    assert now() <= 2.0 + 2.0


@pytest.mark.virtual_time
@pytest.mark.parametrize("seconds", [0.001, 0.05, 0.15])
@pytest.mark.parametrize("what", [operation("op"), ref("op")])
async def test_short_waits_one_after_another_see_the_end_at_last(
    fake_neon: FakeNeon, seconds: float, what: Operation | OperationRef
) -> None:
    fake_neon.start("op", ends=2.0)
    fake_neon.fault = delayed(fake_neon, seconds)
    while now() < 10.0:
        try:
            await fake_neon.client.operations.wait(what, timeout=0.2)
            break
        except WaitTimeoutError:
            pass
    assert now() <= 2.0 + 0.8  # a gap, the next wait, and a request


@pytest.mark.virtual_time
async def test_short_waits_one_after_another_send_no_more_polls_than_one_wait(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("op", ends=1000.0)
    while now() < 60.0:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await fake_neon.client.operations.wait(operation("op"))
    assert len(fake_neon.received) <= 90  # one every 0.8 s, with jitter


def block(seconds: float) -> None:
    """Block the event loop, as a program may do."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


async def test_loop_that_was_blocked_past_the_deadline_polls_once_more(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("op", states={now(): "running", now() + 0.5: "finished"})
    wait = asyncio.create_task(fake_neon.client.operations.wait(operation("op"), timeout=1.0))
    await asyncio.sleep(0.1)
    block(1.2)
    [done] = await wait
    assert done.status == "finished"


async def test_loop_that_was_blocked_past_the_deadline_times_out_after_one_poll(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("op", states={now(): "running", now() + 100.0: "finished"})
    wait = asyncio.create_task(fake_neon.client.operations.wait(operation("op"), timeout=1.0))
    await asyncio.sleep(0.1)
    block(1.2)
    with pytest.raises(WaitTimeoutError):
        await wait
    assert len(fake_neon.received) == 1


@pytest.mark.virtual_time
async def test_poll_after_a_missed_deadline_reads_every_operation_that_lists_lack(
    fake_neon: FakeNeon,
) -> None:
    pending, finished = [f"pending-{n}" for n in range(6)], [f"finished-{n}" for n in range(6)]
    for id in (*pending, *finished):
        fake_neon.start(id, ends=7.99 if id in finished else 1000.0)
        fake_neon.hidden.add(id)
    targets = [operation("first", "finished"), *map(operation, (*pending, *finished))]
    seen: list[str] = []
    with pytest.raises(WaitTimeoutError):
        async for record in fake_neon.client.operations.as_completed(targets, timeout=4.0):
            seen.append(record.id)
            if record.id == "first":
                await asyncio.sleep(8.0)
    assert sorted(seen) == [*finished, "first"]
    assert now() == pytest.approx(8.0, abs=0.1)


@pytest.mark.virtual_time
@pytest.mark.parametrize("count", [1, 3])
async def test_operation_that_finishes_while_the_machine_sleeps_past_the_deadline_is_seen(
    fake_neon: FakeNeon, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    ids = [f"op-{number}" for number in range(count)]
    for id in ids:
        fake_neon.start(id, ends=100.0, project_id=f"project-{id}")
    wait = asyncio.create_task(
        fake_neon.client.operations.wait(
            [operation(id, project_id=f"project-{id}") for id in ids], timeout=60.0
        )
    )
    await asyncio.sleep(10.0)
    skip_ahead(monkeypatch, 3600.0)
    assert [done.status for done in await wait] == ["finished"] * count
    assert now() <= 3612.0


@pytest.mark.virtual_time
async def test_timeout_of_0_sends_no_poll(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("op", ends=100.0)
    with pytest.raises(WaitTimeoutError):
        await fake_neon.client.operations.wait(operation("op"), timeout=0)
    assert fake_neon.received == []


async def test_waits_at_100_ms_see_operations_that_finish_early(fake_neon: FakeNeon) -> None:
    fake_neon.fault = delayed(fake_neon, 0.1)

    async def wait(id: str, seconds: float, timeout: float) -> None:
        fake_neon.start(id, states={now(): "running", now() + seconds: "finished"})
        await fake_neon.client.operations.wait(operation(id), timeout=timeout)

    await asyncio.gather(*(wait(f"earlier-{number}", 2.0, 10.0) for number in range(6)))
    await asyncio.gather(*(wait(f"op-{number}", 0.5, 1.3) for number in range(8)))


@pytest.mark.virtual_time
async def test_one_slow_response_moves_no_last_poll_before_half_of_the_wait(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("slow", ends=0.0)
    fake_neon.fault = delayed(fake_neon, 8.0)
    await fake_neon.client.operations.wait(ref("slow"))
    fake_neon.fault = lambda _request: None
    fake_neon.start("op", states={0.0: "running", now() + 3.0: "finished"})
    await fake_neon.client.operations.wait(operation("op"), timeout=4.0)


@pytest.mark.virtual_time
@pytest.mark.parametrize(("per_minute", "most"), [(700, 2), (20, 4), (None, 2)])
async def test_durations_that_get_shorter_delay_few_waits(
    fake_neon: FakeNeon, per_minute: int | None, most: int
) -> None:
    async with client_of(fake_neon, budget=RateBudget(per_minute=per_minute)) as neon:
        lateness: list[float] = []
        for number in range(80):
            seconds = 3.0 if number < 70 else 0.5
            started, id = now(), f"op-{number}"
            fake_neon.start(id, states={started: "running", started + seconds: "finished"})
            await neon.operations.wait(operation(id))
            lateness.append(now() - started - seconds)
            await asyncio.sleep(3.0)
    assert sum(late > 1.0 for late in lateness[70:]) <= most
