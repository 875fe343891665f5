from typing import Any

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
    ProjectCreated,
    ProjectDeleted,
    ProjectQuota,
    ProjectRecovered,
    ProjectUpdated,
)
from tests.models.records import ADVISOR_ISSUE, BRANCH, LIBRARY, OPERATION, PROJECT, JsonObject
from tests.resources.wire import Call, Response, record, record_in, records_in, responding_with

PATH = "/projects/p-1"
CHANGED: JsonObject = {"project": PROJECT, "operations": [OPERATION]}
CREATED = record(ProjectCreated, {**CHANGED, "branch": BRANCH}, status=201)
UPDATED = record(ProjectUpdated, CHANGED)
LISTED = records_in("projects", Project, PROJECT)
NONE_LISTED = Response({"projects": []}, [])
PLACE: dict[str, Any] = {"database_name": "neondb", "role_name": "ada"}
COMPUTE: dict[str, Any] = {**PLACE, "branch_id": "br-1", "endpoint_id": "ep-1"}
FILTER: dict[str, Any] = {
    "branch_id": "br-1",
    "database_name": "neondb",
    "category": "SECURITY",
    "min_severity": "WARN",
}
SPEC: dict[str, Any] = {
    "name": "shop",
    "org_id": "org-1",
    "region_id": "aws-us-east-2",
    "pg_version": 17,
    "provisioner": "k8s-neonvm",
    "autoscaling_limit_min_cu": 0.25,
    "autoscaling_limit_max_cu": 2,
    "store_passwords": False,
    "history_retention_seconds": 0,
}
FOUND = record_in("project", Project, {**PROJECT, "owner": {"name": "Ada"}})
DELETED = record(ProjectDeleted, {"project": PROJECT})
RECOVERED = record(ProjectRecovered, {"project": PROJECT, "branches": [BRANCH]})
ISSUES = records_in("issues", AdvisorIssue, ADVISOR_ISSUE)

CALLS = [
    Call(lambda neon: neon.projects.list().collect(), "GET /projects", NONE_LISTED),
    Call(
        lambda neon: neon.projects.list(
            limit=400, search="sh&p", org_id="org-1", timeout=1000, recoverable=False
        ).collect(),
        "GET /projects",
        Response({"projects": [PROJECT], "pagination": {}}, LISTED.result),
        query={
            "limit": "400",
            "search": "sh&p",
            "org_id": "org-1",
            "timeout": "1000",
            "recoverable": "false",
        },
    ),
    Call(
        lambda neon: neon.projects.list_shared().collect(),
        "GET /projects/shared",
        Response({"projects": [PROJECT], "pagination": None}, LISTED.result),
    ),
    Call(
        lambda neon: neon.projects.list_shared(limit=1, search="sh&p", timeout=100).collect(),
        "GET /projects/shared",
        NONE_LISTED,
        query={"limit": "1", "search": "sh&p", "timeout": "100"},
    ),
    Call(lambda neon: neon.projects.get("p-1"), f"GET {PATH}", FOUND),
    Call(lambda neon: neon.projects.create(), "POST /projects", CREATED, body={"project": {}}),
    Call(
        lambda neon: neon.projects.create(
            **SPEC,
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
        ),
        "POST /projects",
        CREATED,
        body={
            "project": {
                **SPEC,
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
            }
        },
    ),
    Call(lambda neon: neon.projects.update("p-1"), f"PATCH {PATH}", UPDATED, body={"project": {}}),
    Call(
        lambda neon: neon.projects.update(
            "p-1",
            name="shop",
            settings=ProjectSettings(enable_logical_replication=True),
            default_endpoint_settings=DefaultEndpointSettings(autoscaling_limit_max_cu=2),
            history_retention_seconds=0,
        ),
        f"PATCH {PATH}",
        UPDATED,
        body={
            "project": {
                "name": "shop",
                "settings": {"enable_logical_replication": True},
                "default_endpoint_settings": {"autoscaling_limit_max_cu": 2},
                "history_retention_seconds": 0,
            }
        },
    ),
    Call(lambda neon: neon.projects.delete("p-1"), f"DELETE {PATH}", DELETED),
    Call(lambda neon: neon.projects.recover("p-1"), f"POST {PATH}/recover", RECOVERED),
    Call(
        lambda neon: neon.projects.connection_uri("p-1", **PLACE),
        f"GET {PATH}/connection_uri",
        record_in("uri", Secret, "postgresql://ada:hunter2@ep-1.example.com/neondb"),
        query=PLACE,
    ),
    Call(
        lambda neon: neon.projects.connection_uri("p-1", **COMPUTE, pooled=True),
        f"GET {PATH}/connection_uri",
        record_in("uri", Secret, "postgresql://"),
        query={**COMPUTE, "pooled": "true"},
    ),
    Call(
        lambda neon: neon.projects.list_preload_libraries("p-1"),
        f"GET {PATH}/available_preload_libraries",
        records_in("libraries", AvailablePreloadLibrary, LIBRARY),
    ),
    Call(lambda neon: neon.projects.list_advisor_issues("p-1"), f"GET {PATH}/advisors", ISSUES),
    Call(
        lambda neon: neon.projects.list_advisor_issues("p-1", **FILTER),
        f"GET {PATH}/advisors",
        Response({"issues": []}, []),
        query=FILTER,
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


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


async def test_null_in_the_settings_of_a_project_is_accepted() -> None:
    settings = {"allowed_ips": None, "quota": {"active_time_seconds": None}}
    async with responding_with({"projects": [{**PROJECT, "settings": settings}]}) as exchange:
        [project] = await exchange.neon.projects.list().collect()
    assert project.id == "p-1"


async def test_projects_with_equal_names_are_all_listed() -> None:
    async with responding_with(
        {"projects": [{**PROJECT, "id": "p-1"}, {**PROJECT, "id": "p-2"}]}
    ) as exchange:
        for listing in (exchange.neon.projects.list(), exchange.neon.projects.list_shared()):
            assert [project.id for project in await listing.collect()] == ["p-1", "p-2"]


@pytest.mark.parametrize("name", ["list", "list_shared"])
async def test_list_knows_the_projects_that_it_lacks(name: str) -> None:
    content = {"projects": [PROJECT], "unavailable_project_ids": ["late-frost-12345678"]}
    async with responding_with(content) as exchange:
        listed = getattr(exchange.neon.projects, name)()
        assert [project.id for project in await listed.collect()] == [PROJECT["id"]]
        assert listed.unavailable_project_ids == ("late-frost-12345678",)
