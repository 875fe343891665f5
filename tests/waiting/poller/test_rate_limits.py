"""Polls when the rate budget is too small for all pending operations."""

import asyncio
from collections import Counter

import pytest

from neonctl_async import PollPolicy, RateBudget
from neonctl_async.models.operations import OperationsResponse
from neonctl_async.testing import real_time_hooks
from neonctl_async.waiting.timing.pace import UNKNOWN_POLLS
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of, operation
from tests.support.server import Received, Respond, http_response
from tests.support.strict_limits import PER_MINUTE, PER_SECOND, StrictLimits
from tests.support.tasks import cancel

pytestmark = pytest.mark.virtual_time

BUDGET = RateBudget(per_minute=PER_MINUTE, per_route_per_second=PER_SECOND)


@pytest.mark.long
async def test_projects_share_a_short_budget_evenly_without_429(fake_neon: FakeNeon) -> None:
    limits = StrictLimits(fake_neon)
    projects = [f"project-{number}" for number in range(20)]
    for project_id in projects:
        fake_neon.start(f"op-of-{project_id}", ends=150.0, project_id=project_id)
    # On a busy machine, the clock could jump to the timeout of a request on its way.
    async with client_of(fake_neon, budget=BUDGET, hooks=[real_time_hooks()]) as neon:
        waits = [
            asyncio.create_task(
                neon.operations.wait(operation(f"op-of-{id}", project_id=id), timeout=None)
            )
            for id in projects
        ]
        await asyncio.sleep(120)
        polls = Counter({project_id: len(times) for project_id, times in limits.polls.items()})
        assert set(polls) == set(projects)
        assert min(polls.values()) >= 2
        # Some projects are polled more often at first, to measure the durations.
        assert max(polls.values()) - min(polls.values()) <= UNKNOWN_POLLS + 4
        await asyncio.gather(*waits)
        assert now() <= 150 + 20 * 60 / (0.85 * PER_MINUTE)
    assert limits.rejected == 0


async def test_fan_out_finishes_as_soon_as_the_limits_allow(fake_neon: FakeNeon) -> None:
    limits = StrictLimits(fake_neon)
    seconds = [1.0 + 2.0 * (n * 7 % 30) / 29 for n in range(30)]

    async with client_of(fake_neon, budget=BUDGET) as neon:

        async def provision(number: int) -> None:
            created = await neon.request(
                "POST",
                f"/projects/project-{number // 2}/branches",
                body=f"op-{number} {seconds[number]}",
                type=OperationsResponse,
            )
            await neon.operations.wait(created)

        await asyncio.gather(*(provision(number) for number in range(30)))
    assert limits.rejected == 0
    minimum = (30 + 15) / PER_SECOND + 3.0
    assert now() <= 1.15 * minimum


@pytest.mark.long
async def test_polls_under_a_short_budget_delay_no_call(fake_neon: FakeNeon) -> None:
    limits = StrictLimits(fake_neon)
    for number in range(30):
        fake_neon.start(f"op-{number}", ends=1000, project_id=f"project-{number}")
    async with client_of(fake_neon, budget=BUDGET) as neon:
        waits = [
            asyncio.create_task(
                neon.operations.wait(operation(f"op-{n}", project_id=f"project-{n}"), timeout=None)
            )
            for n in range(30)
        ]
        for _ in range(3):
            await asyncio.sleep(61)
            sent_at = now()
            await neon.request("GET", "/projects/project-1/advisors")
            assert now() - sent_at <= 60 / PER_MINUTE + 0.5  # it gets the next slot
        await cancel(*waits)
    assert limits.rejected == 0


async def test_all_requests_of_a_last_poll_go_before_calls(fake_neon: FakeNeon) -> None:
    for id in ("a", "b"):
        fake_neon.start(id, ends=4.0)
        fake_neon.hidden.add(id)  # a list is read, and then each operation by id
    fake_neon.fault = slow_calls
    polling = PollPolicy.constant(1000.0)
    async with client_of(fake_neon, polling=polling, max_connections=4) as neon:
        wait = asyncio.create_task(
            neon.operations.wait([operation("a"), operation("b")], timeout=5.0)
        )
        await asyncio.sleep(4.9)
        calls: list[asyncio.Task[object]] = []
        for _ in range(60):
            calls.append(asyncio.create_task(neon.request("GET", f"/projects/{PROJECT}/advisors")))
            await asyncio.sleep(0.01 if len(calls) < 4 else 0)  # one ends every 0.01 s
        await wait
        await asyncio.gather(*calls)
    assert (len(fake_neon.pages), fake_neon.gets) == (1, 62)


def slow_calls(request: Received) -> Respond | None:
    """Respond to calls after 0.04 s, and to polls at once."""
    if "/operations" in request.path:
        return None

    async def respond(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.04)
        await http_response(200, {})(writer)

    return respond


async def test_operation_added_before_a_poll_has_its_slot_is_polled(fake_neon: FakeNeon) -> None:
    limits = StrictLimits(fake_neon)
    budget = RateBudget(per_minute=1, per_route_per_second=1)
    for id in ("a", "b"):
        fake_neon.start(id, ends=50, project_id="project-1")
    async with client_of(fake_neon, budget=budget, polling=PollPolicy.constant(5.0)) as neon:
        await neon.request("GET", "/projects/project-1/advisors")
        first = asyncio.create_task(
            neon.operations.wait(operation("a", project_id="project-1"), timeout=None)
        )
        await asyncio.sleep(30)
        await neon.operations.wait(operation("b", project_id="project-1"), timeout=None)
        await first
    assert now() == pytest.approx(60, abs=1)
    assert len(limits.polls["project-1"]) == 1
    assert len(fake_neon.pages) == 1
