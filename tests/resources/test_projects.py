import pytest

from neonctl_async import (
    DefaultEndpointSettings,
    NeonClient,
    NotFoundError,
    ProjectBranchSpec,
    ProjectSettings,
    Secret,
)
from neonctl_async.types import (
    AdvisorIssue,
    AllowedIps,
    AvailablePreloadLibrary,
    MaintenanceWindow,
    Project,
    ProjectDeleted,
    ProjectQuota,
    ProjectRecovered,
    ProjectUpdated,
)
from tests.models.records import ADVISOR_ISSUE, LIBRARY, decode
from tests.resources.wire import Asked, Call, answering, check
from tests.support.records import EPOCH, PROJECT, JsonObject, branch_json, operation_json

PATH = f"/projects/{PROJECT}"
SHOWN: JsonObject = {
    "id": PROJECT,
    "name": "shop",
    "platform_id": "aws",
    "region_id": "aws-us-east-2",
    "provisioner": "k8s-pod",
    "pg_version": 15,
    "locked": False,
    "cpu_used_sec": 0,
    "proxy_host": "us-east-2.aws.neon.tech",
    "branch_logical_size_limit": 3072,
    "created_at": EPOCH.isoformat(),
    "updated_at": EPOCH.isoformat(),
}
CREATED: JsonObject = {
    "project": SHOWN,
    "branch": branch_json(),
    "operations": [operation_json()],
}
CHANGED: JsonObject = {"project": SHOWN, "operations": [operation_json()]}


async def test_list_with_every_keyword() -> None:
    async with answering({"projects": [SHOWN], "pagination": {}}) as exchange:
        listing = exchange.neon.projects.list(
            limit=400, search="sh&p", org_id="org-1", timeout=1000, recoverable=False
        )
        [project] = await listing.collect()
    assert (project.id, project.pg_version, project.locked) == (PROJECT, 15, False)
    assert exchange.asked == Asked(
        "GET",
        "/projects",
        {
            "limit": "400",
            "search": "sh&p",
            "org_id": "org-1",
            "timeout": "1000",
            "recoverable": "false",
        },
        None,
    )


async def test_list_leaves_out_what_is_unset() -> None:
    async with answering({"projects": []}) as exchange:
        assert await exchange.neon.projects.list().collect() == []
    assert exchange.asked == Asked("GET", "/projects", {}, None)


async def test_a_project_whose_settings_hold_a_null_is_listed() -> None:
    shown = {**SHOWN, "settings": {"allowed_ips": None, "quota": {"active_time_seconds": None}}}
    async with answering({"projects": [shown]}) as exchange:
        [project] = await exchange.neon.projects.list().collect()
    assert project.id == PROJECT


async def test_get() -> None:
    async with answering({"project": {**SHOWN, "owner": {"name": "Ada"}}}) as exchange:
        project = await exchange.neon.projects.get(PROJECT)
    assert project.owner is not None
    assert project.owner.name == "Ada"
    assert exchange.asked == Asked("GET", f"/projects/{PROJECT}", {}, None)


