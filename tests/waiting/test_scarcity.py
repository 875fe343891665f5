"""Waits when forecasts are wrong, requests are scarce, or the clock is set."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from statistics import median

import pytest

from neonctl_async import NeonClient, PollPolicy, RateBudget, WaitTimeoutError
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.testing import FakeClockLoop
from neonctl_async.waiting.timing.pace import MIN_STRETCH
from tests.support.clock import now, skip_ahead
from tests.support.fake_neon import FakeNeon
from tests.support.records import client_of, operation
from tests.support.strict_limits import PER_MINUTE, PER_SECOND, StrictLimits
from tests.support.tasks import cancel

pytestmark = pytest.mark.virtual_time

MAXIMUM = PollPolicy().maximum
BUDGET = RateBudget(per_minute=PER_MINUTE, per_route_per_second=PER_SECOND)
SCARCE = RateBudget(per_minute=10, per_route_per_second=PER_SECOND)


class Waits:
    """Waits for one operation after another, with their lateness and their polls."""

    def __init__(self, fake_neon: FakeNeon) -> None:
        self._fake_neon = fake_neon
        self._waits = 0

    async def wait(self, *durations: float) -> tuple[list[float], list[int]]:
        """Return how late the end of each operation was seen, and the number of polls."""
        lateness: list[float] = []
        polls: list[int] = []
        for seconds in durations:
            self._waits += 1
            started, before = now(), len(self._fake_neon.received)
            id = f"op-{self._waits}"
            self._fake_neon.start(id, states={started: "running", started + seconds: "finished"})
            await self._fake_neon.client.operations.wait(operation(id))
            lateness.append(now() - started - seconds)
            polls.append(len(self._fake_neon.received) - before)
        return lateness, polls


@pytest.mark.parametrize(("before", "after"), [(1.0, 6.0), (6.0, 1.0)])
async def test_forecast_follows_durations_that_change(
    fake_neon: FakeNeon, before: float, after: float
) -> None:
    waits = Waits(fake_neon)
    await waits.wait(*[before] * 30)
    lateness, polls = await waits.wait(*[after] * 30)
    assert max(lateness) <= MAXIMUM
    assert max(polls) <= 20
    assert median(lateness[-10:]) <= 0.25
    assert median(polls[-10:]) <= 3


@pytest.mark.parametrize("forecast", [0.8, 4.0])
async def test_forecast_that_is_ten_times_too_short_costs_few_polls(
    fake_neon: FakeNeon, forecast: float
) -> None:
    waits = Waits(fake_neon)
    await waits.wait(*[forecast] * 30)
    [late], [polls] = await waits.wait(10 * forecast)
    assert late <= min(0.5 * 10 * forecast + 0.5, MAXIMUM + 0.5)
    assert polls <= 9 * forecast / (0.9 * MIN_STRETCH * MAXIMUM) + 4


@pytest.mark.parametrize("forecast", [4.0, 40.0])
async def test_forecast_that_is_ten_times_too_long_delays_one_wait(
    fake_neon: FakeNeon, forecast: float
) -> None:
    waits = Waits(fake_neon)
    await waits.wait(*[forecast] * 30)
    [late], [polls] = await waits.wait(forecast / 10)
    assert late <= min(forecast, MAXIMUM)
    assert polls <= 3


async def test_durations_that_change_while_operations_are_pending(fake_neon: FakeNeon) -> None:
    waits = Waits(fake_neon)
    await waits.wait(*[2.0] * 30)
    started, before = now(), len(fake_neon.received)
    # Each operation takes longer than the one that was started before it.
    ids = [f"slower-{number}" for number in range(20)]
    lateness: list[float] = []

    async def of_operation(number: int) -> None:
        await asyncio.sleep(0.2 * number)
        finished_at = now() + 2.0 + number
        fake_neon.start(ids[number], states={now(): "running", finished_at: "finished"})
        await fake_neon.client.operations.wait(operation(ids[number]))
        lateness.append(now() - finished_at)

    await asyncio.gather(*map(of_operation, range(20)))
    assert now() - started <= 0.2 * 19 + 2.0 + 19 + MAXIMUM
    assert max(lateness) <= MAXIMUM
    assert median(lateness) <= MAXIMUM / 2
    assert len(fake_neon.received) - before <= 70


async def test_one_operation_among_10_times_longer_ones_is_seen_on_time(
    fake_neon: FakeNeon,
) -> None:
    waits = Waits(fake_neon)
    lateness, _ = await waits.wait(*([0.8] * 20 + [8.0]) * 4)
    assert median(lateness[20:]) <= 0.25
    assert sorted(lateness[20:])[-7] <= 0.75  # 90 % of them


@pytest.mark.parametrize("number", [1, 2, 20])
async def test_long_history_of_a_project_costs_no_requests(
    fake_neon: FakeNeon, number: int
) -> None:
    for index in range(50_000):
        fake_neon.start(f"old-{index}", ends=0.0)
    ids = [f"op-{index}" for index in range(number)]
    for id in ids:
        fake_neon.start(id, ends=3.0)
    await fake_neon.client.operations.wait([operation(id) for id in ids])
    assert now() <= 3.0 + 1.1 * (0.25 + 0.5 * 3.0)  # the delay at 3 s, with jitter
    assert len(fake_neon.received) <= 8
    assert max(fake_neon.pages, default=0) <= 100


async def test_operations_behind_50000_newer_ones_are_found_within_few_requests(
    fake_neon: FakeNeon,
) -> None:
    ids = [f"op-{index}" for index in range(3)]
    for id in ids:
        fake_neon.start(id, ends=3.0)
    for index in range(50_000):
        fake_neon.start(f"new-{index}", ends=0.0)
    await fake_neon.client.operations.wait([operation(id) for id in ids])
    assert now() <= 3.0 + 2.0
    assert len(fake_neon.received) <= 40
    assert sum(fake_neon.pages) <= 10_000


async def provision(neon: NeonClient, projects: Sequence[str], seconds: float) -> list[float]:
    """Start one operation in each project and wait for it. Return when each wait was over."""

    async def of_project(project_id: str) -> float:
        created = await neon.request(
            "POST",
            f"/projects/{project_id}/branches",
            body=f"op-of-{project_id} {seconds}",
            type=OperationsResponse,
        )
        await neon.operations.wait(created, timeout=None)
        return now()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(of_project(id)) for id in projects]
    return [task.result() for task in tasks]


@asynccontextmanager
async def running(*coroutines: Coroutine[None, None, object]) -> AsyncGenerator[None]:
    """Run coroutines in the background until the block ends."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield
    finally:
        await cancel(*tasks)


