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
from tests.resources.wire import Call, SentRequest, check_call, responding_with
from tests.support.records import EPOCH, PROJECT, JsonObject, branch_json, operation_json

PATH = f"/projects/{PROJECT}"
PROJECT_RECORD: JsonObject = {
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
    "project": PROJECT_RECORD,
    "branch": branch_json(),
    "operations": [operation_json()],
}
CHANGED: JsonObject = {"project": PROJECT_RECORD, "operations": [operation_json()]}


async def test_list_sends_every_parameter() -> None:
    async with responding_with({"projects": [PROJECT_RECORD], "pagination": {}}) as exchange:
        listing = exchange.neon.projects.list(
            limit=400, search="sh&p", org_id="org-1", timeout=1000, recoverable=False
        )
        [project] = await listing.collect()
    assert (project.id, project.pg_version, project.locked) == (PROJECT, 15, False)
    assert exchange.sent == SentRequest(
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


async def test_list_does_not_send_unset_parameters() -> None:
    async with responding_with({"projects": []}) as exchange:
        assert await exchange.neon.projects.list().collect() == []
    assert exchange.sent == SentRequest("GET", "/projects", {}, None)


async def test_null_in_the_settings_of_a_project_is_accepted() -> None:
    content = {
        **PROJECT_RECORD,
        "settings": {"allowed_ips": None, "quota": {"active_time_seconds": None}},
    }
    async with responding_with({"projects": [content]}) as exchange:
        [project] = await exchange.neon.projects.list().collect()
    assert project.id == PROJECT


async def test_get_returns_the_project() -> None:
    async with responding_with(
        {"project": {**PROJECT_RECORD, "owner": {"name": "Ada"}}}
    ) as exchange:
        project = await exchange.neon.projects.get(PROJECT)
    assert project.owner is not None
    assert project.owner.name == "Ada"
    assert exchange.sent == SentRequest("GET", f"/projects/{PROJECT}", {}, None)


async def test_create_sends_every_parameter() -> None:
    async with responding_with(CREATED, 201) as exchange:
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
    assert exchange.sent == SentRequest(
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


async def test_create_does_not_send_unset_parameters() -> None:
    async with responding_with(CREATED, 201) as exchange:
        await exchange.neon.projects.create()
    assert exchange.sent == SentRequest("POST", "/projects", {}, {"project": {}})


CALLS = [
    Call(
        lambda neon: neon.projects.list_shared().collect(),
        sends=SentRequest("GET", "/projects/shared", {}, None),
        response={"projects": [PROJECT_RECORD], "pagination": None},
        returns=[decode(Project, PROJECT_RECORD)],
    ),
    Call(
        lambda neon: neon.projects.list_shared(limit=1, search="sh&p", timeout=100).collect(),
        sends=SentRequest(
            "GET", "/projects/shared", {"limit": "1", "search": "sh&p", "timeout": "100"}, None
        ),
        response={"projects": []},
        returns=[],
    ),
    Call(
        lambda neon: neon.projects.update(PROJECT),
        sends=SentRequest("PATCH", PATH, {}, {"project": {}}),
        response=CHANGED,
        returns=decode(ProjectUpdated, CHANGED),
    ),
    Call(
        lambda neon: neon.projects.update(
            PROJECT,
            name="shop",
            settings=ProjectSettings(enable_logical_replication=True),
            default_endpoint_settings=DefaultEndpointSettings(autoscaling_limit_max_cu=2),
            history_retention_seconds=0,
        ),
        sends=SentRequest(
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
        response=CHANGED,
        returns=decode(ProjectUpdated, CHANGED),
    ),
    Call(
        lambda neon: neon.projects.delete(PROJECT),
        sends=SentRequest("DELETE", PATH, {}, None),
        response={"project": PROJECT_RECORD},
        returns=decode(ProjectDeleted, {"project": PROJECT_RECORD}),
    ),
    Call(
        lambda neon: neon.projects.recover(PROJECT),
        sends=SentRequest("POST", f"{PATH}/recover", {}, None),
        response={"project": PROJECT_RECORD, "branches": [branch_json()]},
        returns=decode(ProjectRecovered, {"project": PROJECT_RECORD, "branches": [branch_json()]}),
    ),
    Call(
        lambda neon: neon.projects.connection_uri(PROJECT, database_name="neondb", role_name="ada"),
        sends=SentRequest(
            "GET", f"{PATH}/connection_uri", {"database_name": "neondb", "role_name": "ada"}, None
        ),
        response={"uri": "postgresql://ada:hunter2@ep-1.example.com/neondb"},
        returns=Secret("postgresql://ada:hunter2@ep-1.example.com/neondb"),
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
        sends=SentRequest(
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
        response={"uri": "postgresql://"},
        returns=Secret("postgresql://"),
    ),
    Call(
        lambda neon: neon.projects.list_preload_libraries(PROJECT),
        sends=SentRequest("GET", f"{PATH}/available_preload_libraries", {}, None),
        response={"libraries": [LIBRARY]},
        returns=[decode(AvailablePreloadLibrary, LIBRARY)],
    ),
    Call(
        lambda neon: neon.projects.list_advisor_issues(PROJECT),
        sends=SentRequest("GET", f"{PATH}/advisors", {}, None),
        response={"issues": [ADVISOR_ISSUE]},
        returns=[decode(AdvisorIssue, ADVISOR_ISSUE)],
    ),
    Call(
        lambda neon: neon.projects.list_advisor_issues(
            PROJECT,
            branch_id="br-1",
            database_name="neondb",
            category="SECURITY",
            min_severity="WARN",
        ),
        sends=SentRequest(
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
        response={"issues": []},
        returns=[],
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await check_call(call)


@pytest.mark.virtual_time
async def test_deleted_project_is_recovered(neon: NeonClient, project_id: str) -> None:
    await neon.projects.delete(project_id, wait=True)
    with pytest.raises(NotFoundError):
        await neon.projects.get(project_id)
    listed = await neon.projects.list(recoverable=True).collect()
    assert [project.id for project in listed] == [project_id]
    recovered = await neon.projects.recover(project_id, wait=True)
    assert {operation.status for operation in recovered.operations} == {"finished"}
    assert recovered.branches == await neon.branches.list(project_id).collect()


@pytest.mark.virtual_time
async def test_rename_keeps_the_settings(neon: NeonClient, project_id: str) -> None:
    settings = ProjectSettings(enable_logical_replication=True)
    changed = await neon.projects.update(project_id, settings=settings, wait=True)
    assert {operation.status for operation in changed.operations} == {"finished"}
    renamed = await neon.projects.update(project_id, name="store")
    assert (renamed.project.name, renamed.operations) == ("store", [])
    current_settings = (await neon.projects.get(project_id)).settings
    assert current_settings is not None
    assert current_settings.enable_logical_replication is True


@pytest.mark.parametrize("timeout", [30, 99, 30_001])
async def test_timeout_out_of_range_is_rejected_before_the_request(timeout: int) -> None:
    async with responding_with() as exchange:
        for listing in (exchange.neon.projects.list, exchange.neon.projects.list_shared):
            with pytest.raises(ValueError, match=r"^timeout \(milliseconds\) .* 100 to 30000$"):
                listing(timeout=timeout)
    assert exchange.server.received == []


async def test_projects_with_equal_names_are_all_listed() -> None:
    async with responding_with(
        {"projects": [{**PROJECT_RECORD, "id": "p-1"}, {**PROJECT_RECORD, "id": "p-2"}]}
    ) as exchange:
        for listing in (exchange.neon.projects.list(), exchange.neon.projects.list_shared()):
            assert [project.id for project in await listing.collect()] == ["p-1", "p-2"]