async def test_create_with_every_keyword() -> None:
    async with answering(CREATED, 201) as exchange:
        created = await exchange.neon.projects.create(
            name="shop",
            org_id="org-1",
            region_id="aws-us-east-2",
            pg_version=17,
            provisioner="k8s-neonvm",
            branch=ProjectBranchSpec(
                name="main", role_name="ada", database_name="shop", annotations={"a": "b"}
            ),
            settings=ProjectSettings(
                quota=ProjectQuota(active_time_seconds=0),
                allowed_ips=AllowedIps(ips=["192.0.2.1"], protected_branches_only=False),
                maintenance_window=MaintenanceWindow(
                    weekdays=[7], start_time="01:00", end_time="02:00"
                ),
            ),
            default_endpoint_settings=DefaultEndpointSettings(suspend_timeout_seconds=-1),
            autoscaling_limit_min_cu=0.25,
            autoscaling_limit_max_cu=2,
            store_passwords=False,
            history_retention_seconds=0,
        )
    assert (created.project.id, created.branch.name) == (PROJECT, "preview")
    assert [operation.id for operation in created.operations] == ["op-1"]
    assert exchange.asked == Asked(
        "POST",
        "/projects",
        {},
        {
            "project": {
                "name": "shop",
                "org_id": "org-1",
                "region_id": "aws-us-east-2",
                "pg_version": 17,
                "provisioner": "k8s-neonvm",
                "branch": {
                    "name": "main",
                    "role_name": "ada",
                    "database_name": "shop",
                    "annotations": {"a": "b"},
                },
                "settings": {
                    "quota": {"active_time_seconds": 0},
                    "allowed_ips": {"ips": ["192.0.2.1"], "protected_branches_only": False},
                    "maintenance_window": {
                        "weekdays": [7],
                        "start_time": "01:00",
                        "end_time": "02:00",
                    },
                },
                "default_endpoint_settings": {"suspend_timeout_seconds": -1},
                "autoscaling_limit_min_cu": 0.25,
                "autoscaling_limit_max_cu": 2,
                "store_passwords": False,
                "history_retention_seconds": 0,
            }
        },
    )


async def test_create_leaves_out_what_is_unset() -> None:
    async with answering(CREATED, 201) as exchange:
        await exchange.neon.projects.create()
    assert exchange.asked == Asked("POST", "/projects", {}, {"project": {}})


