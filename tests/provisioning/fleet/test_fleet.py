"""A fleet creates what is missing, adopts what exists, and reports what differs."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from neonctl_async import (
    AuthenticationError,
    EndpointSpec,
    MismatchError,
    NeonClient,
    OperationFailedError,
    ServerError,
)
from neonctl_async.clock import utc_now
from neonctl_async.provisioning.fleet import Fleet, FleetError, FleetUpdate, Tenant
from neonctl_async.types import Branch
from neonctl_local import Durations, Fault, LocalControlPlane, ManualClock
from tests.provisioning.fleet.records import tenant
from tests.provisioning.helpers import CREATE, unlocked
from tests.support.until import until

LIST_BRANCHES = "GET /projects/{project_id}/branches"


async def branches_of(neon: NeonClient) -> list[tuple[str, str]]:
    """Return the project and the name of each branch that is not a default branch."""
    found = [
        (project.name, branch.name)
        for project in await neon.projects.list().collect()
        for branch in await neon.branches.list(project.id).collect()
        if not branch.default
    ]
    return sorted(found)


async def test_missing_projects_and_branches_are_created(
    neon: NeonClient, tenants: list[Tenant]
) -> None:
    updates: list[FleetUpdate] = []
    report = await Fleet(neon, tenants).apply(on_update=updates.append)
    assert await branches_of(neon) == sorted((one.project, one.branch) for one in tenants)
    assert list(report.succeeded) == tenants
    assert report.is_complete
    assert str(report) == "6 of 6 tenants are done: 6 created, 0 adopted"
    for result in report.succeeded.values():
        branch = await neon.branches.get(result.project_id, result.branch_id)
        assert branch.current_state == "ready"
        assert result.connection_uri is not None
        [compute] = await neon.branches.list_endpoints(result.project_id, result.branch_id)
        assert result.connection_uri.host == compute.host
        assert result.connection_uri.reveal() not in repr(report)
    assert {update.tenant for update in updates} == set(tenants)
    assert [update.finished for update in updates] == [1, 2, 3, 4, 5, 6]
    assert {(update.total, update.error) for update in updates} == {(6, None)}


@unlocked
async def test_each_tenant_of_existing_projects_costs_one_request_beside_the_polls(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant]
) -> None:
    for name in ("customer-0", "customer-1"):
        await neon.projects.create(name=name, wait=True)
    before = control_plane.requests_served
    await Fleet(neon, tenants).apply()
    sent = [
        (method, path.rpartition("/")[2])
        for method, path, _ in list(control_plane.requests)[before:]
        if "operations" not in path
    ]
    assert Counter(sent) == {
        ("GET", "projects"): 2,  # the second page is empty
        ("GET", "branches"): 2,
        ("GET", "endpoints"): 2,
        ("POST", "branches"): 6,
    }


async def test_second_run_adopts_everything_without_a_change(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant]
) -> None:
    fleet = Fleet(neon, tenants)
    first = await fleet.apply()
    before = control_plane.requests_served
    second = await fleet.apply()
    assert {method for method, *_ in list(control_plane.requests)[before:]} == {"GET"}
    assert str(second) == "6 of 6 tenants are done: 0 created, 6 adopted"
    for one in tenants:
        assert second.succeeded[one].branch_id == first.succeeded[one].branch_id
        assert second.succeeded[one].connection_uri == first.succeeded[one].connection_uri


async def test_plan_reports_what_to_create_adopt_and_leave(
    neon: NeonClient, tenants: list[Tenant]
) -> None:
    await Fleet(neon, tenants[:4]).apply(wait=False)
    [project_id] = [one.id async for one in neon.projects.list() if one.name == "customer-0"]
    await neon.branches.create(project_id, name="foreign")
    differing = tenant("b-3", "customer-1", protected=True)
    new = tenant("b-7", "customer-2", region="aws-us-east-2")
    plan = await Fleet(neon, [*tenants[:3], differing, *tenants[4:], new]).plan()
    assert [one.action for one in plan.tenants] == [
        *("adopt", "adopt", "adopt", "update", "create", "create", "create"),
    ]
    assert [one.tenant for one in plan.select("update")] == [differing]
    assert plan.select("update")[0].differences == ("protected is False instead of True",)
    assert plan.new_projects == ["customer-2"]
    assert [one.name for one in plan.extra] == ["foreign"]
    assert str(plan) == (
        "7 tenants: 3 to create, 3 to adopt, 1 to update, 0 that differ, 1 extra; "
        "1 project to create"
    )


async def test_differing_branch_is_a_failure_and_stays_as_it_is(neon: NeonClient) -> None:
    created = await neon.projects.create(name="acme", wait=True)
    branch = (await neon.branches.create(created.project.id, name="b-1", wait=True)).branch
    report = await Fleet(neon, [tenant("b-1"), tenant("b-2")]).apply()
    error = report.failed[tenant("b-1")]
    assert isinstance(error, MismatchError)
    assert error.differences == ("it has no read_write compute",)
    assert isinstance(error.existing, Branch)
    assert error.existing.id == branch.id
    assert str(error).startswith("branch acme/b-1 exists, but differs from the request: it has no")
    assert list(report.succeeded) == [tenant("b-2")]
    assert not report.is_complete


@pytest.mark.parametrize("action", ["create_branch", "start_compute"])
async def test_failures_are_collected_per_tenant(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant], action: str
) -> None:
    for name in ("customer-0", "customer-1"):
        await neon.projects.create(name=name, wait=True)
    await control_plane.fail_next(action, times=2)
    report = await Fleet(neon, tenants).apply()
    assert (len(report.succeeded), len(report.failed), report.skipped) == (4, 2, [])
    assert {type(error) for error in report.failed.values()} == {OperationFailedError}
    again = await Fleet(neon, tenants).apply()
    assert again.failed.keys() == report.failed.keys()


@pytest.mark.parametrize("kind", ["drop", "502", "409"])
@unlocked
async def test_branch_of_a_lost_response_is_adopted(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant], kind: str
) -> None:
    status = None if kind == "drop" else int(kind)
    fault = Fault(route=CREATE, when="after", times=4, status=status, drop=status is None)
    control_plane.inject(fault)
    report = await Fleet(neon, tenants).apply()
    assert str(report) == "6 of 6 tenants are done: 2 created, 4 adopted"
    assert await branches_of(neon) == sorted((one.project, one.branch) for one in tenants)
    assert all(result.connection_uri for result in report.succeeded.values())


@unlocked
async def test_canary_is_ready_before_other_tenants_start(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant]
) -> None:
    created: list[int] = []

    def count(_update: FleetUpdate) -> None:
        paths = [path for method, path, _ in control_plane.requests if method == "POST"]
        created.append(sum(path.endswith("/branches") for path in paths))

    report = await Fleet(neon, tenants).apply(canary=2, on_update=count)
    assert report.is_complete
    assert created[:2] == [2, 2]
    assert max(created) == 6


async def test_failed_canary_skips_all_other_tenants(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant]
) -> None:
    await control_plane.fail_next("create_branch")
    report = await Fleet(neon, tenants).apply(canary=2)
    assert (len(report.succeeded), len(report.failed), len(report.skipped)) == (1, 1, 4)
    assert len(await branches_of(neon)) == 2
    assert str(report).endswith("1 created, 0 adopted, 1 failed, 4 skipped")


async def test_canary_consists_of_unfinished_tenants(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant]
) -> None:
    await Fleet(neon, tenants[:3]).apply()
    await control_plane.fail_next("create_branch")
    report = await Fleet(neon, tenants).apply(canary=1)
    assert len(report.failed) == 1
    assert len(report.skipped) == 5


async def test_number_of_tenants_in_progress_is_limited(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant]
) -> None:
    for name in ("customer-0", "customer-1"):
        await neon.projects.create(name=name, wait=True)
    held = control_plane.inject(Fault(route=CREATE, hang=True))
    run = asyncio.create_task(Fleet(neon, tenants).apply(concurrency=2))
    await until(lambda: held.fired >= 2)
    await asyncio.sleep(0.05)
    assert held.fired == 2
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


async def test_parent_can_be_a_tenant_that_does_not_exist_yet(neon: NeonClient) -> None:
    fleet = [
        tenant("child", parent="template", region="aws-us-east-2"),
        tenant("template", compute=False),
        tenant("grandchild", parent="child"),
    ]
    report = await Fleet(neon, fleet).apply()
    assert report.is_complete
    [child, template, grandchild] = report.succeeded.values()
    assert template.connection_uri is None
    for result, parent in ((child, template), (grandchild, child)):
        branch = await neon.branches.get(result.project_id, result.branch_id)
        assert branch.parent_id == parent.branch_id
    assert (await Fleet(neon, fleet).apply()).is_complete


async def test_child_of_a_failed_tenant_fails(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    fleet = [tenant("template", region="aws-us-east-2"), tenant("child", parent="template")]
    await control_plane.fail_next("create_branch")
    report = await Fleet(neon, fleet).apply()
    assert str(report.failed[fleet[1]]) == (
        "acme/child needs its parent acme/template, which failed"
    )
    assert await branches_of(neon) == [("acme", "template")]


async def test_child_of_a_differing_tenant_fails(neon: NeonClient) -> None:
    created = await neon.projects.create(name="acme", wait=True)
    await neon.branches.create(
        created.project.id,
        name="template",
        endpoints=[EndpointSpec(type="read_write")],
        wait=True,
    )
    fleet = [tenant("template", protected=True), tenant("child", parent="template")]
    report = await Fleet(neon, fleet).apply(canary=1)
    assert [type(error) for error in report.failed.values()] == [MismatchError, FleetError]
    assert await branches_of(neon) == [("acme", "template")]


async def test_canary_is_no_tenant_that_differs(neon: NeonClient) -> None:
    created = await neon.projects.create(name="acme", wait=True)
    await neon.branches.create(created.project.id, name="b-1", wait=True)
    fleet = [tenant("b-1"), tenant("b-2"), tenant("b-3", parent="b-2")]
    report = await Fleet(neon, fleet).apply(canary=1)
    assert (list(report.failed), list(report.succeeded)) == (fleet[:1], fleet[1:])


@unlocked
async def test_branches_exist_at_the_end_of_a_run_without_a_wait(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant]
) -> None:
    report = await Fleet(neon, tenants).apply(wait=False, uris=False)
    assert report.is_complete
    assert len(await branches_of(neon)) == 6
    assert {result.connection_uri for result in report.succeeded.values()} == {None}
    assert not any(path.endswith("/operations") for _, path, _ in control_plane.requests)


async def test_uris_can_be_those_of_the_pooler(neon: NeonClient, tenants: list[Tenant]) -> None:
    fleet = Fleet(neon, tenants[:1])
    for report in (await fleet.apply(pooled=True), await fleet.apply(pooled=True)):
        uri = report.succeeded[tenants[0]].connection_uri
        assert uri is not None
        assert uri.pooled


async def test_uri_is_that_of_the_database_of_the_tenant(neon: NeonClient) -> None:
    created = await neon.projects.create(name="acme", wait=True)
    parent = (created.project.id, created.branch.id)
    await neon.databases.create(*parent, name="shop", owner_name="neondb_owner", wait=True)
    wanted = tenant("b-1", database="shop")
    for report in (await Fleet(neon, [wanted]).apply(), await Fleet(neon, [wanted]).apply()):
        uri = report.succeeded[wanted].connection_uri
        assert uri is not None
        assert uri.database == "shop"
    missing = tenant("b-1", database="missing")
    error = (await Fleet(neon, [missing]).apply()).failed[missing]
    assert "has no database 'missing'" in str(error)


async def test_rejected_key_stops_the_run(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant]
) -> None:
    for name in ("customer-0", "customer-1"):
        await neon.projects.create(name=name, wait=True)
    control_plane.inject(Fault(route=CREATE, status=401))
    report = await Fleet(neon, tenants).apply(concurrency=2)
    assert {type(error) for error in report.failed.values()} == {AuthenticationError}
    assert len(report.failed) <= 2
    assert len(report.failed) + len(report.skipped) == 6


async def test_unreadable_project_fails_its_tenants_only(
    neon: NeonClient, control_plane: LocalControlPlane, tenants: list[Tenant]
) -> None:
    await Fleet(neon, tenants).apply()
    control_plane.inject(Fault(route=LIST_BRANCHES, status=404, times=1))
    updates: list[FleetUpdate] = []
    report = await Fleet(neon, tenants).apply(canary=1, on_update=updates.append)
    assert (len(report.succeeded), len(report.failed)) == (3, 3)
    assert updates[-1].finished == 6


async def test_error_of_on_update_ends_the_run(neon: NeonClient, tenants: list[Tenant]) -> None:
    def fail(_update: FleetUpdate) -> None:
        raise RuntimeError("error of the caller")

    with pytest.raises(RuntimeError, match=r"^error of the caller$"):
        await Fleet(neon, tenants).apply(on_update=fail)


async def test_fleet_without_tenants_sends_nothing(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    assert str(await Fleet(neon, []).plan()) == (
        "0 tenants: 0 to create, 0 to adopt, 0 that differ, 0 extra"
    )
    assert (await Fleet(neon, []).apply()).is_complete
    assert control_plane.requests_served == 0


def test_tenant_that_occurs_twice_is_rejected(neon: NeonClient) -> None:
    with pytest.raises(FleetError, match=r"^acme/b-1 is in the fleet twice: expected it once$"):
        Fleet(neon, [tenant("b-1"), tenant("b-1", max_cu=1)])


async def test_expiry_that_neon_refuses_is_rejected_without_a_request(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    late = utc_now() + timedelta(days=31)
    fleet = Fleet(
        neon, [tenant("b-1", expires_at=late), tenant("b-2"), tenant("b-3", expires_at=late)]
    )
    for run in (fleet.plan, fleet.apply):
        with pytest.raises(
            FleetError, match=r"^acme/b-1: expires_at is .* more than 30 days"
        ) as caught:
            await run()
        assert len(caught.value.problems) == 2
    assert control_plane.requests_served == 0


async def test_expiries_are_compared_with_the_clock_of_the_server() -> None:
    clock = ManualClock(utc_now() + timedelta(days=365))
    async with (
        LocalControlPlane(clock=clock, durations=Durations(default=0)) as server,
        NeonClient(server.api_key, base_url=server.base_url) as neon,
    ):
        await neon.projects.list().collect()  # the client now knows the time of the server
        assert abs(neon.server_now() - clock()) < timedelta(seconds=60)
        first = tenant(expires_at=clock() + timedelta(days=10), region="aws-us-east-2")
        assert (await Fleet(neon, [first]).apply()).is_complete
        later = tenant(expires_at=clock() + timedelta(days=20))
        [planned] = (await Fleet(neon, [later]).plan()).tenants
    [difference] = planned.differences
    assert difference.startswith("it expires at ")


@pytest.mark.parametrize("argument", [{"canary": -1}, {"concurrency": 0}, {"wait": -1}])
async def test_invalid_argument_is_rejected_without_a_request(
    neon: NeonClient, control_plane: LocalControlPlane, argument: dict[str, int]
) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(argument))} is "):
        await Fleet(neon, [tenant()]).apply(**argument)  # type: ignore[arg-type]  # wrong on purpose
    assert control_plane.requests_served == 0


async def test_coroutine_function_is_no_on_update(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    async def note(_update: FleetUpdate) -> None: ...

    with pytest.raises(TypeError, match=r"^on_update is <function .* a coroutine function: "):
        await Fleet(neon, [tenant()]).apply(on_update=note)
    assert control_plane.requests_served == 0


async def test_error_of_the_first_list_is_raised(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    control_plane.inject(Fault(route="GET /projects", status=500))
    with pytest.raises(ServerError):
        await Fleet(neon, [tenant()]).plan()


@pytest.mark.parametrize("wait", [True, False])
async def test_update_changes_settings_in_place(neon: NeonClient, *, wait: bool) -> None:
    first = tenant(region="aws-us-east-2", max_cu=1)
    before = (await Fleet(neon, [first]).apply()).succeeded[first]
    expires_at = utc_now().replace(microsecond=0) + timedelta(days=7)
    wanted = tenant(min_cu=1, max_cu=2, suspend_timeout_seconds=60, expires_at=expires_at)
    fleet = Fleet(neon, [wanted])
    report = await fleet.apply(update=True, wait=wait)
    assert str(report) == "1 of 1 tenants are done: 0 created, 0 adopted, 1 updated"
    after = report.succeeded[wanted]
    assert (after.branch_id, after.updated) == (before.branch_id, True)
    branch = await neon.branches.get(after.project_id, after.branch_id)
    assert branch.expires_at == expires_at
    [compute] = await neon.branches.list_endpoints(after.project_id, after.branch_id)
    sizes = (compute.autoscaling_limit_min_cu, compute.autoscaling_limit_max_cu)
    assert (sizes, compute.suspend_timeout_seconds) == ((1, 2), 60)
    [planned] = (await fleet.plan()).tenants
    assert (planned.action, planned.differences) == ("adopt", ())


async def test_compute_is_named_at_its_creation_and_renamed_by_an_update(neon: NeonClient) -> None:
    async def names(wanted: Tenant, *, update: bool = False) -> list[str | None]:
        report = await Fleet(neon, [wanted]).apply(update=update)
        assert report.is_complete
        done = report.succeeded[wanted]
        found = await neon.branches.list_endpoints(done.project_id, done.branch_id)
        assert (await Fleet(neon, [wanted]).plan()).tenants[0].is_ready
        return [compute.name for compute in found]

    assert await names(tenant(region="aws-us-east-2", compute_name="web")) == ["web"]
    renamed = tenant(compute_name="api")
    [planned] = (await Fleet(neon, [renamed]).plan()).tenants
    assert planned.action == "update"
    assert planned.differences[0].startswith("compute_name is 'web' instead of 'api' (compute ep-")
    assert await names(renamed, update=True) == ["api"]


async def test_run_after_a_kill_names_the_compute_of_the_branch_that_exists(
    neon: NeonClient,
) -> None:
    await Fleet(neon, [tenant(region="aws-us-east-2")]).apply()
    wanted = tenant(compute_name="web")
    fleet = Fleet(neon, [wanted])
    [planned] = (await fleet.plan()).tenants
    assert (planned.action, planned.is_ready) == ("adopt", False)
    done = (await fleet.apply()).succeeded[wanted]
    [compute] = await neon.branches.list_endpoints(done.project_id, done.branch_id)
    assert compute.name == "web"


async def test_update_sends_only_what_differs(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    first = [tenant(name, region="aws-us-east-2", max_cu=1) for name in ("b-1", "b-2")]
    await Fleet(neon, first).apply()
    before = control_plane.requests_served
    changed = [tenant("b-1", max_cu=1), tenant("b-2", max_cu=1, protected=True)]
    report = await Fleet(neon, changed).apply(update=True, uris=False)
    assert [report.succeeded[one].updated for one in changed] == [False, True]
    sent = [request for request in list(control_plane.requests)[before:] if request.method != "GET"]
    branch_id = report.succeeded[changed[1]].branch_id
    assert [(one.method, one.path.rpartition("/")[2]) for one in sent] == [("PATCH", branch_id)]


async def test_difference_without_update_names_the_option_and_the_field(neon: NeonClient) -> None:
    await Fleet(neon, [tenant(region="aws-us-east-2", max_cu=1)]).apply()
    wanted = tenant(max_cu=2)
    error = (await Fleet(neon, [wanted]).apply()).failed[wanted]
    assert isinstance(error, MismatchError)
    assert "max_cu is 1.0 instead of 2 (compute ep-" in str(error)
    assert "autoscaling" not in str(error)
    assert str(error).endswith(
        "Nothing was changed: apply the fleet with --update, in Python update=True, which keeps "
        "the data"
    )


async def test_update_does_not_touch_a_tenant_with_a_fixed_difference(neon: NeonClient) -> None:
    first = tenant(region="aws-us-east-2")
    result = (await Fleet(neon, [first]).apply()).succeeded[first]
    wanted = tenant(protected=True, init_source="schema-only")
    report = await Fleet(neon, [wanted]).apply(update=True)
    assert isinstance(report.failed[wanted], MismatchError)
    assert "delete" not in str(report.failed[wanted])
    assert not (await neon.branches.get(result.project_id, result.branch_id)).protected


async def test_failed_update_is_a_failure_of_the_tenant(
    neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    await Fleet(neon, [tenant(region="aws-us-east-2", max_cu=1)]).apply()
    control_plane.inject(
        Fault(route="PATCH /projects/{project_id}/endpoints/{endpoint_id}", status=422, times=1)
    )
    wanted = tenant(max_cu=2)
    fleet = Fleet(neon, [wanted])
    assert list((await fleet.apply(update=True)).failed) == [wanted]
    assert (await fleet.apply(update=True)).succeeded[wanted].updated
