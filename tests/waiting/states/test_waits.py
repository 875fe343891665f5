"""Waits for the state of a branch, compute or project that anybody changes."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from neonctl_async import (
    EndpointSpec,
    NeonClient,
    NotFoundError,
    PollPolicy,
    StateTimeoutError,
)
from neonctl_async.types import BranchCreated
from neonctl_local import Durations, LocalControlPlane
from tests.support.clock import now
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of
from tests.waiting.states.branches import BRANCH, FakeBranch

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.control_plane(durations=Durations(default=3.0)),
]

DELETED: str = "deleted"
"""Not a literal type: type checkers refuse to use the None that a wait for a deletion returns."""


@pytest.fixture
async def other(control_plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    """Another tool, which shares nothing with the client under test."""
    async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as other:
        yield other


@pytest.fixture
async def project_id(other: NeonClient) -> str:
    return (await other.projects.create(name="shop", wait=True)).project.id


async def new_branch(other: NeonClient, project_id: str, *, wait: bool = False) -> BranchCreated:
    """Create a branch with a compute."""
    compute = EndpointSpec(type="read_write")
    return await other.branches.create(project_id, endpoints=[compute], wait=wait)


async def test_wait_returns_when_a_branch_of_another_tool_is_ready(
    neon: NeonClient, other: NeonClient, project_id: str
) -> None:
    created = await new_branch(other, project_id)
    started = now()
    branch = await neon.branches.wait_for(project_id, created.branch.id)
    assert branch.current_state == "ready"
    assert branch == await other.branches.get(project_id, branch.id)
    assert 3 <= now() - started < 6
    assert neon.requests_sent <= 9


async def test_wait_for_a_reached_state_sends_one_request(
    neon: NeonClient, other: NeonClient, project_id: str
) -> None:
    created = await new_branch(other, project_id, wait=True)
    compute = await neon.endpoints.wait_for(project_id, created.endpoints[0].id)
    assert compute.current_state == "active"
    assert neon.requests_sent == 1


async def test_wait_covers_work_that_starts_later(
    neon: NeonClient, other: NeonClient, project_id: str
) -> None:
    created = await new_branch(other, project_id, wait=True)
    compute_id = created.endpoints[0].id
    wait = asyncio.create_task(neon.endpoints.wait_for(project_id, compute_id, "idle"))
    await asyncio.sleep(60)
    suspended_at = now() + 3
    await other.endpoints.suspend(project_id, compute_id)
    assert (await wait).current_state == "idle"
    assert suspended_at - 0.001 < now() < suspended_at + 5


async def test_compute_that_is_changing_is_not_in_its_state(
    neon: NeonClient, other: NeonClient, project_id: str
) -> None:
    created = await new_branch(other, project_id, wait=True)
    await other.endpoints.suspend(project_id, created.endpoints[0].id)
    with pytest.raises(StateTimeoutError, match=r"it is 'active', changing to 'idle'"):
        await neon.endpoints.wait_for(project_id, created.endpoints[0].id, timeout=1)


async def test_deletion_returns_none(neon: NeonClient, other: NeonClient, project_id: str) -> None:
    created = await new_branch(other, project_id, wait=True)
    compute_id, branch_id = created.endpoints[0].id, created.branch.id
    branch = asyncio.create_task(neon.branches.wait_for(project_id, branch_id, DELETED))
    compute = asyncio.create_task(neon.endpoints.wait_for(project_id, compute_id, DELETED))
    project = asyncio.create_task(neon.projects.wait_for(project_id, "deleted"))
    await asyncio.sleep(10)
    deleted_at = now()
    await other.branches.delete(project_id, branch_id)
    assert (await branch, await compute) == (None, None)
    assert now() < deleted_at + 6
    assert not project.done()
    await other.projects.delete(project_id)
    await project


async def test_missing_object_is_deleted_at_once(neon: NeonClient, project_id: str) -> None:
    assert await neon.branches.wait_for(project_id, "br-none-12345678", DELETED) is None
    assert neon.requests_sent == 1


async def test_missing_object_ends_a_wait_for_another_state(
    neon: NeonClient, project_id: str
) -> None:
    with pytest.raises(NotFoundError):
        await neon.branches.wait_for(project_id, "br-none-12345678")
    with pytest.raises(NotFoundError):
        await neon.endpoints.wait_for(project_id, "ep-none-12345678", "idle")
    with pytest.raises(NotFoundError):
        await neon.projects.wait_for("no-project-12345678")
    assert neon.requests_sent == 3


async def test_deletion_during_a_wait_for_another_state_ends_it(
    neon: NeonClient, other: NeonClient, project_id: str
) -> None:
    created = await new_branch(other, project_id, wait=True)
    wait = asyncio.create_task(neon.branches.wait_for(project_id, created.branch.id, "archived"))
    await asyncio.sleep(10)
    deleted_at = now()
    await other.branches.delete(project_id, created.branch.id)
    with pytest.raises(NotFoundError):
        await wait
    assert now() < deleted_at + 6


async def test_project_is_ready_when_its_default_branch_has_no_pending_operation(
    neon: NeonClient, other: NeonClient
) -> None:
    project_id = (await other.projects.create(name="shop")).project.id
    project = await neon.projects.wait_for(project_id)
    assert (project.id, project.name) == (project_id, "shop")
    assert 6 <= now() < 11
    operations = await other.operations.list(project_id).collect()
    assert {operation.status for operation in operations} == {"finished"}


async def test_operations_of_another_branch_do_not_delay_a_project(
    neon: NeonClient, other: NeonClient, project_id: str
) -> None:
    await new_branch(other, project_id)
    started = now()
    await neon.projects.wait_for(project_id)
    assert now() - started < 0.1
    assert neon.requests_sent == 3


@pytest.mark.control_plane(durations=Durations(default=3.0), lock="none")
async def test_deleted_project_ends_a_wait_until_it_is_ready(
    neon: NeonClient, other: NeonClient
) -> None:
    project_id = (await other.projects.create(name="shop")).project.id
    wait = asyncio.create_task(neon.projects.wait_for(project_id))
    await asyncio.sleep(0.5)
    await other.projects.delete(project_id)
    with pytest.raises(NotFoundError):
        await wait


async def test_project_has_two_states_only(neon: NeonClient) -> None:
    state = "archived"
    with pytest.raises(ValueError, match="'archived': expected 'ready' or 'deleted'"):
        await neon.projects.wait_for("p-1", state)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue, reportArgumentType] - a caller without a type checker


async def test_50_waits_on_one_compute_share_their_requests(
    neon: NeonClient, other: NeonClient, project_id: str
) -> None:
    created = await new_branch(other, project_id, wait=True)
    compute_id = created.endpoints[0].id
    waits: list[asyncio.Task[object]] = []
    for _ in range(50):
        waits.append(asyncio.create_task(neon.endpoints.wait_for(project_id, compute_id, "idle")))
        await asyncio.sleep(0.1)
    assert neon.requests_sent <= 52  # each wait reads the state at its start
    before = neon.requests_sent
    await asyncio.sleep(60)
    assert neon.requests_sent - before <= 30
    before = neon.requests_sent
    await other.endpoints.suspend(project_id, compute_id)
    await asyncio.gather(*waits)
    assert neon.requests_sent - before <= 10


async def test_waits_on_computes_of_a_project_share_their_requests(
    neon: NeonClient, other: NeonClient, project_id: str
) -> None:
    created = [(await new_branch(other, project_id)).endpoints[0].id for _ in range(20)]
    waits = (neon.endpoints.wait_for(project_id, id) for id in created)
    computes = await asyncio.gather(*waits)
    assert [each.id for each in computes] == created
    assert computes == [await other.endpoints.get(project_id, id) for id in created]
    assert neon.requests_sent <= 20


async def test_state_is_read_after_growing_delays_that_start_over_after_a_change(
    fake_neon: FakeNeon,
) -> None:
    branch = FakeBranch(fake_neon, {0.0: "init", 100.0: "idle", 110.0: "ready"})
    async with client_of(fake_neon, polling=PollPolicy(jitter=0.0)) as neon:
        await neon.branches.wait_for(PROJECT, BRANCH)
    delays = [round(later - earlier, 6) for earlier, later in pairwise(branch.read_at)]
    changed = next(n for n, at in enumerate(branch.read_at) if at >= 100.0)
    assert delays[0] == pytest.approx(PollPolicy().initial, abs=0.01)
    assert max(delays) == pytest.approx(5.0, abs=0.01)
    assert delays[:changed] == sorted(delays[:changed])
    assert delays[changed] == pytest.approx(PollPolicy().initial, abs=0.01)
    assert branch.lists == 0
    assert now() < 115


async def test_unknown_state_is_accepted(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "ready", 7.0: "hibernating"})
    branch = await fake_neon.client.branches.wait_for(PROJECT, BRANCH, "hibernating")
    assert branch is not None
    assert branch.current_state == "hibernating"


async def test_branch_that_can_be_recovered_is_deleted(fake_neon: FakeNeon) -> None:
    recovery = {"deleted_at": "2026-01-01T00:00:00Z", "recoverable_until": "2026-01-08T00:00:00Z"}
    FakeBranch(fake_neon, {0.0: "ready"}, recovery=recovery)
    assert await fake_neon.client.branches.wait_for(PROJECT, BRANCH, DELETED) is None
    with pytest.raises(StateTimeoutError, match="it is 'deleted'"):
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=3)
