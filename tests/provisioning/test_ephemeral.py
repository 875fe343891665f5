"""The branch of ``branches.ephemeral`` exists during the block, and not after it."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from neonctl_async import (
    ClientClosedError,
    ConflictError,
    ConnectionLostError,
    EndpointSpec,
    NeonClient,
    NotConnectableError,
    OperationFailedError,
    RequestTimeoutError,
    ServerError,
    Timeout,
    WaitTimeoutError,
)
from neonctl_async.types import BranchCreated
from neonctl_local import Durations, Fault, InjectedFault, LocalControlPlane, ManualClock
from neonctl_local.server.faults import When
from tests.provisioning.helpers import (
    CREATE,
    DELETE,
    branch_names,
    count_requests,
    enter_and_exit,
    unlocked,
)
from tests.resources.wire import responding_with
from tests.support.clock import now
from tests.support.records import PROJECT, branch_json, client_of
from tests.support.server import MisbehavingServer, Received, Respond, drop, hang, http_response
from tests.support.until import until


async def test_branch_is_ready_during_the_block_and_deleted_after_it(
    neon: NeonClient, project_id: str
) -> None:
    async with neon.branches.ephemeral(project_id) as created:
        assert {operation.status for operation in created.operations} == {"finished"}
        assert created.connection_uri.reveal().startswith("postgresql://")
        assert created.branch.name in await branch_names(neon, project_id)
    assert created.branch.name not in await branch_names(neon, project_id)


async def test_branch_is_kept_after_an_error_if_requested(
    neon: NeonClient, project_id: str
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with neon.branches.ephemeral(project_id, name="failed", keep_on_error=True):
            _ = 1 / 0
    with pytest.raises(asyncio.CancelledError):
        async with neon.branches.ephemeral(project_id, name="cancelled", keep_on_error=True):
            raise asyncio.CancelledError
    async with neon.branches.ephemeral(project_id, name="done", keep_on_error=True):
        pass
    assert await branch_names(neon, project_id) == ["failed", "main"]


async def test_branch_that_is_not_ready_is_never_kept(
    neon: NeonClient, control_plane: LocalControlPlane, project_id: str
) -> None:
    await control_plane.fail_next("create_branch")
    with pytest.raises(OperationFailedError):
        async with neon.branches.ephemeral(project_id, keep_on_error=True):
            pytest.fail("the branch is not ready")
    assert await branch_names(neon, project_id) == ["main"]


async def test_all_arguments_are_sent() -> None:
    async with responding_with({"branch": branch_json(), "operations": []}) as exchange:
        async with exchange.neon.branches.ephemeral(
            PROJECT,
            name="temporary",
            parent_id="br-1",
            parent_lsn="0/1E88FA8",
            parent_timestamp=datetime(2026, 1, 1, tzinfo=UTC),
            init_source="schema-only",
            endpoints=[EndpointSpec(type="read_only")],
            ttl_seconds=None,
        ):
            assert exchange.sent.body == {
                "branch": {
                    "name": "temporary",
                    "parent_id": "br-1",
                    "parent_lsn": "0/1E88FA8",
                    "parent_timestamp": "2026-01-01T00:00:00Z",
                    "init_source": "schema-only",
                },
                "endpoints": [{"type": "read_only"}],
            }


async def test_branch_expires_after_ttl_seconds(neon: NeonClient, project_id: str) -> None:
    for ttl, ephemeral in (
        (timedelta(hours=1), neon.branches.ephemeral(project_id)),
        (timedelta(minutes=10), neon.branches.ephemeral(project_id, ttl_seconds=600)),
    ):
        async with ephemeral as created:
            expires_at = created.branch.expires_at
        assert expires_at is not None
        assert abs(expires_at - datetime.now(UTC) - ttl) < timedelta(seconds=60)
    async with neon.branches.ephemeral(project_id, ttl_seconds=None) as created:
        assert created.branch.expires_at is None


async def test_lifetime_is_measured_with_the_clock_of_the_server() -> None:
    clock = ManualClock()  # far from the time of this machine
    async with (
        LocalControlPlane(clock=clock, durations=Durations(default=0)) as server,
        NeonClient(server.api_key, base_url=server.base_url) as neon,
    ):
        project_id = (await neon.projects.create()).project.id
        async with neon.branches.ephemeral(project_id, ttl_seconds=600) as created:
            expires_at = created.branch.expires_at
    assert expires_at is not None
    difference = expires_at - created.branch.created_at - timedelta(minutes=10)
    assert abs(difference) < timedelta(seconds=60)


async def test_expires_at_is_sent_in_whole_seconds() -> None:
    async with responding_with({"branch": branch_json(), "operations": []}) as exchange:
        async with exchange.neon.branches.ephemeral(PROJECT):
            sent = re.search(rb'"expires_at":"([^"]+)"', exchange.server.received[0].body)
    assert sent
    assert re.fullmatch(rb"[\d-]{10}T[\d:]{8}Z", sent[1])


async def test_error_of_the_block_is_raised_without_a_note(
    neon: NeonClient, project_id: str
) -> None:
    with pytest.raises(RuntimeError, match=r"^error of the block$") as caught:
        async with neon.branches.ephemeral(project_id):
            raise RuntimeError("error of the block")
    assert not hasattr(caught.value, "__notes__")
    assert await branch_names(neon, project_id) == ["main"]


async def test_block_can_delete_the_branch(neon: NeonClient, project_id: str) -> None:
    async with neon.branches.ephemeral(project_id) as created:
        await neon.branches.delete(project_id, created.branch.id)
    assert await branch_names(neon, project_id) == ["main"]


async def test_block_can_be_entered_and_left_in_different_tasks(
    neon: NeonClient, project_id: str
) -> None:
    ephemeral = neon.branches.ephemeral(project_id)
    created = await asyncio.create_task(ephemeral.__aenter__())
    assert created.branch.name in await branch_names(neon, project_id)
    await asyncio.create_task(ephemeral.__aexit__(None, None, None))
    assert await branch_names(neon, project_id) == ["main"]


async def test_twenty_concurrent_branches_are_all_deleted(
    neon: NeonClient, project_id: str
) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(enter_and_exit(neon, project_id))
    assert await branch_names(neon, project_id) == ["main"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"timeout": -1}, ValueError),
        ({"ttl_seconds": 0}, ValueError),
        ({"ttl_seconds": 30 * 86400 + 1}, ValueError),
        ({"ttl_seconds": "60"}, TypeError),
        ({"ttl_seconds": True}, TypeError),
    ],
)
async def test_invalid_argument_is_rejected_without_a_request(
    control_plane: LocalControlPlane,
    neon: NeonClient,
    project_id: str,
    arguments: dict[str, Any],
    error: type[Exception],
) -> None:
    before = control_plane.requests_served
    with pytest.raises(error, match=f"^{next(iter(arguments))} is "):
        neon.branches.ephemeral(project_id, **arguments)
    assert control_plane.requests_served == before


async def test_branch_created_after_a_request_timeout_is_deleted(
    control_plane: LocalControlPlane, project_id: str
) -> None:
    control_plane.inject(Fault(route=CREATE, delay=0.5))
    async with NeonClient(
        control_plane.api_key, base_url=control_plane.base_url, timeout=Timeout(total=0.3)
    ) as neon:
        with pytest.raises(RequestTimeoutError) as caught:
            await enter_and_exit(neon, project_id)
        assert await branch_names(neon, project_id) == ["main"]
    assert not hasattr(caught.value, "__notes__")
    assert count_requests(control_plane, "DELETE") == 1


@pytest.mark.virtual_time
async def test_branch_that_is_not_found_is_reported_in_a_note() -> None:
    def respond(request: Received) -> Respond:
        return drop() if request.method == "POST" else http_response(200, {"branches": []})

    async with MisbehavingServer(respond) as server, client_of(server) as neon:
        with pytest.raises(ConnectionLostError) as caught:
            await enter_and_exit(neon, PROJECT)
        assert now() >= 3
    assert "Neon may still create it" in caught.value.__notes__[0]


@unlocked
async def test_branch_of_a_lost_response_is_found_and_deleted(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await neon.branches.create(project_id, name="ephemeral-other")
    control_plane.inject(Fault(route=CREATE, drop=True, when="after"))
    with pytest.raises(ConnectionLostError) as caught:
        await enter_and_exit(neon, project_id)
    assert caught.value.maybe_delivered
    assert sorted(await branch_names(neon, project_id)) == ["ephemeral-other", "main"]
    assert count_requests(control_plane, "DELETE") == 1


async def test_failed_creation_deletes_no_branch(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    with pytest.raises(ConflictError):
        async with neon.branches.ephemeral(project_id, name="main"):
            pytest.fail("a branch with this name exists")
    assert (count_requests(control_plane, "DELETE"), count_requests(control_plane, "GET")) == (0, 0)


async def test_lost_response_for_a_chosen_name_deletes_no_branch(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await neon.branches.create(project_id, name="precious")
    control_plane.inject(Fault(route=CREATE, drop=True))
    with pytest.raises(ConnectionLostError) as caught:
        async with neon.branches.ephemeral(project_id, name="precious"):
            pytest.fail("the response was lost")
    [note] = caught.value.__notes__
    assert note.endswith("may still exist: not searched for, because the caller chose its name")
    assert count_requests(control_plane, "DELETE") == 0


async def test_branch_with_a_failed_operation_is_deleted(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await control_plane.fail_next("start_compute")
    with pytest.raises(OperationFailedError) as caught:
        await enter_and_exit(neon, project_id)
    assert isinstance(caught.value.result, BranchCreated)
    assert await branch_names(neon, project_id) == ["main"]


@unlocked
async def test_branch_that_is_not_ready_in_time_is_deleted(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await control_plane.fail_next("create_branch", retry_after=3600)
    with pytest.raises(WaitTimeoutError):
        async with neon.branches.ephemeral(project_id, timeout=0.1):
            pytest.fail("the branch is not ready")
    assert await branch_names(neon, project_id) == ["main"]


async def test_error_of_the_deletion_is_raised(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    control_plane.inject(Fault(route=DELETE, status=500))
    with pytest.raises(ServerError) as caught:
        await enter_and_exit(neon, project_id)
    assert "may still exist" in caught.value.__notes__[0]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_deletion_with_a_lost_response_is_repeated(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str, when: When
) -> None:
    control_plane.inject(Fault(route=DELETE, drop=True, times=1, when=when))
    await enter_and_exit(neon, project_id)
    assert await branch_names(neon, project_id) == ["main"]


async def test_client_closed_in_the_block_raises_an_error_with_a_note(
    neon: NeonClient, project_id: str
) -> None:
    with pytest.raises(ClientClosedError) as caught:
        async with neon.branches.ephemeral(project_id):
            await neon.aclose()
    assert "may still exist" in caught.value.__notes__[0]


async def test_error_of_the_deletion_is_a_note_on_the_error_of_the_block(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    control_plane.inject(Fault(route=DELETE, status=500))
    with pytest.raises(RuntimeError) as caught:
        async with neon.branches.ephemeral(project_id):
            raise RuntimeError("error of the block")
    [note] = caught.value.__notes__
    assert note.startswith("the ephemeral branch may still exist: DELETE")
    assert "500" in note


@pytest.mark.virtual_time
async def test_hanging_deletion_is_cancelled_after_30_seconds() -> None:
    def respond(request: Received) -> Respond:
        if request.method == "POST":
            return http_response(201, {"branch": branch_json(), "operations": []})
        return hang

    timeout = Timeout(total=3600, read=3600)
    message = "deleting the ephemeral branch took longer than 30 s"
    async with MisbehavingServer(respond) as server, client_of(server, timeout=timeout) as neon:
        with pytest.raises(TimeoutError, match=message):
            await enter_and_exit(neon, PROJECT)
        assert 30 <= now() < 31


async def test_cancelled_block_deletes_its_branch(neon: NeonClient, project_id: str) -> None:
    entered = asyncio.Event()

    async def use() -> None:
        async with neon.branches.ephemeral(project_id):
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(use())
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await branch_names(neon, project_id) == ["main"]


@pytest.fixture
def deletion_fault(control_plane: LocalControlPlane) -> InjectedFault:
    """Respond to the first deletion with 503."""
    return control_plane.inject(
        Fault(route=DELETE, status=503, times=1, headers={"Retry-After": "0.2"})
    )


async def test_timeout_does_not_interrupt_the_deletion(
    neon: NeonClient, project_id: str, deletion_fault: InjectedFault
) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(None) as timeout:
            async with neon.branches.ephemeral(project_id):
                timeout.reschedule(asyncio.get_running_loop().time() + 0.1)
    assert deletion_fault.fired == 1
    assert await branch_names(neon, project_id) == ["main"]


async def test_failed_sibling_task_does_not_interrupt_the_deletion(
    neon: NeonClient, project_id: str, deletion_fault: InjectedFault
) -> None:
    async def fail() -> None:
        await until(lambda: deletion_fault.fired == 1)
        raise RuntimeError("error of the sibling")

    with pytest.raises(ExceptionGroup):
        async with asyncio.TaskGroup() as group:
            group.create_task(fail())
            group.create_task(enter_and_exit(neon, project_id))
    assert await branch_names(neon, project_id) == ["main"]


async def test_repeated_cancellations_do_not_interrupt_the_deletion(
    neon: NeonClient, project_id: str, deletion_fault: InjectedFault
) -> None:
    task = asyncio.create_task(enter_and_exit(neon, project_id))
    await until(lambda: deletion_fault.fired == 1)
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0.01)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await branch_names(neon, project_id) == ["main"]


async def test_cancelled_scope_does_not_interrupt_the_deletion(
    neon: NeonClient, project_id: str, deletion_fault: InjectedFault
) -> None:
    with anyio.CancelScope() as scope:
        async with neon.branches.ephemeral(project_id):
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert deletion_fault.fired == 1
    assert await branch_names(neon, project_id) == ["main"]


async def _enter_within_asyncio_timeout(neon: NeonClient) -> None:
    async with asyncio.timeout(1):
        await enter_and_exit(neon, PROJECT)


async def _enter_within_anyio_scope(neon: NeonClient) -> None:
    with anyio.fail_after(1):
        await enter_and_exit(neon, PROJECT)


@pytest.mark.parametrize("enter", [_enter_within_asyncio_timeout, _enter_within_anyio_scope])
@pytest.mark.virtual_time
async def test_creation_and_deletion_each_delay_a_cancellation_by_at_most_30_seconds(
    enter: Callable[[NeonClient], Awaitable[None]],
) -> None:
    timeout = Timeout(total=3600, read=3600)
    async with (
        MisbehavingServer(lambda _: hang) as server,
        client_of(server, timeout=timeout) as neon,
    ):
        with pytest.raises(TimeoutError):
            await enter(neon)
        assert 61 <= now() < 62


@unlocked
async def test_branch_is_deleted_if_the_wait_is_cancelled(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await control_plane.fail_next("create_branch", retry_after=3600)
    before = len(control_plane.requests)
    task = asyncio.create_task(enter_and_exit(neon, project_id))
    await until(lambda: any("/operations" in one.path for one in control_plane.requests[before:]))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await branch_names(neon, project_id) == ["main"]


@pytest.mark.parametrize("when", ["before", "after"])
@unlocked
async def test_branch_is_deleted_if_its_creation_is_cancelled(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str, when: When
) -> None:
    slow = control_plane.inject(Fault(route=CREATE, delay=1.0, when=when))
    task = asyncio.create_task(enter_and_exit(neon, project_id))
    await until(lambda: slow.fired == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert count_requests(control_plane, "DELETE") == 1
    assert await branch_names(neon, project_id) == ["main"]


async def test_failed_creation_of_a_cancelled_task_needs_no_deletion(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    slow = control_plane.inject(Fault(route=CREATE, delay=1.0, status=409))
    task = asyncio.create_task(enter_and_exit(neon, project_id))
    await until(lambda: slow.fired == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (count_requests(control_plane, "DELETE"), count_requests(control_plane, "GET")) == (0, 0)


async def test_branch_that_is_not_connectable_is_deleted(neon: NeonClient, project_id: str) -> None:
    with pytest.raises(NotConnectableError, match="emulates its databases"):
        async with neon.branches.ephemeral(project_id, connect=True):
            pytest.fail("the block must not run")
    assert await branch_names(neon, project_id) == ["main"]


async def test_connection_to_a_branch_without_computes_is_refused(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    with pytest.raises(ValueError, match="connect=True requires a connection, but the branch has"):
        neon.branches.ephemeral(project_id, endpoints=(), connect=True)
    assert count_requests(control_plane, "POST") == 0
