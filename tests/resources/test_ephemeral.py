"""Branches for a while: there within the block, and nowhere after it."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from neonctl_async import (
    BranchCreated,
    ClientClosedError,
    ConflictError,
    ConnectionLostError,
    EndpointSpec,
    NeonClient,
    OperationFailedError,
    PollPolicy,
    RateBudget,
    RequestTimeoutError,
    RetryPolicy,
    ServerError,
    Timeout,
    WaitTimeoutError,
)
from neonctl_async.local import Durations, Fault, InjectedFault, LocalControlPlane
from neonctl_async.local.faults import When
from tests.resources.wire import answering
from tests.support.records import PROJECT, branch_json, client_of
from tests.support.server import MisbehavingServer, Received, Respond, answer, drop, hang
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


async def test_it_is_made_as_asked() -> None:
    async with answering({"branch": branch_json(), "operations": []}) as exchange:
        async with exchange.neon.branches.ephemeral(
            PROJECT,
            name="for-now",
            parent_id="br-1",
            parent_lsn="0/1E88FA8",
            parent_timestamp=datetime(2026, 1, 1, tzinfo=UTC),
            init_source="schema-only",
            endpoints=[EndpointSpec(type="read_only")],
            ttl_seconds=None,
        ):
            assert exchange.asked.body == {
                "branch": {
                    "name": "for-now",
                    "parent_id": "br-1",
                    "parent_lsn": "0/1E88FA8",
                    "parent_timestamp": "2026-01-01T00:00:00Z",
                    "init_source": "schema-only",
                },
                "endpoints": [{"type": "read_only"}],
            }


async def test_the_platform_deletes_it_should_the_process_die(
    neon: NeonClient, project_id: str
) -> None:
    for lifetime, ephemeral in (
        (timedelta(hours=1), neon.branches.ephemeral(project_id)),
        (timedelta(minutes=10), neon.branches.ephemeral(project_id, ttl_seconds=600)),
    ):
        async with ephemeral as created:
            expires_at = created.branch.expires_at
        assert expires_at is not None
        assert abs(expires_at - datetime.now(UTC) - lifetime) < timedelta(seconds=60)
    async with neon.branches.ephemeral(project_id, ttl_seconds=None) as created:
        assert created.branch.expires_at is None


async def test_its_end_is_told_to_the_second() -> None:
    async with answering({"branch": branch_json(), "operations": []}) as exchange:
        async with exchange.neon.branches.ephemeral(PROJECT):
            told = re.search(rb'"expires_at":"([^"]+)"', exchange.server.received[0].body)
    assert told
    assert re.fullmatch(rb"[\d-]{10}T[\d:]{8}Z", told[1])


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


@pytest.fixture
def busy(plane: LocalControlPlane) -> InjectedFault:
    """A platform that is busy as the branch is to be deleted, for a moment."""
    return plane.inject(Fault(route=DELETE, status=503, times=1, headers={"Retry-After": "0.2"}))


async def test_a_timeout_does_not_cut_the_deletion_short(
    neon: NeonClient, project_id: str, busy: InjectedFault
) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as timeout:
            async with neon.branches.ephemeral(project_id):
                timeout.reschedule(asyncio.get_running_loop().time() + 0.1)
    assert busy.fired == 1
    assert await names(neon, project_id) == ["main"]


async def test_a_sibling_that_fails_does_not_cut_the_deletion_short(
    neon: NeonClient, project_id: str, busy: InjectedFault
) -> None:
    async def fail() -> None:
        await until(lambda: busy.fired == 1)
        raise RuntimeError("mine")

    with pytest.raises(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(enter(neon, project_id))
    assert await names(neon, project_id) == ["main"]


async def test_cancelled_again_and_again_it_is_deleted_all_the_same(
    neon: NeonClient, project_id: str, busy: InjectedFault
) -> None:
    task = asyncio.create_task(enter(neon, project_id))
    await until(lambda: busy.fired == 1)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await names(neon, project_id) == ["main"]


async def test_a_scope_that_is_cancelled_does_not_cut_the_deletion_short(
    neon: NeonClient, project_id: str, busy: InjectedFault
) -> None:
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


@pytest.mark.parametrize("when", ["before", "after"])
async def test_cancelled_while_it_is_created_it_is_deleted(
    plane: LocalControlPlane, neon: NeonClient, project_id: str, when: When
) -> None:
    slow = plane.inject(Fault(route=CREATE, delay=0.2, when=when))
    task = asyncio.create_task(enter(neon, project_id))
    await until(lambda: slow.fired == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sent(plane, "DELETE") == 1
    assert await names(neon, project_id) == ["main"]


async def test_a_creation_refused_to_one_who_was_cancelled_leaves_nothing_to_do(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    slow = plane.inject(Fault(route=CREATE, delay=0.1, status=409))
    task = asyncio.create_task(enter(neon, project_id))
    await until(lambda: slow.fired == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (sent(plane, "DELETE"), sent(plane, "GET")) == (0, 0)


async def test_one_that_is_made_after_its_answer_was_given_up_is_found_and_deleted(
    plane: LocalControlPlane, project_id: str
) -> None:
    plane.inject(Fault(route=CREATE, delay=0.5))
    async with NeonClient(
        plane.api_key, base_url=plane.base_url, timeout=Timeout(total=0.3)
    ) as neon:
        with pytest.raises(RequestTimeoutError) as caught:
            await enter(neon, project_id)
        assert await names(neon, project_id) == ["main"]
    assert not hasattr(caught.value, "__notes__")
    assert sent(plane, "DELETE") == 1


@pytest.mark.virtual_time
async def test_one_that_is_not_found_may_still_be_made_and_that_is_told() -> None:
    def respond(request: Received) -> Respond:
        return drop() if request.method == "POST" else answer(200, {"branches": []})

    async with MisbehavingServer(respond) as server, client_of(server) as neon:
        with pytest.raises(ConnectionLostError) as caught:
            await enter(neon, PROJECT)
        assert now() >= 3
    assert "may still be made" in caught.value.__notes__[0]


async def test_one_whose_answer_was_lost_is_found_and_deleted(
    plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await neon.branches.create(project_id, name="ephemeral-of-mine")
    plane.inject(Fault(route=CREATE, drop=True, when="after"))
    with pytest.raises(ConnectionLostError) as caught:
        await enter(neon, project_id)
    assert caught.value.maybe_delivered
    assert sorted(await names(neon, project_id)) == ["ephemeral-of-mine", "main"]
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
    with pytest.raises(ConnectionLostError) as caught:
        async with neon.branches.ephemeral(project_id, name="precious"):
            pytest.fail("no answer came")
    assert "may still be there: it was given a name" in caught.value.__notes__[0]
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
    with pytest.raises(ServerError) as caught:
        await enter(neon, project_id)
    assert "may still be there" in caught.value.__notes__[0]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_deletion_whose_answer_is_lost_is_sent_again(
    plane: LocalControlPlane, neon: NeonClient, project_id: str, when: When
) -> None:
    plane.inject(Fault(route=DELETE, drop=True, times=1, when=when))
    await enter(neon, project_id)
    assert await names(neon, project_id) == ["main"]


async def test_a_client_that_is_closed_within_the_block_says_what_it_leaves(
    neon: NeonClient, project_id: str
) -> None:
    with pytest.raises(ClientClosedError) as caught:
        async with neon.branches.ephemeral(project_id):
            await neon.aclose()
    assert "may still be there" in caught.value.__notes__[0]


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
        with pytest.raises(TimeoutError, match="its deletion took longer than 30 s"):
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


@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        ({"timeout": -1}, ValueError),
        ({"ttl_seconds": 0}, ValueError),
        ({"ttl_seconds": 10**12}, ValueError),
        ({"ttl_seconds": "60"}, TypeError),
        ({"ttl_seconds": True}, TypeError),
    ],
)
async def test_what_cannot_be_is_refused_before_anything_is_sent(
    plane: LocalControlPlane,
    neon: NeonClient,
    project_id: str,
    odd: dict[str, Any],
    kind: type[Exception],
) -> None:
    before = plane.requests_served
    with pytest.raises(kind, match=f"^{next(iter(odd))} is "):
        neon.branches.ephemeral(project_id, **odd)
    assert plane.requests_served == before
