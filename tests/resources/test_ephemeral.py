"""Branches for a while: there within the block, and nowhere after it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import anyio
import pytest

from neonctl_async import (
    BranchCreated,
    ConflictError,
    ConnectionLostError,
    EndpointSpec,
    NeonClient,
    OperationFailedError,
    PollPolicy,
    RateBudget,
    RetryPolicy,
    ServerError,
    Timeout,
    WaitTimeoutError,
)
from neonctl_async.local import Durations, Fault, LocalControlPlane
from tests.support.records import PROJECT, branch_json, client_of
from tests.support.server import MisbehavingServer, Received, Respond, answer, hang
from tests.support.until import until
from tests.support.virtual_time import now

CREATE = "POST /projects/{project_id}/branches"
DELETE = "DELETE /projects/{project_id}/branches/{branch_id}"


@pytest.fixture
async def plane() -> AsyncIterator[LocalControlPlane]:
    async with LocalControlPlane(durations=Durations(default=0.01)) as plane:
        yield plane


@pytest.fixture
async def neon(plane: LocalControlPlane) -> AsyncIterator[NeonClient]:
    async with NeonClient(
        plane.api_key,
        base_url=plane.base_url,
        budget=RateBudget.unlimited(),
        polling=PollPolicy(initial=0.02),
        retry=RetryPolicy(initial=0.02),
    ) as neon:
        yield neon


@pytest.fixture
async def project_id(neon: NeonClient) -> str:
    return (await neon.projects.create(wait=True)).project.id


async def names(neon: NeonClient, project_id: str) -> list[str]:
    return [branch.name async for branch in neon.branches.list(project_id)]


def sent(plane: LocalControlPlane, method: str) -> int:
    return sum(one.method == method and "/branches" in one.path for one in plane.requests)


async def test_it_is_ready_and_can_be_reached_within_the_block(
    neon: NeonClient, project_id: str
) -> None:
    async with neon.branches.ephemeral(project_id) as created:
        assert {operation.status for operation in created.operations} == {"finished"}
        assert created.connection_uri.reveal().startswith("postgresql://")
        assert created.branch.name in await names(neon, project_id)
    assert created.branch.name not in await names(neon, project_id)


async def test_it_is_made_as_asked(neon: NeonClient, project_id: str) -> None:
    parent = await neon.branches.default(project_id)
    async with neon.branches.ephemeral(
        project_id, name="for-now", parent_id=parent.id, endpoints=[]
    ) as created:
        assert (created.branch.name, created.branch.parent_id) == ("for-now", parent.id)
        assert created.endpoints == []
    assert "for-now" not in await names(neon, project_id)


async def test_the_platform_deletes_it_should_the_process_die(
    neon: NeonClient, project_id: str
) -> None:
    async with neon.branches.ephemeral(project_id, ttl_seconds=600) as created:
        expires_at = created.branch.expires_at
    assert expires_at is not None
    assert abs(expires_at - datetime.now(UTC) - timedelta(seconds=600)) < timedelta(seconds=60)
    async with neon.branches.ephemeral(project_id, ttl_seconds=None) as created:
        assert created.branch.expires_at is None


async def test_an_error_in_the_block_comes_out_as_it_was(neon: NeonClient, project_id: str) -> None:
    with pytest.raises(RuntimeError, match=r"^mine$") as caught:
        async with neon.branches.ephemeral(project_id):
            raise RuntimeError("mine")
    assert not hasattr(caught.value, "__notes__")
    assert await names(neon, project_id) == ["main"]


async def test_a_block_may_delete_it_itself(neon: NeonClient, project_id: str) -> None:
    async with neon.branches.ephemeral(project_id) as created:
        await neon.branches.delete(project_id, created.branch.id)
    assert await names(neon, project_id) == ["main"]


async def test_a_cancelled_block_is_cleaned_up(neon: NeonClient, project_id: str) -> None:
    within = asyncio.Event()

    async def use() -> None:
        async with neon.branches.ephemeral(project_id):
            within.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(use())
    await within.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(neon, project_id) == ["main"]


async def test_a_scope_that_is_cancelled_does_not_cut_the_deletion_short(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    busy = plane.inject(Fault(route=DELETE, status=503, times=1))
    with anyio.CancelScope() as scope:
        async with neon.branches.ephemeral(project_id):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert busy.fired == 1
    assert await names(neon, project_id) == ["main"]


async def test_cancelled_before_it_is_ready_it_is_deleted(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await plane.fail_next("create_branch", retry_after=3600)
    task = asyncio.create_task(enter(neon, project_id))
    await until(lambda: plane.requests[-1].path.endswith("/operations"))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(neon, project_id) == ["main"]


async def enter(neon: NeonClient, project_id: str) -> BranchCreated:
    """Enter the block and leave it."""
    async with neon.branches.ephemeral(project_id) as created:
        return created


async def test_cancelled_while_it_is_created_it_is_found_and_deleted(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    slow = plane.inject(Fault(route=CREATE, delay=5, when="after"))
    task = asyncio.create_task(enter(neon, project_id))
    await until(lambda: slow.fired == 1)
    while await names(neon, project_id) == ["main"]:
        pass  # the branch is made before its answer is held back
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(neon, project_id) == ["main"]


async def test_one_whose_answer_was_lost_is_found_and_deleted(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    plane.inject(Fault(route=CREATE, drop=True, when="after"))
    with pytest.raises(ConnectionLostError) as caught:
        await enter(neon, project_id)
    assert caught.value.maybe_delivered
    assert await names(neon, project_id) == ["main"]
    assert sent(plane, "DELETE") == 1


async def test_a_creation_that_is_refused_leaves_others_alone(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    with pytest.raises(ConflictError):
        async with neon.branches.ephemeral(project_id, name="main"):
            pytest.fail("there is a branch of that name")
    assert (sent(plane, "DELETE"), sent(plane, "GET")) == (0, 0)


async def test_a_lost_answer_to_a_name_of_ones_own_deletes_nothing(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await neon.branches.create(project_id, name="precious")
    plane.inject(Fault(route=CREATE, drop=True))
    with pytest.raises(ConnectionLostError):
        async with neon.branches.ephemeral(project_id, name="precious"):
            pytest.fail("no answer came")
    assert sent(plane, "DELETE") == 0


async def test_one_that_fails_to_start_is_deleted(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await plane.fail_next("start_compute")
    with pytest.raises(OperationFailedError) as caught:
        await enter(neon, project_id)
    assert isinstance(caught.value.result, BranchCreated)
    assert await names(neon, project_id) == ["main"]


async def test_one_that_is_not_ready_in_time_is_deleted(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await plane.fail_next("create_branch", retry_after=3600)
    with pytest.raises(WaitTimeoutError):
        async with neon.branches.ephemeral(project_id, timeout=0.1):
            pytest.fail("it is not ready")
    assert await names(neon, project_id) == ["main"]


async def test_a_deletion_that_fails_is_raised(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    plane.inject(Fault(route=DELETE, status=500))
    with pytest.raises(ServerError):
        await enter(neon, project_id)


async def test_a_deletion_that_fails_is_noted_on_what_failed_before(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    plane.inject(Fault(route=DELETE, status=500))
    with pytest.raises(RuntimeError) as caught:
        async with neon.branches.ephemeral(project_id):
            raise RuntimeError("mine")
    [note] = caught.value.__notes__
    assert note.startswith("its ephemeral branch may still be there: DELETE")
    assert "500" in note


@pytest.mark.virtual_time
async def test_a_deletion_that_hangs_lets_go_after_half_a_minute() -> None:
    def respond(request: Received) -> Respond:
        if request.method == "POST":
            return answer(201, {"branch": branch_json(), "operations": []})
        return hang

    patient = Timeout(total=3600, read=3600)
    async with MisbehavingServer(respond) as server, client_of(server, timeout=patient) as neon:
        with pytest.raises(TimeoutError, match="not deleted within 30 s"):
            await enter(neon, PROJECT)
        assert 30 <= now() < 31


async def test_it_may_be_entered_in_one_task_and_left_in_another(
    neon: NeonClient, project_id: str
) -> None:
    ephemeral = neon.branches.ephemeral(project_id)
    created = await asyncio.create_task(ephemeral.__aenter__())
    assert created.branch.name in await names(neon, project_id)
    await asyncio.create_task(ephemeral.__aexit__(None, None, None))
    assert await names(neon, project_id) == ["main"]


async def test_twenty_at_once_are_all_gone_in_the_end(neon: NeonClient, project_id: str) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(enter(neon, project_id))
    assert await names(neon, project_id) == ["main"]


async def test_an_impossible_timeout_is_refused_before_anything_is_sent(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    before = plane.requests_served
    with pytest.raises(ValueError, match="timeout is -1"):
        neon.branches.ephemeral(project_id, timeout=-1, endpoints=[EndpointSpec(type="read_only")])
    assert plane.requests_served == before