def pending_waits(
    neon: NeonClient, fake_neon: FakeNeon, projects: Sequence[str]
) -> list[Coroutine[None, None, object]]:
    """Return waits for one operation in each project, which do not finish in a test."""
    for id in projects:
        fake_neon.start(f"op-of-{id}", ends=10_000.0, project_id=id)
    return [
        neon.operations.wait(operation(f"op-of-{id}", project_id=id), timeout=None)
        for id in projects
    ]


async def spend(limits: StrictLimits, per_minute: float, until: float) -> None:
    """Send requests of another client of the account until a time of the loop."""
    while now() < until:
        if limits.free > 0:
            limits.spend(1)
        await asyncio.sleep(60 / per_minute)


async def test_account_that_another_client_has_used_up_delays_calls_and_loses_none(
    fake_neon: FakeNeon,
) -> None:
    limits = StrictLimits(fake_neon)
    projects = [f"project-{number}" for number in range(20)]
    await spend(limits, 2 * PER_MINUTE, until=31)
    async with client_of(fake_neon, budget=BUDGET) as neon:
        ends = await provision(neon, projects, seconds=2.0)
    assert sorted(limits.created) == sorted(f"op-of-{id}" for id in projects)
    # From 60 s on, a slot is free every 0.43 s, so 40 requests take 17 s.
    assert max(ends) <= 60 + 2 * 17
    assert limits.rejected <= 30


async def test_two_clients_of_one_account_lose_no_call(fake_neon: FakeNeon) -> None:
    limits = StrictLimits(fake_neon)
    projects = [f"project-{number}" for number in range(20)]
    others = spend(limits, PER_MINUTE / 2, until=300)
    async with client_of(fake_neon, budget=BUDGET) as neon, running(others):
        await asyncio.sleep(60)
        ends = await provision(neon, projects, seconds=2.0)
    assert sorted(limits.created) == sorted(f"op-of-{id}" for id in projects)
    # The client has 35 requests a minute and needs at least 40.
    assert max(ends) <= 60 + 3 * 60
    assert limits.rejected <= 30


