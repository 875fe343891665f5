"""Waiting when there is more to look at than requests to look with."""

import asyncio
from collections import Counter, deque

import pytest

from neonctl_async import PollPolicy, RateBudget
from neonctl_async.models.operations import OperationsResponse
from tests.support.clock import now
from tests.support.platform import Platform
from tests.support.records import client_of, operation
from tests.support.server import Received, Respond, http_response

pytestmark = pytest.mark.virtual_time

PER_MINUTE, PER_SECOND = 70, 4
LIMITS = RateBudget(per_minute=PER_MINUTE, per_route_per_second=PER_SECOND)


class Strict:
    """A platform's limits, enforced in sliding windows; POST starts operations."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._account: deque[float] = deque()
        self._routes: dict[str, deque[float]] = {}
        self.refused = 0
        self.polls: dict[str, list[float]] = {}
        platform.fault = self.check

    def check(self, request: Received) -> Respond | None:
        """429 past a limit; None where the platform is to answer."""
        project_id = request.path.split("/")[4]
        kind = request.method + str(request.path.count("/"))
        of_route = self._routes.setdefault(kind, deque())
        fits = _fits(self._account, PER_MINUTE, 60.0), _fits(of_route, PER_SECOND, 1.0)
        if not all(fits):
            self.refused += 1
            return http_response(429, {"message": "too many requests"})
        self._account.append(now())
        of_route.append(now())
        if request.method == "POST":
            name, seconds = str(request.json()).split()
            self._platform.start(
                name,
                project_id=project_id,
                states={now(): "running", now() + float(seconds): "finished"},
            )
            return http_response(201, {"operations": [self._platform.record(name)]})
        if "/operations" not in request.path:
            return http_response(200, {})
        self.polls.setdefault(project_id, []).append(now())
        return None


def _fits(sent: deque[float], limit: int, period: float) -> bool:
    while sent and sent[0] <= now() - period:
        sent.popleft()
    return len(sent) < limit


async def test_every_project_gets_its_turn_as_often_as_any_other_and_none_is_refused() -> None:
    platform = Platform()
    strict = Strict(platform)
    projects = [f"project-{number}" for number in range(60)]
    for project_id in projects:
        platform.start(f"op-of-{project_id}", ends=400.0, project_id=project_id)
    async with platform.server, client_of(platform.server, budget=LIMITS) as neon:
        waits = [
            asyncio.create_task(
                neon.operations.wait(operation(f"op-of-{one}", project_id=one), timeout=None)
            )
            for one in projects
        ]
        await asyncio.sleep(300)
        polls = Counter({project_id: len(times) for project_id, times in strict.polls.items()})
        assert set(polls) == set(projects)
        assert max(polls.values()) - min(polls.values()) <= 1
        assert sum(polls.values()) >= 0.85 * 5 * PER_MINUTE
        await asyncio.gather(*waits)
        assert now() <= 400 + 60 * 60 / (0.85 * PER_MINUTE)
    assert strict.refused == 0


async def test_a_fan_out_beyond_the_limits_is_ready_as_soon_as_they_allow() -> None:
    platform = Platform()
    strict = Strict(platform)
    seconds = [1.0 + 2.0 * (n * 7 % 30) / 29 for n in range(30)]

    async with platform.server, client_of(platform.server, budget=LIMITS) as neon:

        async def provision(number: int) -> None:
            created = await neon.request(
                "POST",
                f"/projects/project-{number // 2}/branches",
                body=f"op-{number} {seconds[number]}",
                type=OperationsResponse,
            )
            await neon.operations.wait(created)

        await asyncio.gather(*(provision(number) for number in range(30)))
    assert strict.refused == 0
    floor = (30 + 15) / PER_SECOND + 3.0
    assert now() <= 1.15 * floor


async def test_a_caller_is_answered_at_once_beside_polls_that_take_all_they_can() -> None:
    platform = Platform()
    strict = Strict(platform)
    for number in range(60):
        platform.start(f"op-{number}", ends=1000, project_id=f"project-{number}")
    async with platform.server, client_of(platform.server, budget=LIMITS) as neon:
        waits = [
            asyncio.create_task(
                neon.operations.wait(operation(f"op-{n}", project_id=f"project-{n}"), timeout=None)
            )
            for n in range(60)
        ]
        for _ in range(8):
            await asyncio.sleep(20)
            asked = now()
            await neon.request("GET", "/projects/project-1/advisors")
            assert now() - asked <= 0.3
        for wait in waits:
            wait.cancel()
        await asyncio.wait(waits)
    assert strict.refused == 0


async def test_what_joins_while_a_look_waits_for_its_turn_is_looked_at_by_it() -> None:
    platform = Platform()
    strict = Strict(platform)
    limits = RateBudget(per_minute=1, per_route_per_second=1)
    for id in ("a", "b"):
        platform.start(id, ends=50, project_id="project-1")
    async with (
        platform.server,
        client_of(platform.server, budget=limits, polling=PollPolicy.constant(5.0)) as neon,
    ):
        await neon.request("GET", "/projects/project-1/advisors")
        first = asyncio.create_task(
            neon.operations.wait(operation("a", project_id="project-1"), timeout=None)
        )
        await asyncio.sleep(30)
        await neon.operations.wait(operation("b", project_id="project-1"), timeout=None)
        await first
    assert now() == pytest.approx(60, abs=1)
    assert len(strict.polls["project-1"]) == 1
    assert len(platform.pages) == 1
