"""Waits for the state of a branch, compute or project that anybody changes."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from neonctl_async import (
    AuthenticationError,
    ClientClosedError,
    EndpointSpec,
    NeonClient,
    NotFoundError,
    PollPolicy,
    RateBudget,
    ServerError,
    StateTimeoutError,
    WaitEnded,
    WaitStarted,
)
from neonctl_async.local import Durations, LocalControlPlane
from neonctl_async.types import BranchCreated
from tests.support.clock import now
from tests.support.event_recorder import EventRecorder
from tests.support.fake_neon import FakeNeon
from tests.support.records import PROJECT, client_of, ref
from tests.support.server import hang, http_response
from tests.support.tasks import cancel
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
    return await other.branches.create(project_id, name="preview", endpoints=[compute], wait=wait)


async def test_wait_ends_when_a_branch_of_another_tool_is_ready(
    neon: NeonClient, other: NeonClient, project_id: str
) -> None:
    created = await new_branch(other, project_id)
    started = now()
    branch = await neon.branches.wait_for(project_id, created.branch.id)
    assert branch.current_state == "ready"
    assert branch == await other.branches.get(project_id, branch.id)
    assert 3 <= now() - started < 5
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
    assert suspended_at <= now() < suspended_at + 5


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
    assert 6 <= now() < 9
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


async def test_deleted_project_ends_a_wait_until_it_is_ready(
    neon: NeonClient, other: NeonClient
) -> None:
    project_id = (await other.projects.create(name="shop")).project.id
    wait = asyncio.create_task(neon.projects.wait_for(project_id))
    await asyncio.sleep(1)
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
    assert neon.requests_sent <= 102  # each wait reads the state and the operations at its start
    before = neon.requests_sent
    await asyncio.sleep(60)
    assert neon.requests_sent - before <= 20
    before = neon.requests_sent
    await other.endpoints.suspend(project_id, compute_id)
    await asyncio.gather(*waits)
    assert neon.requests_sent - before <= 10


async def test_state_is_read_when_an_operation_finishes(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=20.0, branch_id=BRANCH)
    fake_neon.start("other", ends=5.0, branch_id="br-other-12345678")
    branch = FakeBranch(fake_neon, {0.0: "init", 20.0: "ready"})
    await fake_neon.client.branches.wait_for(PROJECT, BRANCH)
    assert len(branch.read_at) == 2
    assert branch.lists == 1
    assert now() < 24


async def test_state_that_follows_its_operation_late_is_read_again_soon(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("a", ends=10.0, branch_id=BRANCH)
    branch = FakeBranch(fake_neon, {0.0: "init", 13.0: "ready"})
    await fake_neon.client.branches.wait_for(PROJECT, BRANCH)
    assert 13 <= now() < 15.5
    assert len(branch.read_at) <= 8


async def test_chained_operation_is_followed_after_the_one_before(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=10.0, branch_id=BRANCH)
    branch = FakeBranch(fake_neon, {0.0: "init", 40.0: "ready"})
    wait = asyncio.create_task(fake_neon.client.branches.wait_for(PROJECT, BRANCH))
    await asyncio.sleep(10)
    fake_neon.start("b", states={10.0: "running", 40.0: "finished"}, branch_id=BRANCH)
    await wait
    assert now() < 46
    assert len(branch.read_at) <= 4


async def test_operation_that_never_finishes_hides_no_state(fake_neon: FakeNeon) -> None:
    fake_neon.start("stuck", ends=1e6, branch_id=BRANCH)
    FakeBranch(fake_neon, {0.0: "init", 10.0: "ready"})
    await fake_neon.client.branches.wait_for(PROJECT, BRANCH)
    assert now() == pytest.approx(30, abs=1)


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


async def test_transient_failures_do_not_end_a_wait(
    fake_neon: FakeNeon, caplog: pytest.LogCaptureFixture
) -> None:
    other_record = http_response(200, {"branch": {"id": "br-other-12345678"}})
    failures = {0.0: http_response(503), 1.0: hang, 20.0: other_record}
    branch = FakeBranch(fake_neon, {0.0: "init", 30.0: "ready"}, failures)
    with caplog.at_level(logging.WARNING):
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH)
    assert 30 <= now() < 36
    assert len(branch.read_at) < 15
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert f"reading branch {BRANCH} in {PROJECT} failed and will be repeated" in caplog.text


async def test_record_of_another_branch_is_no_success(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "ready"}, id="br-other-12345678")
    with pytest.raises(StateTimeoutError, match="it contains branch 'br-other-12345678'"):
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=10)


async def test_failure_that_lasts_ends_every_wait(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "init"}, {3.0: http_response(401, {"message": "revoked"})})
    waits = [fake_neon.client.branches.wait_for(PROJECT, BRANCH) for _ in range(3)]
    errors = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(error) for error in errors] == [AuthenticationError] * 3
    assert len({id(error) for error in errors}) == 3


async def test_failed_list_of_operations_is_repeated(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=20.0, branch_id=BRANCH)
    branch = FakeBranch(fake_neon, {0.0: "init", 20.0: "ready"})
    respond = fake_neon.fault
    fake_neon.fault = lambda request: (
        http_response(500)
        if now() < 2 and request.path.endswith("/operations")
        else respond(request)
    )
    await fake_neon.client.branches.wait_for(PROJECT, BRANCH)
    assert now() < 25
    assert len(branch.read_at) < 8


async def test_forbidden_operations_leave_reading_the_state(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=20.0, branch_id=BRANCH)
    branch = FakeBranch(fake_neon, {0.0: "init", 20.0: "ready"})
    respond = fake_neon.fault
    fake_neon.fault = lambda request: (
        http_response(404) if request.path.endswith("/a") else respond(request)
    )
    await fake_neon.client.branches.wait_for(PROJECT, BRANCH)
    assert now() < 26
    assert len(branch.read_at) < 14


async def test_deadline_reports_the_newest_state_and_the_operations(fake_neon: FakeNeon) -> None:
    fake_neon.start("a", ends=1e6, branch_id=BRANCH)
    branch = FakeBranch(fake_neon, {0.0: "init"}, pending_state="ready")
    with pytest.raises(StateTimeoutError) as caught:
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=20)
    error = caught.value
    assert now() == pytest.approx(20, abs=0.01)
    assert isinstance(error, TimeoutError)
    assert (error.what, error.wanted) == (f"branch {BRANCH} in {PROJECT}", "ready")
    assert (error.state, error.pending_state, error.timeout) == ("init", "ready", 20)
    assert [record.ref for record in error.pending] == [ref("a")]
    assert error.settled == []
    assert branch.read_at[-1] > 19.5


async def test_deadline_reports_finished_operations_and_the_last_error(
    fake_neon: FakeNeon,
) -> None:
    fake_neon.start("a", ends=2.0, status="failed", branch_id=BRANCH)
    FakeBranch(fake_neon, {0.0: "init"}, {15.0: http_response(502)})
    with pytest.raises(StateTimeoutError) as caught:
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=20)
    assert [(each.id, each.status) for each in caught.value.settled] == [("a", "failed")]
    assert isinstance(caught.value.last_error, ServerError)


async def test_deadline_interrupts_a_hanging_request(fake_neon: FakeNeon) -> None:
    fake_neon.fault = lambda _request: hang
    with pytest.raises(StateTimeoutError, match="its state could not be read"):
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=3)
    assert now() == pytest.approx(3, abs=0.01)


async def test_timeout_of_zero_sends_no_request(fake_neon: FakeNeon) -> None:
    with pytest.raises(StateTimeoutError, match="within 0 s"):
        await fake_neon.client.branches.wait_for(PROJECT, BRANCH, timeout=0)
    assert fake_neon.received == []


async def test_timeout_none_waits_without_a_deadline(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "init", 5000.0: "ready"})
    async with client_of(fake_neon, polling=PollPolicy.constant(100)) as neon:
        await neon.branches.wait_for(PROJECT, BRANCH, timeout=None)
        assert now() == pytest.approx(5000, abs=101)


async def test_invalid_arguments_are_refused_before_any_request(fake_neon: FakeNeon) -> None:
    branches = fake_neon.client.branches
    with pytest.raises(ValueError, match="state is empty"):
        await branches.wait_for(PROJECT, BRANCH, "")
    with pytest.raises(ValueError, match="timeout is -1"):
        await branches.wait_for(PROJECT, BRANCH, timeout=-1)
    with pytest.raises(ValueError, match="branch_id is ''"):
        await branches.wait_for(PROJECT, "")
    with pytest.raises(ValueError, match=r"endpoint_id is '\.\.'"):
        await fake_neon.client.endpoints.wait_for(PROJECT, "..")
    with pytest.raises(ValueError, match="project_id is 'a/b'"):
        await fake_neon.client.projects.wait_for("a/b")
    assert fake_neon.received == []


async def test_short_budget_delays_reads(fake_neon: FakeNeon) -> None:
    branch = FakeBranch(fake_neon, {0.0: "init", 70.0: "ready"})
    async with client_of(fake_neon, budget=RateBudget(per_minute=6)) as neon:
        await neon.branches.wait_for(PROJECT, BRANCH)
        assert now() < 120
    assert len(branch.read_at) <= 7


async def test_closing_the_client_ends_waits(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "init"}, {10.0: hang})
    async with client_of(fake_neon) as neon:
        reading = asyncio.create_task(neon.branches.wait_for(PROJECT, BRANCH))
        await asyncio.sleep(15)
        waiting = asyncio.create_task(neon.branches.wait_for(PROJECT, BRANCH))
        await asyncio.sleep(0.01)
    for wait in (reading, waiting):
        with pytest.raises(ClientClosedError, match="during a wait for a state"):
            await wait
    with pytest.raises(ClientClosedError, match="create a new NeonClient"):
        await neon.branches.wait_for(PROJECT, BRANCH)


async def test_closing_the_client_ends_waits_that_follow_operations(fake_neon: FakeNeon) -> None:
    FakeBranch(fake_neon, {0.0: "init"})
    fake_neon.start("a", ends=1e6, branch_id=BRANCH)
    async with client_of(fake_neon) as neon:
        wait = asyncio.create_task(neon.branches.wait_for(PROJECT, BRANCH))
        await asyncio.sleep(10)
    with pytest.raises(ClientClosedError):
        await wait


@pytest.mark.parametrize("has_operation", [True, False])
async def test_cancelling_all_waits_stops_the_requests(
    fake_neon: FakeNeon, has_operation: bool
) -> None:
    FakeBranch(fake_neon, {0.0: "init", 100.0: "ready"})
    if has_operation:
        fake_neon.start("a", ends=100, branch_id=BRANCH)
    wait_for = fake_neon.client.branches.wait_for
    waits = [asyncio.create_task(wait_for(PROJECT, BRANCH)) for _ in range(3)]
    await asyncio.sleep(5)
    await cancel(*waits[1:])
    assert waits[1].cancelled()
    await asyncio.sleep(5)
    assert not waits[0].done()
    await cancel(waits[0])
    requests = len(fake_neon.received)
    await asyncio.sleep(100)
    assert len(fake_neon.received) == requests


async def test_wait_is_reported_to_hooks(fake_neon: FakeNeon) -> None:
    recorder = EventRecorder()
    fake_neon.start("a", ends=2.0, status="failed", branch_id=BRANCH)
    fake_neon.start("b", ends=1e6, branch_id=BRANCH)
    FakeBranch(fake_neon, {0.0: "init"})
    async with client_of(fake_neon, hooks=[recorder.hooks]) as neon:
        with pytest.raises(StateTimeoutError) as caught:
            await neon.branches.wait_for(PROJECT, BRANCH, timeout=10)
    [started], [ended] = recorder.of(WaitStarted), recorder.of(WaitEnded)
    assert started.goal == f"branch {BRANCH} in {PROJECT} is ready"
    assert (started.operations, started.timeout) == ((), 10)
    assert ended.wait is started
    assert (ended.unsuccessful, ended.pending, ended.error) == (1, 1, caught.value)
    assert ended.seconds == pytest.approx(10, abs=0.1)
