"""``branches.ensure`` after lost responses, conflicts and failed operations."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from neonctl_async import (
    ConflictError,
    ConnectionLostError,
    MismatchError,
    NeonClient,
    OperationFailedError,
    PermissionDeniedError,
    PollPolicy,
    RateBudget,
    RetryPolicy,
    Timeout,
)
from neonctl_async.types import EnsuredBranch
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.models.records import BRANCH, JsonObject
from tests.provisioning.helpers import COMPUTE, CREATE, branch_names, ensure, inject_faults
from tests.support.records import PROJECT, client_of
from tests.support.server import MisbehavingServer, Respond, http_response, in_sequence

LIST = "GET /projects/{project_id}/branches"


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("fault", [{"drop": True}, {"status": 500}, {"truncate": True}])
async def test_lost_response_is_not_an_error(
    control_plane: LocalControlPlane,
    neon: NeonClient,
    project_id: str,
    fault: dict[str, Any],
    when: Any,
) -> None:
    control_plane.inject(Fault(route=CREATE, times=2, when=when, **fault))
    ensured = await ensure(neon, project_id, endpoints=[COMPUTE], wait=True)
    is_executed = when == "after" or "truncate" in fault
    assert ensured.created == (not is_executed)
    assert await branch_names(neon, project_id) == ["preview", "main"]
    assert (await neon.branches.get(project_id, ensured.branch.id)).current_state == "ready"


@pytest.mark.parametrize("delayed", [1, 2])
async def test_request_that_arrives_late_creates_no_second_branch(
    control_plane: LocalControlPlane, project_id: str, delayed: int
) -> None:
    control_plane.inject(Fault(route=CREATE, times=delayed, delay=0.3))
    async with NeonClient(
        control_plane.api_key,
        base_url=control_plane.base_url,
        timeout=Timeout(total=0.1),
        retry=RetryPolicy(initial=0.05),
    ) as neon:
        ensured = await ensure(neon, project_id)
        assert await branch_names(neon, project_id) == ["preview", "main"]
        await asyncio.sleep(0.3)
        [listed] = await neon.branches.list(project_id, search="preview").collect()
    assert listed.id == ensured.branch.id
    assert ensured.created or delayed == 2


async def test_responses_that_are_always_lost_are_an_error(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    control_plane.inject(Fault(route=CREATE, drop=True))
    with pytest.raises(ConnectionLostError) as caught:
        await ensure(neon, project_id)
    assert caught.value.maybe_delivered
    creations = [one for one in control_plane.requests if one.method == "POST"]
    assert len(creations) == 1 + RetryPolicy().attempts  # the project, and the branch


async def test_error_after_a_lost_response_reports_the_doubt(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    control_plane.inject(Fault(route=CREATE, times=1, drop=True))
    control_plane.inject(Fault(route=CREATE, times=1, status=403))
    with pytest.raises(PermissionDeniedError) as caught:
        await ensure(neon, project_id)
    assert caught.value.maybe_delivered


async def test_conflict_without_a_branch_of_the_name_is_an_error(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    control_plane.inject(Fault(route=CREATE, status=409, message="the parent is busy"))
    with pytest.raises(ConflictError, match="the parent is busy") as caught:
        await ensure(neon, project_id)
    assert not isinstance(caught.value, MismatchError)


async def test_rejected_creation_is_not_repeated(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    injected = control_plane.inject(Fault(route=CREATE, status=403))
    with pytest.raises(PermissionDeniedError):
        await ensure(neon, project_id)
    assert injected.fired == 1


async def test_failed_list_is_an_error_of_every_call(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    injected = control_plane.inject(Fault(route=LIST, status=403))
    results = await asyncio.gather(
        *(ensure(neon, project_id) for _ in range(3)), return_exceptions=True
    )
    assert [type(one) for one in results] == [PermissionDeniedError] * 3
    assert len({id(one) for one in results}) == 3
    assert injected.fired == 1


@pytest.mark.parametrize("action", ["create_branch", "start_compute"])
async def test_failed_creation_of_another_process_is_reported(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str, action: str
) -> None:
    await control_plane.fail_next(action)
    await ensure(neon, project_id, endpoints=[COMPUTE])
    await asyncio.sleep(0.05)
    adopted = await ensure(neon, project_id, endpoints=[COMPUTE])
    assert "failed" in {one.status for one in adopted.operations}
    with pytest.raises(OperationFailedError) as caught:
        await ensure(neon, project_id, endpoints=[COMPUTE], wait=True)
    assert isinstance(caught.value.result, EnsuredBranch)
    assert action in {one.action for one in caught.value.failed}


async def test_repaired_failure_is_not_reported(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await control_plane.fail_next("start_compute")
    created = await ensure(neon, project_id, endpoints=[COMPUTE])
    await asyncio.sleep(0.05)
    await neon.endpoints.start(project_id, created.endpoints[0].id)
    adopted = await ensure(neon, project_id, endpoints=[COMPUTE], wait=True)
    assert [one.status for one in adopted.operations] in ([], ["finished"])


@pytest.mark.parametrize("wait", [True, 5.0])
async def test_wait_covers_a_branch_that_is_being_created(
    neon: NeonClient, project_id: str, wait: Any
) -> None:
    created = await ensure(neon, project_id, endpoints=[COMPUTE])
    adopted = await ensure(neon, project_id, endpoints=[COMPUTE], wait=wait)
    assert not adopted.created
    assert {one.status for one in adopted.operations} <= {"finished"}
    [compute] = await neon.branches.list_endpoints(project_id, created.branch.id)
    assert compute.current_state == "active"


async def test_pending_operations_of_an_adopted_branch_are_returned() -> None:
    async with (
        LocalControlPlane(durations=Durations(default=1000.0), lock="none") as control_plane,
        NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
    ):
        project_id = (await neon.projects.create()).project.id
        created = await ensure(neon, project_id, endpoints=[COMPUTE])
        adopted = await ensure(neon, project_id, endpoints=[COMPUTE])
        assert [one.id for one in adopted.operations] == [one.id for one in created.operations]
        with pytest.raises(TimeoutError) as caught:
            await ensure(neon, project_id, endpoints=[COMPUTE], wait=0.1)
        assert isinstance(getattr(caught.value, "result", None), EnsuredBranch)


@pytest.mark.parametrize("seed", range(2))
async def test_clients_with_faults_agree_on_every_branch(seed: int) -> None:
    names = [f"tenant-{number}" for number in range(6)]
    generator = random.Random(seed)

    async def ensure_all(control_plane: LocalControlPlane, project_id: str) -> dict[str, str]:
        async with NeonClient(
            control_plane.api_key,
            base_url=control_plane.base_url,
            budget=RateBudget.unlimited(),
            polling=PollPolicy(initial=0.02),
            retry=RetryPolicy(attempts=12, initial=0.01, maximum=0.1),
        ) as neon:
            calls = {
                name: neon.branches.ensure(project_id, name=name, endpoints=[COMPUTE], wait=True)
                for name in generator.sample(names, len(names))
            }
            ensured = await asyncio.gather(*calls.values())
        return {name: one.branch.id for name, one in zip(calls, ensured, strict=True)}

    async with (
        LocalControlPlane(durations=Durations(default=0.01), lock="project") as control_plane,
        NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
    ):
        project_id = (await neon.projects.create(wait=True)).project.id
        inject_faults(control_plane, seed, rate_limited=0.0)
        first, *others = await asyncio.gather(
            *(ensure_all(control_plane, project_id) for _ in range(5))
        )
        control_plane.clear_faults()
        existing = {one.name: one.id async for one in neon.branches.list(project_id)}
    del existing["main"]
    assert existing == first
    assert others == [first] * 4


MAIN = {**BRANCH, "id": "br-main", "name": "main", "default": True}
CHILD = {**BRANCH, "id": "br-old", "name": "preview", "parent_id": "br-main"}
EXPIRING = {**CHILD, "expires_at": "2026-01-01T00:00:00Z"}
MISSING = http_response(404, {"message": "branch not found"})
NO_COMPUTES = http_response(content={"endpoints": []})
CREATED: JsonObject = {"branch": {**CHILD, "id": "br-new"}, "operations": []}


def listing(*branches: dict[str, object]) -> Respond:
    return http_response(content={"branches": [MAIN, *branches]})


@pytest.mark.parametrize(
    ("settings", "responses"),
    [
        ({"endpoints": [COMPUTE]}, [listing(CHILD), NO_COMPUTES, listing()]),
        ({"expires_at": datetime.now(UTC) + timedelta(days=7)}, [listing(EXPIRING), MISSING]),
    ],
    ids=["computes", "expiry"],
)
async def test_branch_that_is_deleted_during_the_call_is_created_again(
    settings: dict[str, Any], responses: list[Respond]
) -> None:
    sequence = in_sequence(*responses, http_response(201, CREATED))
    async with MisbehavingServer(sequence) as server, client_of(server) as neon:
        ensured = await neon.branches.ensure(PROJECT, name="preview", **settings)
    assert ensured.created
    assert ensured.branch.id == "br-new"
