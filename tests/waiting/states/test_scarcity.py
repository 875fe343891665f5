"""Waits for many states under the rate limits, without and with operations."""

import asyncio
import re
from statistics import mean

import pytest

from neonctl_async import NeonClient, NotFoundError, RateBudget
from neonctl_async.types import Branch
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, JsonObject, branch_json, client_of
from tests.support.server import Received, Respond, http_response
from tests.waiting.states.branches import MISSING

pytestmark = pytest.mark.virtual_time


WAITS = 60
BUDGET = RateBudget(per_minute=140, per_route_per_second=40)
"""Two slots a minute for each wait and some more, as 700 are for 300 waits."""


class FakeBranches:
    """Branches of ``fake_neon`` in one or more projects.

    They become ready at ``ready_at``, or evenly within the seconds ``over`` after it.
    """

    def __init__(
        self, fake_neon: FakeNeon, projects: int, ready_at: float, over: float = 0.0
    ) -> None:
        self.missing: set[str] = set()
        self.unlisted: set[str] = set()
        self.ids: list[tuple[str, str]] = [
            (PROJECT if projects == 1 else f"project-{number}", f"br-{number}")
            for number in range(WAITS)
        ]
        self._ready_at = {
            id: ready_at + over * number / WAITS for number, (_, id) in enumerate(self.ids)
        }
        fake_neon.fault = self._respond

    async def wait_for_all(self, neon: NeonClient) -> list[float]:
        """Wait for each branch. Return how long after the change each call returned."""

        async def wait(project_id: str, id: str) -> float:
            branch = await neon.branches.wait_for(project_id, id)
            assert (branch.project_id, branch.id) == (project_id, id)
            return now() - self._ready_at[id]

        return await asyncio.gather(*(wait(*each) for each in self.ids))

    def _record(self, project_id: str, id: str) -> JsonObject:
        state = "ready" if now() >= self._ready_at[id] else "init"
        return {**branch_json(id), "project_id": project_id, "current_state": state}

    def _respond(self, request: Received) -> Respond | None:
        match = re.fullmatch(r"/api/v2/projects/([^/]+)/branches(?:/([^/]+))?", request.path)
        if match is None:
            return None
        project_id, id = match.groups()
        if id in self.missing:
            return MISSING
        if id is not None:
            return http_response(200, {"branch": self._record(project_id, id)})
        listed = [
            self._record(project_id, id)
            for project, id in self.ids
            if project == project_id and id not in self.unlisted | self.missing
        ]
        return http_response(200, {"branches": listed})


async def test_waits_on_branches_of_one_project_return_soon(fake_neon: FakeNeon) -> None:
    branches = FakeBranches(fake_neon, projects=1, ready_at=30.0, over=60.0)
    async with client_of(fake_neon, budget=BUDGET) as neon:
        assert max(await branches.wait_for_all(neon)) <= 5.5
    assert len(fake_neon.received) <= 40


async def test_branches_that_no_list_contains_are_read_by_id(fake_neon: FakeNeon) -> None:
    branches = FakeBranches(fake_neon, projects=1, ready_at=10.0)
    branches.unlisted = {"br-7"}
    async with client_of(fake_neon, budget=BUDGET) as neon:
        assert max(await branches.wait_for_all(neon)) <= 5.5


async def test_missing_branch_ends_no_wait_for_another_one(fake_neon: FakeNeon) -> None:
    branches = FakeBranches(fake_neon, projects=1, ready_at=10.0)
    branches.missing = {"br-7"}
    others = [id for id in branches.ids if id[1] != "br-7"]
    async with client_of(fake_neon, budget=BUDGET) as neon:
        waits = [neon.branches.wait_for(*id) for id in others]
        missing, *found = await asyncio.gather(
            neon.branches.wait_for(PROJECT, "br-7"), *waits, return_exceptions=True
        )
    assert isinstance(missing, NotFoundError)
    assert [each.id for each in found if isinstance(each, Branch)] == [id for _, id in others]


async def test_waits_on_branches_of_many_projects_use_the_whole_budget(fake_neon: FakeNeon) -> None:
    branches = FakeBranches(fake_neon, projects=WAITS, ready_at=30.0, over=60.0)
    async with client_of(fake_neon, budget=BUDGET) as neon:
        assert mean(await branches.wait_for_all(neon)) <= 21.0


@pytest.mark.parametrize(("projects", "latest"), [(1, 2.5), (WAITS, 35.0)])
async def test_waits_on_branches_with_operations_return_soon(
    fake_neon: FakeNeon, projects: int, latest: float
) -> None:
    branches = FakeBranches(fake_neon, projects, ready_at=5.0)
    for project_id, id in branches.ids:
        fake_neon.start(f"op-{id}", ends=5.0, project_id=project_id, branch_id=id)
    async with client_of(fake_neon, budget=BUDGET) as neon:
        assert mean(await branches.wait_for_all(neon)) <= latest
