"""The steps for one tenant: its branch, its connections, its URI."""

import asyncio
from collections import Counter

import pytest

from neonctl_async import NeonClient, NotConnectableError, WaitOptions
from neonctl_async.provisioning.fleet import Fleet, Tenant
from neonctl_async.types import Operation
from neonctl_local import LocalControlPlane
from tests.provisioning.fleet.records import tenant
from tests.provisioning.helpers import unlocked
from tests.support.databases import databases, execute
from tests.support.postgres import skip_without_postgres


async def test_connections_are_required_of_created_and_of_adopted_computes(
    neon: NeonClient, tenants: list[Tenant]
) -> None:
    """Without Postgres, the host names of the local control plane do not exist."""
    without = tenant("no-compute", "customer-0", compute=False)
    fleet = Fleet(neon, [*tenants[:2], without])
    for _ in range(2):
        report = await fleet.apply(wait="connect")
        assert list(report.succeeded) == [without]
        errors = report.failed.values()
        assert {type(error) for error in errors} == {NotConnectableError}
    assert (await fleet.apply()).is_complete


@pytest.mark.postgres
async def test_databases_of_a_fleet_accept_connections() -> None:
    await asyncio.to_thread(skip_without_postgres)
    async with databases() as (_, neon):
        project = await neon.projects.create(name="acme", wait=True)
        fleet = Fleet(neon, [tenant(f"b-{number}", project.project.id) for number in range(3)])
        for report in (await fleet.apply(wait="connect"), await fleet.apply(wait="connect")):
            assert report.is_complete
            for result in report.succeeded.values():
                assert result.connection_uri is not None
                await execute(result.connection_uri.psycopg, "SELECT 1")


async def test_operations_of_a_run_are_reported(neon: NeonClient, tenants: list[Tenant]) -> None:
    seen: list[Operation] = []
    await Fleet(neon, tenants).apply(wait=WaitOptions(on_update=seen.append))
    finished = {one.id for one in seen if one.status == "finished"}
    assert len(finished) == 2 * len(tenants)


async def test_parent_of_a_new_project_is_found_by_name(neon: NeonClient) -> None:
    wanted = tenant("b-1", parent="main", region="aws-us-east-2")
    report = await Fleet(neon, [wanted]).apply()
    result = report.succeeded[wanted]
    branch = await neon.branches.get(result.project_id, result.branch_id)
    assert branch.parent_id == (await neon.branches.default(result.project_id)).id
    assert result.created


async def test_missing_parent_in_a_new_project_is_a_failure(neon: NeonClient) -> None:
    wanted = tenant("b-1", parent="missing", region="aws-us-east-2")
    report = await Fleet(neon, [wanted]).apply()
    message = str(report.failed[wanted])
    assert "has the name or the id 'missing'; its branches: main" in message


@unlocked
async def test_unfinished_branch_of_an_earlier_run_is_waited_for(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant]
) -> None:
    fleet = Fleet(neon, tenants)
    await fleet.apply(wait=False, uris=False)
    report = await fleet.apply(uris=False)
    assert str(report) == "6 of 6 tenants are done: 0 created, 6 adopted"
    for result in report.succeeded.values():
        assert (
            await neon.branches.get(result.project_id, result.branch_id)
        ).current_state == "ready"
    assert sum(request.method == "POST" for request in control_plane.requests) == 8


async def test_ready_tenant_costs_no_request_beside_the_plan(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant]
) -> None:
    fleet = Fleet(neon, tenants)
    await fleet.apply(uris=False)
    before = control_plane.requests_served
    await fleet.plan()
    planned = control_plane.requests_served - before
    assert (await fleet.apply(uris=False)).is_complete
    assert control_plane.requests_served - before == 2 * planned


async def test_failed_wait_is_not_repeated(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    await neon.projects.create(name="acme", wait=True)
    await control_plane.fail_next("create_branch")
    before = control_plane.requests_served
    report = await Fleet(neon, [tenant()]).apply()
    assert list(report.failed) == [tenant()]
    lists = [
        path for _, path, _ in list(control_plane.requests)[before:] if "operations" not in path
    ]
    assert Counter(path.rpartition("/")[2] for path in lists) == {
        "projects": 2,
        "branches": 2,
        "endpoints": 1,
    }
