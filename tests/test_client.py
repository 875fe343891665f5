"""The client together with the local control plane."""

import asyncio
from typing import Any

import pytest

from neonctl_async import (
    AuthenticationError,
    ConfigurationError,
    EndpointSpec,
    NeonClient,
    NotFoundError,
    Operation,
    OperationFailedError,
    PollPolicy,
    RateBudget,
)
from neonctl_async.types import BranchCreated
from neonctl_local import Durations, LocalControlPlane
from tests.support.clock import now
from tests.support.records import API_KEY, client_of, statuses
from tests.support.server import MisbehavingServer, http_response

COMPUTE = [EndpointSpec(type="read_write")]


@pytest.fixture
async def project_id(neon: NeonClient) -> str:
    created = await neon.projects.create(name="tests", wait=True)
    return created.project.id


async def test_branch_with_a_compute_is_created(neon: NeonClient, project_id: str) -> None:
    created = await neon.branches.create(project_id, name="preview", endpoints=COMPUTE)
    actions = [operation.action for operation in created.operations]
    assert actions == ["create_branch", "start_compute"]
    done = await neon.operations.wait(created)
    assert statuses(done) == [(operation.id, "finished") for operation in created.operations]
    assert created.connection_uris[0].connection_uri.reveal().startswith("postgresql://")
    assert (await neon.branches.get(project_id, created.branch.id)).current_state == "ready"


async def test_project_is_created_and_deleted(neon: NeonClient) -> None:
    created = await neon.projects.create(name="short-lived", pg_version=16, wait=True)
    assert {operation.status for operation in created.operations} == {"finished"}
    listed = await neon.projects.list(search="short-lived").collect()
    assert [project.id for project in listed] == [created.project.id]
    assert (await neon.projects.get(created.project.id)).pg_version == 16
    await neon.projects.delete(created.project.id)
    with pytest.raises(NotFoundError):
        await neon.projects.get(created.project.id)


def test_plain_with_is_refused_with_the_right_form() -> None:
    neon: Any = NeonClient(API_KEY)
    with pytest.raises(TypeError, match="opened with `async with`"), neon:
        pass


async def test_wait_for_a_call_that_was_not_awaited_names_the_mistake(
    neon: NeonClient, project_id: str
) -> None:
    call: Any = neon.branches.create(project_id)
    with pytest.raises(TypeError, match="await the call, and pass its result"):
        await neon.operations.wait(call)


@pytest.mark.virtual_time
@pytest.mark.parametrize("limit", [2, None])
async def test_requests_last_minute_counts_requests_of_the_budget(limit: int | None) -> None:
    server = MisbehavingServer(lambda _request: http_response(200, {"regions": []}))
    budget = RateBudget(per_minute=limit)
    async with server, client_of(server, budget=budget) as neon:
        assert neon.budget is budget
        counted = [neon.requests_last_minute]
        for _ in range(2):
            await neon.regions.list()
            counted.append(neon.requests_last_minute)
        await asyncio.sleep(30)
        counted.append(neon.requests_last_minute)
        await asyncio.sleep(31)
        counted.append(neon.requests_last_minute)
    assert counted == [0, 1, 2, 2, 0]


async def test_poll_stretch_is_one_without_waits(neon: NeonClient) -> None:
    assert neon.poll_stretch == 1.0
    await neon.projects.list().collect()
    assert neon.poll_stretch == 1.0


@pytest.mark.virtual_time
@pytest.mark.control_plane(durations=Durations(default=7.0))
@pytest.mark.parametrize(("limit", "is_short"), [(10, True), (700, False), (None, False)])
async def test_poll_stretch_is_above_one_while_waits_have_few_requests_left(
    control_plane: LocalControlPlane, limit: int | None, is_short: bool
) -> None:
    async with NeonClient(
        control_plane.api_key,
        base_url=control_plane.base_url,
        budget=RateBudget(per_minute=limit),
    ) as neon:
        async with asyncio.TaskGroup() as group:
            for number in range(3):
                group.create_task(neon.projects.create(name=f"p{number}", wait=True))
            await asyncio.sleep(1)
            assert (neon.poll_stretch > 1.0) is is_short
        assert neon.poll_stretch == 1.0


async def test_deleted_branch_is_not_listed(neon: NeonClient, project_id: str) -> None:
    created = await neon.branches.create(project_id, name="preview", wait=True)
    await neon.branches.delete(project_id, created.branch.id, wait=True)
    remaining = await neon.branches.list(project_id).collect()
    assert created.branch.id not in [branch.id for branch in remaining]