CALLS = [
    Call(
        lambda neon: neon.projects.list_shared().collect(),
        asks=Asked("GET", "/projects/shared", {}, None),
        shown={"projects": [SHOWN], "pagination": None},
        gives=[decode(Project, SHOWN)],
    ),
    Call(
        lambda neon: neon.projects.list_shared(limit=1, search="sh&p", timeout=100).collect(),
        asks=Asked(
            "GET", "/projects/shared", {"limit": "1", "search": "sh&p", "timeout": "100"}, None
        ),
        shown={"projects": []},
        gives=[],
    ),
    Call(
        lambda neon: neon.projects.update(PROJECT),
        asks=Asked("PATCH", PATH, {}, {"project": {}}),
        shown=CHANGED,
        gives=decode(ProjectUpdated, CHANGED),
    ),
    Call(
        lambda neon: neon.projects.update(
            PROJECT,
            name="shop",
            settings=ProjectSettings(enable_logical_replication=True),
            default_endpoint_settings=DefaultEndpointSettings(autoscaling_limit_max_cu=2),
            history_retention_seconds=0,
        ),
        asks=Asked(
            "PATCH",
            PATH,
            {},
            {
                "project": {
                    "name": "shop",
                    "settings": {"enable_logical_replication": True},
                    "default_endpoint_settings": {"autoscaling_limit_max_cu": 2},
                    "history_retention_seconds": 0,
                }
            },
        ),
        shown=CHANGED,
        gives=decode(ProjectUpdated, CHANGED),
    ),
    Call(
        lambda neon: neon.projects.delete(PROJECT),
        asks=Asked("DELETE", PATH, {}, None),
        shown={"project": SHOWN},
        gives=decode(ProjectDeleted, {"project": SHOWN}),
    ),
    Call(
        lambda neon: neon.projects.recover(PROJECT),
        asks=Asked("POST", f"{PATH}/recover", {}, None),
        shown={"project": SHOWN, "branches": [branch_json()]},
        gives=decode(ProjectRecovered, {"project": SHOWN, "branches": [branch_json()]}),
    ),
    Call(
        lambda neon: neon.projects.connection_uri(PROJECT, database_name="neondb", role_name="ada"),
        asks=Asked(
            "GET", f"{PATH}/connection_uri", {"database_name": "neondb", "role_name": "ada"}, None
        ),
        shown={"uri": "postgresql://ada:hunter2@ep-1.example.com/neondb"},
        gives=Secret("postgresql://ada:hunter2@ep-1.example.com/neondb"),
    ),
    Call(
        lambda neon: neon.projects.connection_uri(
            PROJECT,
            database_name="neondb",
            role_name="ada",
            branch_id="br-1",
            endpoint_id="ep-1",
            pooled=True,
        ),
        asks=Asked(
            "GET",
            f"{PATH}/connection_uri",
            {
                "database_name": "neondb",
                "role_name": "ada",
                "branch_id": "br-1",
                "endpoint_id": "ep-1",
                "pooled": "true",
            },
            None,
        ),
        shown={"uri": "postgresql://"},
        gives=Secret("postgresql://"),
    ),
    Call(
        lambda neon: neon.projects.list_preload_libraries(PROJECT),
        asks=Asked("GET", f"{PATH}/available_preload_libraries", {}, None),
        shown={"libraries": [LIBRARY]},
        gives=[decode(AvailablePreloadLibrary, LIBRARY)],
    ),
    Call(
        lambda neon: neon.projects.list_advisor_issues(PROJECT),
        asks=Asked("GET", f"{PATH}/advisors", {}, None),
        shown={"issues": [ADVISOR_ISSUE]},
        gives=[decode(AdvisorIssue, ADVISOR_ISSUE)],
    ),
    Call(
        lambda neon: neon.projects.list_advisor_issues(
            PROJECT,
            branch_id="br-1",
            database_name="neondb",
            category="SECURITY",
            min_severity="WARN",
        ),
        asks=Asked(
            "GET",
            f"{PATH}/advisors",
            {
                "branch_id": "br-1",
                "database_name": "neondb",
                "category": "SECURITY",
                "min_severity": "WARN",
            },
            None,
        ),
        shown={"issues": []},
        gives=[],
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_what_it_asks_and_gives(call: Call) -> None:
    await check(call)


@pytest.mark.virtual_time
async def test_a_deleted_project_is_recovered(neon: NeonClient, project_id: str) -> None:
    await neon.projects.delete(project_id, wait=True)
    with pytest.raises(NotFoundError):
        await neon.projects.get(project_id)
    listed = await neon.projects.list(recoverable=True).collect()
    assert [project.id for project in listed] == [project_id]
    recovered = await neon.projects.recover(project_id, wait=True)
    assert {operation.status for operation in recovered.operations} == {"finished"}
    assert recovered.branches == await neon.branches.list(project_id).collect()


@pytest.mark.virtual_time
async def test_a_project_is_renamed_and_keeps_its_settings(
    neon: NeonClient, project_id: str
) -> None:
    settings = ProjectSettings(enable_logical_replication=True)
    changed = await neon.projects.update(project_id, settings=settings, wait=True)
    assert {operation.status for operation in changed.operations} == {"finished"}
    renamed = await neon.projects.update(project_id, name="store")
    assert (renamed.project.name, renamed.operations) == ("store", [])
    kept = (await neon.projects.get(project_id)).settings
    assert kept is not None
    assert kept.enable_logical_replication is True


@pytest.mark.parametrize("timeout", [30, 99, 30_001])
async def test_a_timeout_in_seconds_is_refused_before_anything_is_sent(timeout: int) -> None:
    async with answering() as exchange:
        for listing in (exchange.neon.projects.list, exchange.neon.projects.list_shared):
            with pytest.raises(ValueError, match=r"^timeout \(milliseconds\) .* 100 to 30000$"):
                listing(timeout=timeout)
    assert exchange.server.received == []


async def test_projects_of_one_name_are_all_listed() -> None:
    async with answering(
        {"projects": [{**SHOWN, "id": "p-1"}, {**SHOWN, "id": "p-2"}]}
    ) as exchange:
        for listing in (exchange.neon.projects.list(), exchange.neon.projects.list_shared()):
            assert [project.id for project in await listing.collect()] == ["p-1", "p-2"]
