"""What a client learns from one operation serves the next, on a virtual clock."""

import asyncio
from itertools import pairwise
from statistics import median

import pytest

from neonctl_async import NeonClient, OperationRef, PollPolicy, WaitTimeoutError
from tests.support.clock import now
from tests.support.platform import Platform
from tests.support.records import PROJECT, client_of, operation, ref

pytestmark = pytest.mark.virtual_time


async def wait_for(
    neon: NeonClient, platform: Platform, name: str, seconds: float
) -> tuple[float, int]:
    """How late the end of a new operation of so many seconds is seen, and after how many looks."""
    begun, polls = now(), len(platform.server.received)
    platform.start(name, states={begun: "running", begun + seconds: "finished"})
    await neon.operations.wait(operation(name))
    return now() - begun - seconds, len(platform.server.received) - polls


@pytest.mark.parametrize("seconds", [0.8, 1.0, 4.0])
async def test_the_end_of_a_kind_that_is_known_is_met_by_one_look(seconds: float) -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        for number in range(20):
            await wait_for(neon, platform, f"before-{number}", seconds)
        seen = [await wait_for(neon, platform, f"after-{n}", seconds) for n in range(10)]
    assert median(late for late, _ in seen) < 0.15
    assert median(polls for _, polls in seen) <= 2


async def test_the_end_that_is_due_next_is_met_though_others_began_later() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        for number in range(10):
            await wait_for(neon, platform, f"before-{number}", 4.0)
        older = asyncio.create_task(wait_for(neon, platform, "older", 4.0))
        await asyncio.sleep(3.0)
        younger = asyncio.create_task(wait_for(neon, platform, "younger", 4.0))
        platform.start("ended", ends=0.0)
        await neon.operations.wait(ref("ended"))  # a look, after which the next is planned
        for wait in (older, younger):
            late, _ = await wait
            assert late < 0.2


async def test_durations_that_vary_are_met_sooner_and_with_fewer_looks() -> None:
    durations = [0.7 + 0.6 * (n * 7 % 20) / 20 for n in range(20)]
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        blind = [await wait_for(neon, platform, f"b{n}", durations[n]) for n in range(4)]
        for number in range(20):
            await wait_for(neon, platform, f"c{number}", durations[number])
        seen = [await wait_for(neon, platform, f"d{n}", durations[n]) for n in range(20)]
    assert sum(late for late, _ in seen) / 20 < sum(late for late, _ in blind) / 4
    assert sum(polls for _, polls in seen) / 20 < sum(polls for _, polls in blind) / 4


async def test_an_operation_that_takes_longer_than_any_seen_is_still_looked_at() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        for number in range(10):
            await wait_for(neon, platform, f"short-{number}", 1.0)
        late, polls = await wait_for(neon, platform, "long", 30.0)
    assert late <= 5.5
    assert polls < 20


async def test_a_long_wait_that_was_foreseen_is_looked_at_every_5_seconds() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        for number in range(6):
            await wait_for(neon, platform, f"long-{number}", 60.0)
        late, _ = await wait_for(neon, platform, "short", 1.0)
    assert late <= 5.0


async def test_what_one_project_teaches_hurries_the_others_up() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        projects = [f"project-{n}-12345678" for n in range(40)]
        for number, project_id in enumerate(projects):
            platform.start(f"op-{number}", ends=2.0, project_id=project_id)
        await neon.operations.wait(
            [operation(f"op-{n}", project_id=one) for n, one in enumerate(projects)]
        )
        assert now() < 2.6  # on its own, each would be looked at by 2.2 s or as late as 3.3 s


async def test_a_constant_interval_is_kept_whatever_was_learned() -> None:
    platform = Platform()
    async with (
        platform.server,
        client_of(platform.server, polling=PollPolicy.constant(3.0)) as neon,
    ):
        seen = [await wait_for(neon, platform, f"op-{n}", 1.0) for n in range(10)]
    assert [polls for _, polls in seen] == [1] * 10
    assert all(late == pytest.approx(2.0, abs=0.01) for late, _ in seen)


async def test_a_record_that_tells_how_long_it_has_run_is_not_taken_for_a_new_one() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        for number in range(10):
            await wait_for(neon, platform, f"before-{number}", 4.0)
        begun = now()
        platform.start("resumed", states={begun - 3.0: "running", begun + 1.0: "finished"})
        await neon.operations.wait(OperationRef(project_id=PROJECT, id="resumed"))
        assert now() - begun < 2.0


async def test_many_that_end_one_after_another_are_not_looked_at_one_by_one() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        for number in range(10):
            await wait_for(neon, platform, f"before-{number}", 0.2 + number)
        begun, polls = now(), len(platform.server.received)
        ids = [f"op-{number}" for number in range(200)]
        for number, name in enumerate(ids):
            ends = begun + (number + 1) * 0.05
            platform.start(name, states={begun: "running", ends: "finished"})
        await neon.operations.wait([operation(name) for name in ids])
        assert now() - begun <= 10 + 2.5
    assert len(platform.server.received) - polls <= 25


async def test_looks_keep_their_distance_however_short_what_is_known_takes() -> None:
    platform = Platform()
    async with platform.server, client_of(platform.server) as neon:
        for number in range(10):
            await wait_for(neon, platform, f"before-{number}", 0.1 + number * 0.04)
        looked_at: list[float] = []
        platform.fault = lambda _request: looked_at.append(now())
        platform.start("last", states={now(): "running", now() + 3.0: "finished"})
        waits = [asyncio.create_task(neon.operations.wait(operation("last")))]
        for number in range(40):
            ends = now() + 0.1 + number % 10 * 0.04
            platform.start(f"op-{number}", states={now(): "running", ends: "finished"})
            waits.append(asyncio.create_task(neon.operations.wait(operation(f"op-{number}"))))
            await asyncio.sleep(0.05)
        await asyncio.gather(*waits)
    gaps = [second - first for first, second in pairwise(looked_at)]
    assert min(gaps) >= 0.25 * 0.9 - 0.002


async def test_where_no_record_tells_a_duration_it_is_learned_from_what_was_seen() -> None:
    platform = Platform()
    polls: list[int] = []
    async with platform.server, client_of(platform.server) as neon:
        for number in range(30):
            begun, before = now(), len(platform.server.received)
            platform.start(
                f"op-{number}",
                states={begun: "running", begun + 4.0: "finished"},
                total_duration_ms=None,
            )
            await neon.operations.wait(operation(f"op-{number}"))
            polls.append(len(platform.server.received) - before)
    assert sum(polls[20:]) / 10 < 4


async def test_one_that_was_given_up_spoils_nothing_that_is_known() -> None:
    platform = Platform()
    platform.start("stuck", ends=1e6)
    async with platform.server, client_of(platform.server) as neon:
        for number in range(30):
            await wait_for(neon, platform, f"before-{number}", 1.0)
        with pytest.raises(WaitTimeoutError):
            await neon.operations.wait(operation("stuck"), timeout=60)
        await wait_for(neon, platform, "after", 1.0)
        late, _ = await wait_for(neon, platform, "slower", 1.1)
    assert late < 0.4