async def test_error_of_a_failed_operation_carries_the_created_branch(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await control_plane.fail_next("start_compute", error="no capacity")
    with pytest.raises(OperationFailedError, match="no capacity") as caught:
        await neon.branches.create(project_id, name="unlucky", endpoints=COMPUTE, wait=True)
    assert [operation.action for operation in caught.value.failed] == ["start_compute"]
    branches = await neon.branches.list(project_id, search="unlucky").collect()
    assert isinstance(caught.value.result, BranchCreated)
    assert [branch.id for branch in branches] == [caught.value.result.branch.id]


async def test_wait_continues_while_neon_retries_an_operation(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await control_plane.fail_next("create_branch", retry_after=1.5)
    seen: list[Operation] = []
    created = await neon.branches.create(project_id, name="second-try")
    [done] = await neon.operations.wait(created, on_update=seen.append)
    assert (done.status, done.failures_count) == ("finished", 1)
    assert "failed" in [operation.status for operation in seen]


async def test_paging_skips_and_repeats_no_operation_while_new_ones_arrive(
    neon: NeonClient, project_id: str
) -> None:
    for number in range(5):
        await neon.branches.create(project_id, name=f"before-{number}")
    before = await neon.operations.list(project_id).collect()
    paged: list[Operation] = []
    async for page in neon.operations.list(project_id, limit=2).pages():
        paged += page
        await neon.branches.create(project_id, name=f"during-{len(paged)}")
    ids = [operation.id for operation in paged]
    assert ids[-len(before) :] == [operation.id for operation in before]
    assert len(set(ids)) == len(ids)


async def test_revoked_key_costs_one_request(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    created = await neon.api_keys.create(key_name="short-lived")
    async with NeonClient(created.key, base_url=control_plane.base_url) as other:
        assert created.id in [key.id for key in await other.api_keys.list()]
        revoked = await neon.api_keys.revoke(created.id)
        assert revoked.revoked
        served = control_plane.requests_served
        with pytest.raises(AuthenticationError):
            await other.projects.list().collect()
        assert control_plane.requests_served == served + 1


async def test_organization_keys_are_created_listed_and_revoked(
    control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    project = await neon.projects.create(name="owned", org_id=control_plane.org_id, wait=True)
    organization_key = await neon.organizations.create_api_key(
        control_plane.org_id, key_name="wide"
    )
    project_key = await neon.organizations.create_api_key(
        control_plane.org_id, key_name="narrow", project_id=project.project.id
    )
    assert (organization_key.project_id, project_key.project_id) == (None, project.project.id)
    listed = await neon.organizations.list_api_keys(control_plane.org_id)
    assert {key.name for key in listed} >= {"wide", "narrow"}
    async with NeonClient(project_key.key, base_url=control_plane.base_url) as member:
        assert await member.branches.list(project.project.id).collect()
    revoked = await neon.organizations.revoke_api_key(control_plane.org_id, project_key.id)
    assert revoked.revoked


async def test_settings_come_from_the_environment(
    control_plane: LocalControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="NEON_API_KEY"):
        NeonClient()
    monkeypatch.setenv("NEON_API_KEY", control_plane.api_key)
    monkeypatch.setenv("NEON_API_HOST", control_plane.base_url)
    async with NeonClient() as neon:
        assert await neon.projects.list().collect() == []
    assert control_plane.api_key not in repr(neon)
    assert control_plane.base_url in repr(neon)


@pytest.mark.long
@pytest.mark.virtual_time
@pytest.mark.control_plane(durations=Durations(default=1.0))
async def test_wait_for_500_operations_in_100_projects_returns_promptly(
    control_plane: LocalControlPlane,
) -> None:
    most_connections = 0

    def count(_operation: Operation) -> None:
        nonlocal most_connections
        most_connections = max(most_connections, control_plane.open_connections)

    async with NeonClient(
        control_plane.api_key,
        base_url=control_plane.base_url,
        budget=RateBudget.unlimited(),
        polling=PollPolicy.constant(0.25),
    ) as neon:
        projects = await asyncio.gather(*(neon.projects.create(name=f"p{n}") for n in range(100)))
        created = await asyncio.gather(
            *(neon.branches.create(projects[n % 100].project.id, name=f"b{n}") for n in range(500))
        )
        started_at, requests = now(), neon.requests_sent
        done = await neon.operations.wait(created, on_update=count)
        assert len(done) == 500
        assert {operation.status for operation in done} == {"finished"}
        assert now() - started_at <= 1.0 + 0.3
        assert 0 < most_connections <= 100
        assert neon.requests_sent - requests <= 100 * 6
