"""Polls that the durations of earlier operations determine."""

import asyncio
from itertools import pairwise
from statistics import median

import pytest

from neonctl_async import NeonClient, OperationRef, PollPolicy, RateBudget, WaitTimeoutError
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of, operation, ref

pytestmark = pytest.mark.virtual_time


async def wait_for(
    fake_neon: FakeNeon, name: str, seconds: float, neon: NeonClient | None = None
) -> tuple[float, int]:
    """Wait for a new operation. Return how late its end was seen, and the number of polls."""
    started, polls = now(), len(fake_neon.received)
    fake_neon.start(name, states={started: "running", started + seconds: "finished"})
    await (neon or fake_neon.client).operations.wait(operation(name))
    return now() - started - seconds, len(fake_neon.received) - polls


@pytest.mark.parametrize("seconds", [0.8, 1.0, 4.0])
async def test_known_duration_needs_about_one_poll(fake_neon: FakeNeon, seconds: float) -> None:
    for number in range(20):
        await wait_for(fake_neon, f"before-{number}", seconds)
    results = [await wait_for(fake_neon, f"after-{n}", seconds) for n in range(10)]
    assert median(late for late, _ in results) < 0.15
    assert median(polls for _, polls in results) <= 2


async def test_older_operation_is_polled_on_time_despite_younger_ones(fake_neon: FakeNeon) -> None:
    for number in range(10):
        await wait_for(fake_neon, f"before-{number}", 4.0)
    older = asyncio.create_task(wait_for(fake_neon, "older", 4.0))
    await asyncio.sleep(3.0)
    younger = asyncio.create_task(wait_for(fake_neon, "younger", 4.0))
    fake_neon.start("finished", ends=0.0)
    await fake_neon.client.operations.wait(
        ref("finished")
    )  # after this poll, the next one is planned
    for wait in (older, younger):
        late, _ = await wait
        assert late < 0.2


async def test_history_of_varying_durations_saves_time_and_polls(fake_neon: FakeNeon) -> None:
    durations = [0.7 + 0.6 * (n * 7 % 20) / 20 for n in range(20)]
    without_history = [await wait_for(fake_neon, f"b{n}", durations[n]) for n in range(4)]
    for number in range(20):
        await wait_for(fake_neon, f"c{number}", durations[number])
    results = [await wait_for(fake_neon, f"d{n}", durations[n]) for n in range(20)]
    assert sum(late for late, _ in results) / 20 < sum(late for late, _ in without_history) / 4
    assert sum(polls for _, polls in results) / 20 < sum(polls for _, polls in without_history) / 4


async def test_operation_longer_than_all_known_ones_is_still_polled(fake_neon: FakeNeon) -> None:
    for number in range(10):
        await wait_for(fake_neon, f"short-{number}", 1.0)
    late, polls = await wait_for(fake_neon, "long", 30.0)
    assert late <= 1.0
    assert polls <= 40  # one every 0.8 s, because the budget is unused


async def test_long_predicted_operation_is_polled_every_5_seconds(fake_neon: FakeNeon) -> None:
    for number in range(6):
        await wait_for(fake_neon, f"long-{number}", 60.0)
    late, _ = await wait_for(fake_neon, "short", 1.0)
    assert late <= 5.0


async def test_projects_share_the_history(fake_neon: FakeNeon) -> None:
    projects = [f"project-{n}-12345678" for n in range(40)]
    for number, project_id in enumerate(projects):
        fake_neon.start(f"op-{number}", ends=2.0, project_id=project_id)
    async with client_of(fake_neon, budget=RateBudget()) as neon:
        await neon.operations.wait(
            [operation(f"op-{n}", project_id=id) for n, id in enumerate(projects)]
        )
    assert len(fake_neon.received) <= 3 * len(projects)  # alone, each would need four polls


async def test_constant_interval_ignores_the_history(fake_neon: FakeNeon) -> None:
    async with client_of(fake_neon, polling=PollPolicy.constant(3.0)) as neon:
        results = [await wait_for(fake_neon, f"op-{n}", 1.0, neon) for n in range(10)]
    assert [polls for _, polls in results] == [1] * 10
    assert all(late == pytest.approx(2.0, abs=0.01) for late, _ in results)


async def test_running_time_of_the_first_record_is_taken_into_account(fake_neon: FakeNeon) -> None:
    for number in range(10):
        await wait_for(fake_neon, f"before-{number}", 4.0)
    started = now()
    fake_neon.start("resumed", states={started - 3.0: "running", started + 1.0: "finished"})
    await fake_neon.client.operations.wait(OperationRef(project_id=PROJECT, id="resumed"))
    assert now() - started < 2.0


async def test_operations_that_finish_one_after_another_share_polls(fake_neon: FakeNeon) -> None:
    for number in range(10):
        await wait_for(fake_neon, f"before-{number}", 0.2 + number)
    started, polls = now(), len(fake_neon.received)
    ids = [f"op-{number}" for number in range(200)]
    for number, name in enumerate(ids):
        finished_at = started + (number + 1) * 0.05
        fake_neon.start(name, states={started: "running", finished_at: "finished"})
    await fake_neon.client.operations.wait([operation(name) for name in ids])
    assert now() - started <= 10 + 2.5
    assert len(fake_neon.received) - polls <= 25


async def test_short_durations_do_not_shorten_the_gap_between_polls(fake_neon: FakeNeon) -> None:
    for number in range(10):
        await wait_for(fake_neon, f"before-{number}", 0.1 + number * 0.04)
    polled_at: list[float] = []
    fake_neon.fault = lambda _request: polled_at.append(now())
    fake_neon.start("last", states={now(): "running", now() + 3.0: "finished"})
    waits = [asyncio.create_task(fake_neon.client.operations.wait(operation("last")))]
    for number in range(40):
        finished_at = now() + 0.1 + number % 10 * 0.04
        fake_neon.start(f"op-{number}", states={now(): "running", finished_at: "finished"})
        waits.append(
            asyncio.create_task(fake_neon.client.operations.wait(operation(f"op-{number}")))
        )
        await asyncio.sleep(0.05)
    await asyncio.gather(*waits)
    gaps = [second - first for first, second in pairwise(polled_at)]
    assert min(gaps) >= 0.25 * 0.9 - 0.002


async def test_durations_are_measured_if_records_contain_none(fake_neon: FakeNeon) -> None:
    polls: list[int] = []
    for number in range(30):
        started, before = now(), len(fake_neon.received)
        fake_neon.start(
            f"op-{number}",
            states={started: "running", started + 4.0: "finished"},
            total_duration_ms=None,
        )
        await fake_neon.client.operations.wait(operation(f"op-{number}"))
        polls.append(len(fake_neon.received) - before)
    assert sum(polls[20:]) / 10 < 4


async def test_abandoned_operation_does_not_change_the_schedule(fake_neon: FakeNeon) -> None:
    fake_neon.start("stuck", ends=1e6)
    for number in range(30):
        await wait_for(fake_neon, f"before-{number}", 1.0)
    with pytest.raises(WaitTimeoutError):
        await fake_neon.client.operations.wait(operation("stuck"), timeout=60)
    await wait_for(fake_neon, "after", 1.0)
    late, _ = await wait_for(fake_neon, "slower", 1.1)
    assert late < 0.47
