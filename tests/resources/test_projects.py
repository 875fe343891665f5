from neonctl_async import (
    AllowedIps,
    DefaultEndpointSettings,
    MaintenanceWindow,
    ProjectBranchSpec,
    ProjectQuota,
    ProjectSettings,
)
from tests.resources.wire import Asked, answering
from tests.support.records import EPOCH, PROJECT, JsonObject, branch_json, operation_json

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


async def test_delete() -> None:
    async with answering({"project": SHOWN}) as exchange:
        deleted = await exchange.neon.projects.delete(PROJECT)
    assert (deleted.project.id, deleted.operations) == (PROJECT, [])
    assert exchange.asked == Asked("DELETE", f"/projects/{PROJECT}", {}, None)