async def test_budget_of_10_a_minute_creates_and_waits(fake_neon: FakeNeon) -> None:
    limits = StrictLimits(fake_neon, per_minute=10)
    projects = [f"project-{number}" for number in range(12)]
    async with client_of(fake_neon, budget=SCARCE) as neon:
        ends = await provision(neon, projects, seconds=5.0)
    assert limits.rejected == 0
    # The least number of requests is 24, so the last ones are sent after two minutes.
    assert max(ends) <= 4 * 60


async def test_budget_of_10_a_minute_starves_no_project(fake_neon: FakeNeon) -> None:
    limits = StrictLimits(fake_neon, per_minute=10)
    projects = [f"project-{number}" for number in range(8)]
    async with (
        client_of(fake_neon, budget=SCARCE) as neon,
        running(*pending_waits(neon, fake_neon, projects)),
    ):
        await asyncio.sleep(150)
        polls = [len(limits.polls.get(id, ())) for id in projects]
    assert limits.rejected == 0
    assert sum(polls) >= 0.8 * 10 * 150 / 60
    assert min(polls) >= 2
    assert max(polls) - min(polls) <= 2  # those that measure are polled more often at first


async def test_budget_of_10_a_minute_serves_calls_before_polls(fake_neon: FakeNeon) -> None:
    limits = StrictLimits(fake_neon, per_minute=10)
    projects = [f"project-{number}" for number in range(6)]
    async with (
        client_of(fake_neon, budget=SCARCE) as neon,
        running(*pending_waits(neon, fake_neon, projects)),
    ):
        for _ in range(3):
            await asyncio.sleep(45)
            polls = sum(map(len, limits.polls.values()))
            await neon.request("GET", "/projects/project-1/advisors")
            assert sum(map(len, limits.polls.values())) <= polls + 1  # one may be on its way
    assert limits.rejected == 0


def set_wall_clock(monkeypatch: pytest.MonkeyPatch, hours: float) -> None:
    """Set the wall clock forward, or back if ``hours`` is negative."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, FakeClockLoop)
    utc_now = loop.utc_now
    monkeypatch.setattr(loop, "utc_now", lambda: utc_now() + timedelta(hours=hours))


@pytest.mark.parametrize("hours", [-48, 48])
async def test_step_of_the_wall_clock_changes_no_wait(
    fake_neon: FakeNeon, hours: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = Waits(fake_neon)
    await waits.wait(*[4.0] * 20)
    fake_neon.start("op", states={now(): "running", now() + 4.0: "finished"})
    started = now()
    wait = asyncio.create_task(fake_neon.client.operations.wait(operation("op"), timeout=10))
    await asyncio.sleep(2.0)
    set_wall_clock(monkeypatch, hours)
    await wait
    assert now() - started <= 4.25
    lateness, polls = await waits.wait(*[4.0] * 5)
    assert max(lateness) <= 0.25
    assert max(polls) <= 2


async def test_operation_that_finishes_while_the_machine_is_suspended_is_seen_at_once(
    fake_neon: FakeNeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_neon.start("op", ends=600.0)
    wait = asyncio.create_task(fake_neon.client.operations.wait(operation("op"), timeout=None))
    await asyncio.sleep(10)
    skip_ahead(monkeypatch, 3600)
    await wait
    assert now() <= 10 + 3600 + MAXIMUM
    assert len(fake_neon.received) <= 20


@pytest.mark.long
async def test_suspended_machine_does_not_break_the_budget(
    fake_neon: FakeNeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = StrictLimits(fake_neon)
    projects = [f"project-{number}" for number in range(30)]
    async with client_of(fake_neon, budget=BUDGET) as neon:
        ends = asyncio.create_task(provision(neon, projects, seconds=100.0))
        await asyncio.sleep(5)
        skip_ahead(monkeypatch, 3600)
        # The last operation starts after 8 s.
        assert max(await ends) <= 3600 + 8 + 100 + 30
    assert limits.rejected == 0


async def test_deadline_that_passes_while_the_machine_is_suspended_is_reported(
    fake_neon: FakeNeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_neon.start("op", ends=1e6)
    wait = asyncio.create_task(fake_neon.client.operations.wait(operation("op"), timeout=60))
    await asyncio.sleep(10)
    skip_ahead(monkeypatch, 3600)
    with pytest.raises(WaitTimeoutError):
        await wait
    assert now() <= 10 + 3600 + 1
