"""What fails leaves no ephemeral branch behind, or says so."""

import pytest

from neonctl_async import (
    ClientClosedError,
    ConflictError,
    ConnectionLostError,
    NeonClient,
    OperationFailedError,
    RequestTimeoutError,
    ServerError,
    Timeout,
    WaitTimeoutError,
)
from neonctl_async.local import Fault, LocalControlPlane
from neonctl_async.local.server.faults import When
from neonctl_async.types import BranchCreated
from tests.provisioning.ephemeral.blocks import CREATE, DELETE, enter, names, sent
from tests.support.clock import now
from tests.support.records import PROJECT, branch_json, client_of
from tests.support.server import MisbehavingServer, Received, Respond, drop, hang, http_response


async def test_one_that_is_made_after_its_answer_was_given_up_is_found_and_deleted(
    control_plane: LocalControlPlane, project_id: str
) -> None:
    control_plane.inject(Fault(route=CREATE, delay=0.5))
    async with NeonClient(
        control_plane.api_key, base_url=control_plane.base_url, timeout=Timeout(total=0.3)
    ) as neon:
        with pytest.raises(RequestTimeoutError) as caught:
            await enter(neon, project_id)
        assert await names(neon, project_id) == ["main"]
    assert not hasattr(caught.value, "__notes__")
    assert sent(control_plane, "DELETE") == 1


@pytest.mark.virtual_time
async def test_one_that_is_not_found_may_still_be_made_and_that_is_told() -> None:
    def respond(request: Received) -> Respond:
        return drop() if request.method == "POST" else http_response(200, {"branches": []})

    async with MisbehavingServer(respond) as server, client_of(server) as neon:
        with pytest.raises(ConnectionLostError) as caught:
            await enter(neon, PROJECT)
        assert now() >= 3
    assert "may still be made" in caught.value.__notes__[0]


async def test_one_whose_answer_was_lost_is_found_and_deleted(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await neon.branches.create(project_id, name="ephemeral-of-mine")
    control_plane.inject(Fault(route=CREATE, drop=True, when="after"))
    with pytest.raises(ConnectionLostError) as caught:
        await enter(neon, project_id)
    assert caught.value.maybe_delivered
    assert sorted(await names(neon, project_id)) == ["ephemeral-of-mine", "main"]
    assert sent(control_plane, "DELETE") == 1


async def test_a_creation_that_is_refused_leaves_others_alone(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    with pytest.raises(ConflictError):
        async with neon.branches.ephemeral(project_id, name="main"):
            pytest.fail("there is a branch of that name")
    assert (sent(control_plane, "DELETE"), sent(control_plane, "GET")) == (0, 0)


async def test_a_lost_answer_to_a_name_of_ones_own_deletes_nothing(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await neon.branches.create(project_id, name="precious")
    control_plane.inject(Fault(route=CREATE, drop=True))
    with pytest.raises(ConnectionLostError) as caught:
        async with neon.branches.ephemeral(project_id, name="precious"):
            pytest.fail("no answer came")
    assert "may still be there: it was given a name" in caught.value.__notes__[0]
    assert sent(control_plane, "DELETE") == 0


async def test_one_that_fails_to_start_is_deleted(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await control_plane.fail_next("start_compute")
    with pytest.raises(OperationFailedError) as caught:
        await enter(neon, project_id)
    assert isinstance(caught.value.result, BranchCreated)
    assert await names(neon, project_id) == ["main"]


async def test_one_that_is_not_ready_in_time_is_deleted(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await control_plane.fail_next("create_branch", retry_after=3600)
    with pytest.raises(WaitTimeoutError):
        async with neon.branches.ephemeral(project_id, timeout=0.1):
            pytest.fail("it is not ready")
    assert await names(neon, project_id) == ["main"]


async def test_a_deletion_that_fails_is_raised(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    control_plane.inject(Fault(route=DELETE, status=500))
    with pytest.raises(ServerError) as caught:
        await enter(neon, project_id)
    assert "may still be there" in caught.value.__notes__[0]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_deletion_whose_answer_is_lost_is_sent_again(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str, when: When
) -> None:
    control_plane.inject(Fault(route=DELETE, drop=True, times=1, when=when))
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
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    control_plane.inject(Fault(route=DELETE, status=500))
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
            return http_response(201, {"branch": branch_json(), "operations": []})
        return hang

    patient = Timeout(total=3600, read=3600)
    async with MisbehavingServer(respond) as server, client_of(server, timeout=patient) as neon:
        with pytest.raises(TimeoutError, match="its deletion took longer than 30 s"):
            await enter(neon, PROJECT)
        assert 30 <= now() < 31
